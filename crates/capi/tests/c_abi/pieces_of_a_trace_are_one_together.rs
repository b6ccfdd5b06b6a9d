//! A trace that a program reads in pieces.

use std::path::Path;
use std::process::Command;

use esatto_tests::{Peer, esatto_bin, skip, tp};

use crate::abi_version::{AbiVersion, succeed};
use crate::build::{compile, file_in_tmp};

fn check(trace: &Path) -> String {
    let output = Command::new(esatto_bin()).arg("check").arg(trace).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn and_the_later_ones_cannot_be_read_alone() {
    let program = file_in_tmp("session_pieces");
    compile("g++", AbiVersion::V58, "session_pieces.cc", &program, &["-std=c++17", "-lperfetto_c"]);
    let [first, rest, whole] = ["first", "rest", "whole"].map(|name| file_in_tmp(&format!("piece-{name}.pftrace")));
    succeed(Command::new(&program).args([&first, &rest]));
    let bytes = [&first, &rest].map(|file| std::fs::read(file).expect("it was written")).concat();
    std::fs::write(&whole, bytes).expect("a file");

    assert!(check(&first).contains(": sound. "), "{}", check(&first));
    assert!(check(&whole).contains(": sound. "), "{}", check(&whole));
    let told = check(&rest);
    let remedy = "Write all pieces into one file, in the order in which they were read";
    assert!(told.contains("begins in the middle of the recording") && told.contains(remedy), "{told}");
    assert!(!told.contains("size_kb"), "{told}");
    skip(|| {
        Peer::TraceProcessor.require()?;
        for (trace, events) in [(&first, 1), (&rest, 0), (&whole, 2)] {
            assert_eq!(tp::rows(trace, "SELECT count(*) AS n FROM slice")[0].int("n"), events, "{trace:?}");
        }
        Ok(())
    });
}
