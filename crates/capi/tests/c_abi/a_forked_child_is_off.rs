use std::process::Command;

use crate::abi_version::{AbiVersion, succeed};
use crate::build::program;
use crate::run::{Run, Stage, column};

#[test]
fn the_child_is_off_and_its_parent_still_records() {
    esatto_tests::skip(|| {
        let run = Run::new("fork.c", Stage::V58, |_| ())?;
        let [slices] = run.query("trace", ["SELECT name FROM slice ORDER BY ts"])?;
        assert_eq!(column(&slices, "name"), ["before", "after"]);
        Ok(())
    });
}

#[test]
fn a_child_that_traces_in_vain_says_so() {
    let program = program(AbiVersion::V58, "fork_exits.c", &["-D_GNU_SOURCE"]);
    let said = |does: &str| {
        let output = succeed(Command::new(&program).arg(does));
        String::from_utf8(output.stderr).expect("text")
    };
    for does in ["traces", "traces dynamically"] {
        let said = said(does);
        let (why, remedy) = ("is not recorded, although its parent was", "or in C `esatto_init`\n");
        assert!(said.contains(why) && said.ends_with(remedy) && said.lines().count() == 1, "{does}: {said}");
    }
    for does in ["nothing", "traces unrecorded events", "connects"] {
        assert_eq!(said(does), "", "{does}");
    }
}
