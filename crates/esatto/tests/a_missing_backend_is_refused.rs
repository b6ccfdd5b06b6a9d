//! A start that would connect the program to nothing fails, and says what to call.

#![allow(missing_docs, reason = "tests")]

use esatto::{Backend, ErrorKind, Session, Tracing};

esatto::categories! {
    static TEST = "test";
}

#[test]
fn a_start_without_a_backend_fails_before_anything_is_connected() {
    for builder in [
        Tracing::builder(),
        Tracing::builder().categories(CATEGORIES),
        Tracing::builder().categories(CATEGORIES).producer_name("me").notices(|_| ()),
    ] {
        let error = builder.start().expect_err("no backend");
        let text = "no backend chosen: call `system()`, `in_process()` or `file_from_env()` before `start()`";
        assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::State, text));
    }
    // Options of the process.
    drop(Tracing::builder().session_policy(|_| true).start().expect("starts"));
    // The variable may be unset.
    drop(Tracing::builder().categories(CATEGORIES).file_from_env().start().expect("starts"));
    let _tracing = Tracing::builder().in_process().start().expect("starts");
    // Later calls announce more categories.
    drop(Tracing::builder().categories(CATEGORIES).start().expect("starts"));
    let session = Session::start(Backend::InProcess, esatto::track_events(64)).expect("starts");
    esatto::instant!(TEST, "recorded");
    assert_eq!(esatto_trace::events(&session.stop().expect("stops")[..]).len(), 1);
}
