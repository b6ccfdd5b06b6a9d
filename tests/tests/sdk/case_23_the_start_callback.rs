//! The start callback comes after the last data source has started, and also if there is none. It
//! gets its result, and must not wait.

use std::sync::mpsc;
use std::time::Duration;

use esatto::{ErrorKind, Session, SessionConfig, TraceConfig};
use esatto_tests::DEADLINE;
use esatto_tests::sdk::{Recorder, Trace};

esatto::categories! {
    static APP = "app";
}
esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let (said, heard) = mpsc::channel();
    let hear = || heard.recv_timeout(DEADLINE).expect("a callback");
    let watch = |session: &Session| {
        let (on_start, on_stop) = (said.clone(), said.clone());
        session.on_start(move |result| on_start.send(format!("{result:?}, {}", APP.is_enabled())).expect("heard"));
        session.on_stop(move |result| on_stop.send(format!("stopped: {result:?}")).expect("heard"));
    };

    let session = Session::open(recorder.backend()).expect("opens");
    watch(&session);
    drop(session.record(SessionConfig::new()));
    assert_eq!(hear(), "Ok(()), true");
    esatto::instant!(APP, "seen");

    // Waiting in a callback is refused; asking is not.
    let (flushed, wait_for_flush) = mpsc::channel();
    let session = std::sync::Arc::new(session);
    let inner = std::sync::Arc::clone(&session);
    session.flush(None).then(move |result| {
        result.expect("flushes");
        let refused = inner.flush(None).wait().expect_err("this is the control thread");
        let chunk = inner.chunks().next().expect("an error").expect_err("this is the control thread");
        inner.flush(Some(Duration::from_secs(5))).then(move |again| {
            flushed.send((refused.kind(), chunk.kind(), again.is_ok())).expect("heard");
        });
    });
    let outcome = wait_for_flush.recv_timeout(DEADLINE).expect("flushed twice");
    assert_eq!(outcome, (ErrorKind::WouldDeadlock, ErrorKind::WouldDeadlock, true));
    // The session has started before: the callback comes at once.
    let late = said.clone();
    session.on_start(move |result| late.send(format!("late: {result:?}")).expect("heard"));
    assert_eq!(hear(), "late: Ok(())");
    let late = session.flush(None).wait_timeout(Duration::ZERO);
    assert!(late.is_ok() || late.is_err_and(|error| error.is_timeout()));
    // A panic of the program's own function is its own.
    session.flush(None).then(|_| panic!("in a callback, on purpose"));

    drop(session.stop_recording());
    assert_eq!(hear(), "stopped: Ok(())");
    recorder.save("trace", session.read().wait().expect("is read"));

    // No data source to wait for.
    let session = Session::open(recorder.backend()).expect("opens");
    watch(&session);
    let nothing = TraceConfig { buffers: esatto::track_events(64).buffers, ..TraceConfig::default() };
    drop(session.record(nothing));
    assert_eq!(hear(), "Ok(()), false");
    session.stop_recording().wait().expect("stops");
    assert_eq!(hear(), "stopped: Ok(())");
}

fn check(trace: &Trace) {
    let [slices] = trace.query(["select name from slice"]);
    assert_eq!(slices[0].text("name"), "seen");
}
