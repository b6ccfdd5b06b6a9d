//! A data source delays its stop. Once the stop is complete, trace points that begin do not record
//! into the instance, even before the control thread has processed it.

#![allow(missing_docs, reason = "tests")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use esatto::schema::{DataSourceConfig, TraceConfig, trace_config};
use esatto::{Backend, DataSource, Session, Setup, Source, Stop, Tracing};

/// Its stop keeps the control thread busy until the test has seen enough.
struct Busy;

static STOPS: Mutex<Vec<Stop>> = Mutex::new(Vec::new());
static HAS_SEEN: AtomicBool = AtomicBool::new(false);

impl DataSource for Busy {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }

    fn stop(&self, stop: Stop) {
        STOPS.lock().unwrap().push(stop);
        wait_until("the test", || HAS_SEEN.load(Ordering::SeqCst));
    }
}

static SOURCE: Source<Busy> = Source::new("test.busy");

fn turns() -> usize {
    let mut turns = 0;
    SOURCE.trace(|_| turns += 1);
    turns
}

#[test]
fn a_stopped_instance_records_no_more() {
    let _tracing = Tracing::builder().in_process().start().expect("connects");
    SOURCE.register().expect("registers");
    let session = Session::start(Backend::InProcess, config()).expect("starts");
    let completing = std::thread::spawn(|| {
        wait_until("the stop", || !STOPS.lock().unwrap().is_empty());
        let mut instance = None;
        SOURCE.trace(|context| {
            // A thread inside a trace point keeps the instance alive.
            instance = context.source();
            let stop = STOPS.lock().unwrap().pop().expect("was there");
            let elsewhere = std::thread::spawn(move || {
                assert_eq!(turns(), 1, "it records until it has ended");
                stop.complete();
                turns()
            });
            let later = elsewhere.join();
            HAS_SEEN.store(true, Ordering::SeqCst);
            assert_eq!(later.expect("does not panic"), 0, "although this thread is still inside");
        });
        assert!(instance.is_some());
    });
    session.stop().expect("stops");
    completing.join().expect("does not panic");
}

fn config() -> TraceConfig {
    let config = DataSourceConfig { name: Some("test.busy".into()), ..Default::default() };
    TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(64), ..Default::default() }],
        data_sources: vec![trace_config::DataSource { config: Some(Box::new(config)), ..Default::default() }],
        ..Default::default()
    }
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}
