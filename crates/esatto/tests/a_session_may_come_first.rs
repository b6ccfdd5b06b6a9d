//! A session that runs before the program connects records it from then on.

#![allow(missing_docs, reason = "tests")]

use esatto::{Backend, Session, Tracing};

esatto::categories! { static APP = "app"; }

#[test]
fn a_session_may_come_first() {
    for round in 0..20 {
        let session = Session::start(Backend::InProcess, esatto::track_events(1024)).expect("starts");
        let tracing = Tracing::builder().in_process().categories(CATEGORIES).start().expect("starts");
        esatto::instant!(APP, "first");
        let trace = esatto_trace::Trace::read(&session.stop().expect("stops")[..]);
        let names: Vec<_> = trace.events.iter().filter_map(|event| event.name.as_deref()).collect();
        assert_eq!(names, ["first"], "round {round}");
        drop(tracing);
        assert!(esatto::shutdown());
    }
}
