use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use esatto::data_source::{CloneTarget, FlushInitiator, FlushReason};
use esatto::{DataSource, Flush, Setup, Source};

use super::{config, start, texts, wait_until};

struct Keeper;

static FLUSHES: Mutex<Vec<Flush>> = Mutex::new(Vec::new());
static CALLS: AtomicU32 = AtomicU32::new(0);

impl DataSource for Keeper {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

static SOURCE: Source<Keeper> = Source::new("test.keeper").on_flush(|_, flush| {
    let call = CALLS.fetch_add(1, Ordering::SeqCst);
    if flush.reason() != FlushReason::Explicit {
        return;
    }
    assert_eq!((flush.initiator(), flush.clone_target()), (FlushInitiator::Consumer, CloneTarget::Unknown));
    SOURCE.trace(|context| {
        context.packet(|packet| {
            packet.for_testing().str(format!("kept back {call}"));
        })
    });
    FLUSHES.lock().unwrap().push(flush);
});

#[test]
fn case_13_an_acknowledgement_can_be_delayed() {
    SOURCE.register().expect("registers");
    let session = start(config("test.keeper", &[1]));

    // A second source holds back only its own acknowledgement.
    let other = std::thread::spawn(|| {
        wait_until("the flush", || !FLUSHES.lock().unwrap().is_empty());
        std::thread::sleep(Duration::from_millis(50));
        let flush = FLUSHES.lock().unwrap().pop().expect("was there");
        flush.complete();
    });
    session.flush(Some(Duration::from_secs(30))).wait().expect("is acknowledged");
    other.join().expect("does not panic");
    assert_eq!(texts(&session.read().wait().expect("reads")), ["kept back 0"], "it is there at once");

    assert!(session.flush(Some(Duration::from_millis(20))).wait().is_err(), "nobody acknowledges this one");
    let forgotten = FLUSHES.lock().unwrap().pop().expect("was there");
    // The older flush holds the newer one back.
    wait_until("the second flush times out", || session.flush(Some(Duration::from_millis(20))).wait().is_err());
    drop(FLUSHES.lock().unwrap().pop().expect("was there"));
    drop(forgotten);
    let other = std::thread::spawn(|| {
        wait_until("the flush", || !FLUSHES.lock().unwrap().is_empty());
        FLUSHES.lock().unwrap().clear();
    });
    session.flush(Some(Duration::from_secs(30))).wait().expect("is acknowledged");
    other.join().expect("does not panic");
    session.stop().expect("stops");
}
