//! A result of a damaged trace says how much of the trace it has.

use crate::{esatto, said, trace};
use esatto_tests::Harness;
use std::path::{Path, PathBuf};

/// A command that writes a file of a trace.
type Make = fn(&Path, &Path) -> Vec<PathBuf>;

const COMMANDS: [(&str, Make); 5] = [
    ("cut", |file, out| vec![file.into(), "--from".into(), "+0s".into(), "-o".into(), out.into()]),
    ("merge", |file, out| vec![file.into(), trace("deflate"), "-o".into(), out.into()]),
    ("redact", |file, out| vec![file.into(), "--drop-args".into(), "-o".into(), out.into()]),
    ("convert", |file, out| vec![file.into(), "--to".into(), "chrome-json".into(), "-o".into(), out.into()]),
    ("convert", |file, out| vec![file.into(), "--to".into(), "perfetto".into(), "-o".into(), out.into()]),
];

fn run_all(harness: &Harness, file: &Path, mut check: impl FnMut(&str, Option<i32>, &str)) {
    for (number, (command, args)) in COMMANDS.iter().enumerate() {
        let out = harness.path(format!("out-{number}"));
        let args = args(file, &out);
        let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![command];
        all.extend(args.iter().map(|arg| arg as &dyn AsRef<std::ffi::OsStr>));
        all.push(&"--force");
        let output = esatto(&all);
        assert!(out.exists(), "{command}: {}", said(&output));
        check(command, output.status.code(), &said(&output));
    }
}

#[test]
fn with_the_bytes_that_are_not_read() {
    let harness = Harness::new();
    let mut bytes = std::fs::read(trace("track-events")).expect("a trace");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0);
    let file = harness.write("damaged", &bytes);
    run_all(&harness, &file, |command, status, said| {
        assert_eq!(status, Some(3), "{command}: {said}");
        let words = said.split("Everything before it is ").nth(1).unwrap_or_else(|| panic!("{command}: {said}"));
        let unread: usize = words.split(' ').filter_map(|word| word.parse().ok()).next().expect("a number");
        assert!(unread.abs_diff(bytes.len() - middle) < 5000, "{command}: {said}");
    });
}

#[test]
fn but_a_recording_that_was_ended_by_force_is_as_whole_as_it_can_be() {
    let harness = Harness::new();
    let bytes = std::fs::read(trace("track-events")).expect("a trace");
    let file = harness.write("torn", &bytes[..bytes.len() - 3]);
    run_all(&harness, &file, |command, status, said| {
        assert_eq!(status, Some(0), "{command}: {said}");
        assert!(said.contains("is torn") && said.contains("Everything before it is "), "{command}: {said}");
    });
}
