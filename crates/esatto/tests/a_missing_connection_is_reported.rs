//! A session inside the process records nothing if the program has not connected to it. The program
//! gets a message instead of an unexplained empty trace.

#![allow(missing_docs, reason = "tests")]

use std::sync::mpsc;

use esatto::{Backend, Session, Tracing};

esatto::categories! {
    static TEST = "test";
}

#[test]
fn it_is_reported_once_and_only_if_nothing_is_connected() {
    let (say, said) = mpsc::channel();
    // Connects to nothing.
    drop(Tracing::builder().notices(move |line| say.send(line.to_owned()).expect("heard")).start().unwrap());
    let line =
        "a session inside this process has recorded nothing: call `Tracing::builder().in_process().start()` first";
    for lines in [&[line][..], &[]] {
        let session = Session::start(Backend::InProcess, esatto::track_events(64)).unwrap();
        esatto::instant!(TEST, "lost");
        assert_eq!(said.try_recv().ok(), None, "it may still come");
        let trace = session.stop().unwrap();
        assert!(esatto_trace::events(&trace[..]).is_empty());
        assert_eq!(said.try_iter().collect::<Vec<_>>(), lines);
    }

    // The other order also works.
    let session = Session::start(Backend::InProcess, esatto::track_events(65)).unwrap();
    let tracing = Tracing::builder().in_process().start().unwrap();
    assert!(tracing.wait_until_enabled(&TEST, std::time::Duration::from_secs(30)));
    esatto::instant!(TEST, "recorded");
    let trace = session.stop().unwrap();
    assert_eq!(esatto_trace::events(&trace[..]).len(), 1);
    assert_eq!(said.try_recv().ok(), None);
}
