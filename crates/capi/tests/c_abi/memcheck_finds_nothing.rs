//! Valgrind runs the programs of `tests/c`. It finds no invalid access, no read of uninitialised
//! memory and no leak.

use std::process::Command;

use esatto_tests::{Harness, Peer};

use crate::abi_version::{AbiVersion, succeed};
use crate::build::program;
use crate::cases::CASES;

/// Cases that run on every change, because they use different parts of the library. Each takes a
/// second and a half.
const SOME: [&str; 8] = ["02", "04", "09", "11", "12", "19", "24", "29"];

/// Runs a program under valgrind with an option for its leak check.
fn assert_clean(version: AbiVersion, source: &str, leak_check: &str) {
    let harness = Harness::new();
    let mut valgrind = harness.command("valgrind");
    // With fair scheduling, because a thread that waits in a loop would keep the processor.
    valgrind.args(["--quiet", "--error-exitcode=99", "--fair-sched=yes", leak_check]);
    valgrind.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
    let valgrind: &mut Command = valgrind.arg(program(version, source, &[])).arg(harness.folder());
    succeed(valgrind);
}

#[test]
fn in_cases_that_use_different_parts() {
    esatto_tests::skip(|| {
        Peer::Valgrind.require()?;
        let some = CASES.iter().filter(|case| SOME.iter().any(|number| case["case_".len()..].starts_with(number)));
        some.for_each(|case| assert_clean(AbiVersion::V58, &format!("{case}.c"), "--leak-check=full"));
        Ok(())
    });
}

#[test]
#[ignore = "soak: two minutes"]
fn in_all_programs_of_both_versions() {
    esatto_tests::skip(|| {
        Peer::Valgrind.require()?;
        for version in AbiVersion::ALL {
            let cases = CASES.iter().map(|case| format!("{case}.c"));
            cases
                .chain(["track_events.c", "types.c"].map(String::from))
                .for_each(|source| assert_clean(version, &source, "--leak-check=full"));
            // Without a leak check, because memory of the parent counts as a leak of the child.
            assert_clean(version, "fork.c", "--leak-check=no");
        }
        Ok(())
    });
}
