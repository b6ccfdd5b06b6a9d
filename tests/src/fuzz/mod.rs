//! Parsers of foreign bytes, each as a function that takes any bytes and must return.
//!
//! The tests give them a fixed number of mutations of what real programs wrote (`tests/captures`,
//! `tests/traces`). libFuzzer, which has no such beginnings but far more patience, is in `fuzz/`.

mod mutate;
mod targets;

pub use mutate::mutate;
pub use targets::{TARGETS, Target};

use std::path::{Path, PathBuf};

/// Real bytes for a target to begin with.
///
/// # Panics
///
/// They cannot be read.
#[must_use]
pub fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut inputs = Vec::new();
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
