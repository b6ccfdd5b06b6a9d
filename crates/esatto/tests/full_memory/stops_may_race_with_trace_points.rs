use core::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use esatto::{DataSource, Setup, Source};

use super::own_memory;
use super::recording::{config, start};

/// The number of live writers.
static STATES: AtomicI64 = AtomicI64::new(0);

struct Counted;

impl Default for Counted {
    fn default() -> Self {
        STATES.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        STATES.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Racer;

impl DataSource for Racer {
    type Config = ();
    type ThreadState = Counted;
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

static SOURCE: Source<Racer> = Source::new("test.racer");

#[test]
fn case_20_nothing_breaks_and_state_goes_with_its_writer() {
    let _memory = own_memory();
    SOURCE.register().expect("registers");
    static DONE: AtomicBool = AtomicBool::new(false);
    let threads: Vec<_> = (0..3)
        .map(|_| {
            std::thread::spawn(|| {
                while !DONE.load(Ordering::Relaxed) {
                    SOURCE.trace(|context| {
                        context.packet(|packet| {
                            packet.for_testing().str("race");
                        })
                    });
                }
            })
        })
        .collect();
    for _ in 0..30 {
        let session = start(config("test.racer", &[1, 2]));
        session.stop().expect("stops");
    }
    DONE.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("does not panic"));
    assert_eq!(STATES.load(Ordering::SeqCst), 0, "threads take their state along");
}
