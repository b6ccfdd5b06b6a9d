//! Valgrind on the programs of `tests/c`: no invalid access, nothing read that nobody wrote, nothing lost for good.

use std::process::Command;

use esatto_tests::{Harness, Peer};

use crate::build::program;
use crate::cases::CASES;
use crate::flavour::{Flavour, succeed};

/// For every change: what takes different ways. Each takes a second and a half.
const SOME: [&str; 8] = ["02", "04", "09", "11", "12", "19", "24", "29"];

/// `leak_check`: of valgrind.
fn assert_clean(flavour: Flavour, source: &str, leak_check: &str) {
    let harness = Harness::new();
    let mut valgrind = harness.command("valgrind");
    // Threads take turns, or who waits for another would keep the processor.
    valgrind.args(["--quiet", "--error-exitcode=99", "--fair-sched=yes", leak_check]);
    valgrind.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
    let valgrind: &mut Command = valgrind.arg(program(flavour, source, &[])).arg(harness.folder());
    succeed(valgrind);
}

#[test]
fn in_some_of_the_cases() {
    esatto_tests::skip(|| {
        Peer::Valgrind.require()?;
        let some = CASES.iter().filter(|case| SOME.iter().any(|number| case["case_".len()..].starts_with(number)));
        some.for_each(|case| assert_clean(Flavour::V58, &format!("{case}.c"), "--leak-check=full"));
        Ok(())
    });
}

#[test]
#[ignore = "soak: two minutes"]
fn in_all_programs_of_either_flavour() {
    esatto_tests::skip(|| {
        Peer::Valgrind.require()?;
        for flavour in Flavour::ALL {
            let cases = CASES.iter().map(|case| format!("{case}.c"));
            cases
                .chain(["track_events.c", "types.c"].map(String::from))
                .for_each(|source| assert_clean(flavour, &source, "--leak-check=full"));
            // What a child has from its parent is lost there.
            assert_clean(flavour, "fork.c", "--leak-check=no");
        }
        Ok(())
    });
}
