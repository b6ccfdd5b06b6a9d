//! One line in `main`, or a variable in the environment, and the whole program is in a file that is
//! complete however the program ends.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use esatto_tests::{Harness, Peer, beside_this_test, skip, tp};

fn program(harness: &Harness, args: &[&str]) -> Command {
    let mut command = harness.command(beside_this_test("esatto-whole"));
    command.args(args);
    command
}

/// Events by name, of a trace without a flaw.
fn names(trace: &Path) -> Vec<String> {
    let results = tp::query(trace, &format!("{};\nselect name from slice order by name", tp::COMPLAINTS));
    assert!(results[0].is_empty(), "{:#?}", results[0]);
    results[1].iter().map(|row| row.text("name").to_owned()).collect()
}

const ALL: [&str; 4] = ["first", "in another thread", "last", "main"];

fn ends_by(ending: &str, is_success: bool) {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let status = harness.start("whole", &mut program(&harness, &[ending, "trace"])).wait();
        assert_eq!(status.success(), is_success, "{status}");
        assert_eq!(names(&harness.path("trace")), ALL);
        Ok(())
    });
}

#[test]
fn at_the_end_of_main() {
    ends_by("return", true);
}

#[test]
fn when_it_is_finished_by_hand() {
    ends_by("finish", true);
}

#[test]
fn at_exit() {
    ends_by("exit", true);
}

#[test]
fn at_exit_of_another_thread() {
    ends_by("exit-elsewhere", true);
}

#[test]
fn at_a_panic() {
    ends_by("panic", false);
}

#[test]
fn a_second_before_it_is_killed() {
    ends_by("killed", false);
}

#[test]
fn where_the_environment_wants_it() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        // Not asked for, it does nothing.
        harness.start("none", &mut program(&harness, &["return"])).wait_ok();
        harness.start("off", program(&harness, &["return", "unwanted"]).env("ESATTO_TRACE", "off")).wait_ok();
        let mut run = program(&harness, &["return", "unwanted"]);
        run.env("ESATTO_TRACE", "trace-%p").env("ESATTO_TRACE_CATEGORIES", "app*,-app.detail");
        let mut run = harness.start("run", run.env("ESATTO_TRACE_BUFFER_KB", "4096"));
        let trace = harness.path(format!("trace-{}", run.pid()));
        run.wait_ok();
        assert!(!harness.path("unwanted").exists());
        assert_eq!(names(&trace), ["first", "last", "main"]);
        Ok(())
    });
}

#[test]
fn a_mistake_is_reported_in_one_line() {
    let harness = Harness::new();
    let failing = |name: &str, command: &mut Command| {
        let mut program = harness.start(name, command);
        assert!(!program.wait().success());
        program.log()
    };
    let log = failing("folder", &mut program(&harness, &["return", "no/folder/trace"]));
    let reason = "No such file or directory (os error 2); create its folder first";
    assert_eq!(log, format!("esatto-whole: cannot create no/folder/trace: {reason}\n"));
    let log = failing("buffer", program(&harness, &["return", "trace"]).env("ESATTO_TRACE_BUFFER_KB", "-1"));
    assert_eq!(log, "esatto-whole: ESATTO_TRACE_BUFFER_KB is '-1', which is not a number of KiB\n");
    let patterns = OsStr::from_bytes(b"app\xff");
    let log = failing("patterns", program(&harness, &["return", "trace"]).env("ESATTO_TRACE_CATEGORIES", patterns));
    let form = "a list of patterns such as `net,db.*,-db.rows,tag:slow`";
    assert_eq!(log, format!("esatto-whole: ESATTO_TRACE_CATEGORIES is 'app\u{fffd}', which is not {form}\n"));
}

#[test]
fn a_file_that_is_not_complete_is_spoken_of() {
    let harness = Harness::new();
    for ending in ["return", "exit"] {
        let mut run = harness.start(ending, &mut program(&harness, &[ending, "/dev/full"]));
        run.wait_ok();
        let log = run.log();
        assert!(
            log.starts_with("esatto: /dev/full is incomplete: ") && log.contains("No space left"),
            "{ending}: {log}"
        );
    }
}
