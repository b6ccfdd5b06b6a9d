//! Slices in C++ that end on another thread than they began, or in another order.

use std::process::Command;

use esatto_tests::{Peer, skip, tp};

use crate::abi_version::{AbiVersion, succeed};
use crate::build::{compile, file_in_tmp};

#[test]
fn slices_of_coroutines_end_no_others() {
    let program = file_in_tmp("coroutine_cc");
    compile(
        "g++",
        AbiVersion::V58,
        "coroutine.cc",
        &program,
        &["-std=c++20", "-O2", "-Wshadow", "-Wpedantic", "-lperfetto_c"],
    );
    let trace = program.with_extension("pftrace");
    let output = succeed(Command::new(&program).arg(&trace));
    let error = String::from_utf8_lossy(&output.stderr);
    let line = "esatto: a slice in the category `net` has a wrong end, because it ended on another thread than it \
                began, or after the slice around it: pass a track to `ESATTO_SLICE` in coroutines (`esatto::on(…)`)\n";
    assert_eq!(error, line);
    skip(|| {
        Peer::TraceProcessor.require()?;
        // Each instant is in the slices that are open: `inner` in `outer`. All have ended: the one
        // without an end of its own ended with the slice around it.
        let sql = "SELECT s.name || ' ' || s.depth || ' ' || (s.dur >= 0) || ' in ' || ifnull(p.name, '') AS x \
                   FROM slice s LEFT JOIN slice p ON p.id = s.parent_id ORDER BY s.ts, s.id";
        let rows: Vec<_> = tp::rows(&trace, sql).iter().map(|row| row.text("x").to_owned()).collect();
        let elsewhere = ["outer 0 1 in ", "inner 1 1 in outer", "in inner 2 1 in inner"];
        let mut expected = vec!["with a track 0 1 in "];
        expected.extend(elsewhere);
        expected.extend(["on one thread 0 1 in ", "around 0 1 in ", "without a track 1 1 in around"]);
        expected.extend(elsewhere);
        expected.extend(["first 0 1 in ", "second 1 1 in first", "after 0 1 in ", "in after 1 1 in after"]);
        assert_eq!(rows, expected);
        tp::assert_clean(&trace);
        Ok(())
    });
}
