//! A unit file, as far as these tests need to understand it.

use esatto_tests::Skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the units.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd")
}

/// Assignments in their order.
pub(crate) struct Unit(Vec<(String, String)>);

impl Unit {
    pub(crate) fn read(name: &str) -> Self {
        Self::parse(name, &std::fs::read_to_string(folder().join(name)).expect("the unit is there"))
    }

    /// The unit `name` with this text.
    pub(crate) fn parse(name: &str, text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with(['#', '[']) && !line.is_empty());
        let assignment = |line: &str| {
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{name}: {line}"));
            (key.to_owned(), value.to_owned())
        };
        Self(lines.map(assignment).collect())
    }

    /// All words that were assigned to `key`.
    pub(crate) fn words(&self, key: &str) -> Vec<&str> {
        let values = self.0.iter().filter(|(name, _)| name == key);
        values.flat_map(|(_, value)| value.split_ascii_whitespace()).collect()
    }

    /// The one value of `key`.
    pub(crate) fn value(&self, key: &str) -> &str {
        let mut values = self.0.iter().filter(|(name, _)| name == key).map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (Some(value), None) => value,
            (first, _) => panic!("{key} has {} value", if first.is_none() { "no" } else { "more than one" }),
        }
    }
}

/// A program of systemd. The requests here do not need a running systemd.
pub(crate) fn systemd(program: &str) -> Result<Command, Skip> {
    tool(program, "systemd")
}

/// A program that a part of `cargo xtask peers` installs for everyone.
pub(crate) fn tool(program: &str, part: &str) -> Result<Command, Skip> {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).exists()));
    let ci = std::env::var("CI").unwrap_or_default();
    assert!(
        found || ci.is_empty() || ci == "false" || ci == "0",
        "{program} is not installed: cargo xtask peers {part}"
    );
    if found { Ok(Command::new(program)) } else { Err(Skip(format!("no peers: run 'cargo xtask peers {part}'"))) }
}

/// Output of the command, its complaints first. It must succeed.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let both = [output.stderr, output.stdout].concat();
    let text = String::from_utf8_lossy(&both).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}
