//! After `shutdown` a program can connect again, as if for the first time.

#![allow(missing_docs, reason = "tests")]

use std::sync::mpsc;
use std::time::Duration;

use esatto::{Backend, Session, SessionObserver, Stop, Tracing};

esatto::categories! {
    static TEST = "again";
}

/// Connects in a function that is called while tracing ends.
struct Connects(mpsc::Sender<bool>);

impl SessionObserver for Connects {
    fn on_stop(&self, _stop: Stop) {
        let connected = Tracing::builder().in_process().start();
        self.0.send(connected.map(std::mem::forget).is_ok()).expect("the test waits");
    }
}

fn session() -> Session {
    Session::start(Backend::InProcess, esatto::track_events(1024)).expect("starts")
}

/// One test, because there is one control thread.
#[test]
fn a_program_can_connect_again_after_a_shutdown() {
    let connect = || Tracing::builder().in_process().shared_memory(1024, 4).categories(CATEGORIES).start().unwrap();

    // It ends while chunks are being collected, so that no chunk causes a wake-up.
    let first = connect();
    let recorded = session();
    for n in 0..10_000 {
        esatto::instant!(TEST, "first", n = n);
    }
    assert!(esatto::shutdown());
    drop((recorded, first));

    // The session is read without a flush, so chunks were collected.
    let second = connect();
    let recorded = session();
    for n in 0..1000 {
        esatto::instant!(TEST, "second", n = n);
    }
    let mut seen = 0;
    while seen == 0 {
        let part = recorded.read().wait().expect("is read");
        seen += esatto_trace::events(&part).len();
        std::thread::sleep(Duration::from_millis(1));
    }
    let (connects, connected) = mpsc::channel();
    let observation = esatto::observe_sessions(Connects(connects));
    let ended = std::thread::spawn(esatto::shutdown);
    assert!(connected.recv().expect("the observer is told"), "connecting meanwhile is no mistake");
    assert!(ended.join().expect("it does not panic"), "and does not hold up the end");
    drop((recorded, second, observation));

    let _third = connect();
    let recorded = session();
    esatto::instant!(TEST, "third");
    assert_eq!(esatto_trace::events(&recorded.stop().expect("stops")).len(), 1);
}
