//! A session inside of the process records nothing of a program that has not connected to that: it is told so, instead of wondering about an empty trace.

#![allow(missing_docs, reason = "tests")]

use std::sync::mpsc;

use esatto::{Backend, Session, Tracing};

esatto::categories! {
    static TEST = "test";
}

#[test]
fn once_and_only_if_it_was_forgotten() {
    let (say, said) = mpsc::channel();
    // Connects to nothing.
    drop(Tracing::builder().notices(move |line| say.send(line.to_owned()).expect("heard")).start().unwrap());
    let line = "a session inside of this process has recorded nothing: `Tracing::builder().in_process().start()` was not called before";
    for lines in [&[line][..], &[]] {
        let session = Session::start(Backend::InProcess, esatto::track_events(64)).unwrap();
        esatto::instant!(TEST, "lost");
        assert_eq!(said.try_recv().ok(), None, "it may still come");
        let trace = session.stop().unwrap();
        assert!(esatto_trace::events(&trace[..]).is_empty());
        assert_eq!(said.try_iter().collect::<Vec<_>>(), lines);
    }

    // The other order is as good.
    let session = Session::start(Backend::InProcess, esatto::track_events(65)).unwrap();
    let tracing = Tracing::builder().in_process().start().unwrap();
    assert!(tracing.wait_until_enabled(&TEST, std::time::Duration::from_secs(30)));
    esatto::instant!(TEST, "recorded");
    let trace = session.stop().unwrap();
    assert_eq!(esatto_trace::events(&trace[..]).len(), 1);
    assert_eq!(said.try_recv().ok(), None);
}
