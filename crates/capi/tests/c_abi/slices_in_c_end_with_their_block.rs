//! Slices of C end once, on their track, whatever the block does.

use std::process::Command;

use esatto_tests::Peer;
use esatto_tests::{skip, tp};

use crate::abi_version::{AbiVersion, succeed};
use crate::build::{compile, file_in_tmp, program};

#[test]
fn jumps_into_their_block_do_not_compile() {
    let options = ["-std=c11", "-Wpedantic", "-Wvla", "-c"];
    compile("gcc", AbiVersion::V58, "jumps.c", &file_in_tmp("jumps.o"), &options);
    for jump in ["-DGOTO", "-DSWITCH"] {
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=c11", "-fsyntax-only", jump, "-I", concat!(env!("CARGO_MANIFEST_DIR"), "/include")]);
        let output = gcc.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/jumps.c")).output().expect("gcc runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("no_jump_may_pass_this_slice"), "{jump}: {said}");
    }
}

#[test]
fn names_of_tracks_and_categories_may_change_meanwhile() {
    let program = program(AbiVersion::V58, "names_that_change.c", &["-std=c11"]);
    let trace = file_in_tmp("names-that-change.pftrace");
    succeed(Command::new(program).arg(&trace));
    skip(|| {
        Peer::TraceProcessor.require()?;
        let sql = "SELECT s.name || ' ' || coalesce(t.name, s.category) || ': ' || count(*) AS x
                   FROM slice s JOIN track t ON t.id = s.track_id WHERE dur >= 0 AND depth = 0
                   GROUP BY s.name, t.name, s.category ORDER BY x";
        let rows: Vec<_> = tp::rows(&trace, sql).iter().map(|row| row.text("x").to_owned()).collect();
        let expected = [
            "inner kind 0: 5",
            "inner kind 1: 5",
            "outer connection 0: 4",
            "outer connection 1: 3",
            "outer connection 2: 3",
        ];
        assert_eq!(rows, expected);
        Ok(())
    });
}
