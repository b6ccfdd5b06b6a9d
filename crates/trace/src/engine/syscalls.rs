//! Names of system calls.

use hashbrown::HashMap;
use std::sync::OnceLock;

/// Lines of a name and a number.
const X86_64: &str = include_str!("syscalls_x86_64.txt");
const AARCH64: &str = include_str!("syscalls_aarch64.txt");

fn parse(lines: &'static str) -> HashMap<i64, &'static str> {
    let entry = |line: &'static str| {
        let (name, number) = line.split_once(' ')?;
        Some((number.parse().ok()?, name))
    };
    lines.lines().filter_map(entry).collect()
}

/// Returns the name of a system call on an architecture, as `uname` names it.
pub(crate) fn name(arch: &str, number: i64) -> Option<&'static str> {
    static NAMES: [OnceLock<HashMap<i64, &'static str>>; 2] = [OnceLock::new(), OnceLock::new()];
    let (names, lines) = match arch {
        "x86_64" => (&NAMES[0], X86_64),
        "aarch64" => (&NAMES[1], AARCH64),
        _ => return None,
    };
    names.get_or_init(|| parse(lines)).get(&number).copied()
}
