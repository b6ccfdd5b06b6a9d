//! The service writes the trace into a file: one that is handed to it, one that it creates. There
//! is nothing left to read.

use std::time::Duration;

use esatto::{Session, SessionConfig};
use esatto_tests::sdk::{Recorder, Trace};
use esatto_tests::wait_until;

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let created = recorder.path("created").display().to_string();
    let period = Duration::from_millis(50);
    let by_path = SessionConfig::new().write_into(recorder.trace()).file_write_period(period);
    let by_fd = std::fs::File::create(recorder.path("fd")).expect("a file");
    let by_fd = SessionConfig::new().write_into_fd(by_fd);
    let by_service = SessionConfig::new().edit(|config| {
        config.write_into_file = Some(true);
        config.flush_period_ms = Some(60_000);
        config.output_path = Some(created.into());
    });
    let [by_path, by_fd, by_service] = [by_path, by_fd, by_service].map(|config| {
        let session = Session::open(recorder.backend()).expect("opens");
        session.record(config).wait().expect("starts");
        session
    });
    for number in 0..500 {
        esatto::instant!(APP, "event", number = number);
    }
    by_path.flush(None).wait().expect("flushes");
    // While it runs: the events are in the file.
    wait_until("events are in the file", || {
        let bytes = std::fs::read(recorder.trace()).expect("the file");
        (esatto_trace::events(&bytes).len() == 500).then_some(())
    });
    for session in [by_path, by_fd, by_service] {
        session.stop_recording().wait().expect("stops");
        // Perfetto's service still has one of its own packets after the end of the file.
        assert!(esatto_trace::events(&session.read().wait().expect("reads")).is_empty());
    }
    let error =
        Session::start(recorder.backend(), SessionConfig::new().write_into("/nowhere/file")).expect_err("no folder");
    assert_eq!(error.kind(), esatto::ErrorKind::File);
    assert!(error.to_string().contains("/nowhere/file"), "{error}");
}

fn check(trace: &Trace) {
    let [events] =
        trace.query(["select count(*) as n, count(distinct extract_arg(arg_set_id, 'debug.number')) as d from slice"]);
    assert_eq!((events[0].int("n"), events[0].int("d")), (500, 500));
    for other in ["fd", "created"] {
        assert_eq!(trace.other(other).read().events.len(), 500, "{other}");
    }
}
