//! A program that writes its own file, or has a service write it, learns that another program has
//! removed, replaced or emptied the file.

use std::fs;
use std::time::Duration;

use esatto::{ErrorKind, Session, SessionConfig};
use esatto_tests::sdk::{Recorder, Trace};
use esatto_tests::{Harness, beside_this_test, wait_until};

esatto::categories! {
    static APP = "app";
}

const REMOVED: &str = "it was removed or replaced during the recording";
const CHANGED: &str = "another program has emptied it, or has written into it";

/// Runs a program that loses its file, and checks its only line.
fn whole(loss: &str, why: &str) {
    for (ending, is_told_by_program) in [("return", false), ("exit", false), ("finish", true)] {
        let harness = Harness::new();
        let mut command = harness.command(beside_this_test("esatto-whole"));
        let mut program = harness.start("whole", command.args([ending, "g.pftrace", loss]));
        assert_eq!(program.wait().success(), !is_told_by_program);
        let log = program.log();
        let start = if is_told_by_program { "esatto-whole: " } else { "esatto: " };
        assert!(log.starts_with(start) && log.contains(why) && log.lines().count() == 1, "{ending}, {loss}: {log}");
        assert!(is_told_by_program || log.contains("g.pftrace"), "{log}");
    }
}

#[test]
fn when_it_is_removed() {
    whole("removed", "lost the trace file g.pftrace: it was removed or replaced during the recording\n");
}

#[test]
fn when_it_is_replaced() {
    whole("replaced", "lost the trace file g.pftrace: it was removed or replaced during the recording\n");
}

#[test]
fn when_it_has_another_name() {
    whole("renamed", "the recording; the trace is in /");
    whole("renamed", "/g.old\n");
}

#[test]
fn when_it_is_emptied() {
    whole("emptied", CHANGED);
}

#[test]
fn when_it_is_overwritten() {
    whole("overwritten", CHANGED);
}

esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let period = Duration::from_millis(50);
    let [kept, removed, emptied] = [recorder.trace(), recorder.path("removed"), recorder.path("emptied")].map(|path| {
        let session = Session::open(recorder.backend()).expect("opens");
        session.record(SessionConfig::new().write_into(&path).file_write_period(period)).wait().expect("starts");
        (session, path)
    });
    esatto::instant!(APP, "event");
    for (session, path) in [&removed, &emptied] {
        session.flush(None).wait().expect("flushes");
        wait_until("the event is in the file", || {
            let bytes = fs::read(path).expect("the file");
            (!esatto_trace::events(&bytes).is_empty()).then_some(())
        });
    }
    fs::remove_file(&removed.1).expect("it is there");
    fs::write(&emptied.1, "").expect("it is there");
    // An event for each of the next periods.
    esatto::instant!(APP, "later");
    let error = removed.0.stop().expect_err("the file is lost");
    assert!(error.kind() == ErrorKind::File && error.to_string().ends_with(REMOVED), "{error}");
    let error = emptied.0.stop().expect_err("the file is no trace");
    assert!(error.to_string().contains(CHANGED), "{error}");
    kept.0.stop().expect("nothing has happened to it");
}

fn check(trace: &Trace) {
    assert_eq!(trace.read().events.len(), 2);
}
