//! Parsers of foreign bytes, each as a function that takes any bytes and must return.
//!
//! The same functions serve libFuzzer (`fuzz/`, `cargo xtask soak fuzz`), and the tests, which run what
//! fuzzers have found (`fuzz/corpus/TARGET/*`) and a fixed number of mutations of real bytes.

mod mutate;
mod targets;

pub use mutate::mutate;
pub use targets::{TARGETS, Target};

use std::path::{Path, PathBuf};

/// Gives one target its bytes.
///
/// # Panics
///
/// There is no such target, or something is wrong with the parser.
pub fn run(target: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|other| other.name == target).expect("a target");
    (target.run)(bytes);
}

/// The inputs that are checked in for a target, and real bytes to begin with.
///
/// # Panics
///
/// They cannot be read.
#[must_use]
pub fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    collect(&here.join("../fuzz/corpus").join(target.name), &mut found);
    found.sort();
    let mut inputs: Vec<_> = found.into_iter().map(|path| (path.clone(), read(&path))).collect();

    let mut seeds = Vec::new();
    collect(&here.join("captures"), &mut seeds);
    collect(&here.join("traces"), &mut seeds);
    seeds.sort();
    for path in seeds.into_iter().filter(|path| (target.is_seed)(&path.to_string_lossy())) {
        inputs.extend((target.seeds)(&read(&path)).into_iter().map(|seed| (path.clone(), seed)));
    }
    inputs
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
