use std::sync::{Arc, Mutex};

use esatto::schema::TestConfig;
use esatto::{Backend, DataSource, Field, Setup, Source, Stop};

use super::{config, start, texts};

static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn log(text: impl Into<String>) {
    LOG.lock().unwrap().push(text.into());
}

struct Logged {
    number: u32,
    instance: usize,
}

impl DataSource for Logged {
    type Config = Field<TestConfig, 1001>;
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(setup: &Setup<'_, Self::Config>) -> Self {
        let number = setup.config().message_count.expect("is in the config");
        assert_eq!(setup.common().name(), Some(&b"test.logged"[..]));
        assert_eq!((setup.backend(), setup.is_startup()), (&Backend::InProcess, false));
        SOURCE.trace(|_| log("traced before its start"));
        log(format!("setup {number}"));
        Self { number, instance: setup.instance() }
    }

    fn start(&self) {
        log(format!("start {}", self.number));
        write("from start");
    }

    fn stop(&self, stop: Stop) {
        assert_eq!(stop.instance(), self.instance);
        log(format!("stop {}", self.number));
        write("from stop");
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        log("drop");
    }
}

static SOURCE: Source<Logged> = Source::new("test.logged");

fn write(text: &str) {
    SOURCE.trace(|context| {
        let source = context.source().expect("has not ended");
        assert_eq!(source.instance, context.instance());
        let now = context.now_ns();
        context.packet(|packet| {
            packet.timestamp(now);
            packet.for_testing().str(text);
        });
        log(text);
    });
}

#[test]
fn case_8_setup_start_trace_stop() {
    SOURCE.register().expect("registers");
    SOURCE.register().expect("does nothing");
    write("before");
    for number in [7, 8] {
        let session = start(config("test.logged", &[number]));
        assert!(SOURCE.is_enabled());
        write("traced");
        let trace = session.stop().expect("stops");
        assert!(!SOURCE.is_enabled());
        write("after");
        let mut texts = texts(&trace);
        texts.sort_unstable();
        assert_eq!(texts, ["from start", "from stop", "traced"]);
        let log = std::mem::take(&mut *LOG.lock().unwrap());
        let [setup, start, stop] = ["setup", "start", "stop"].map(|what| format!("{what} {number}"));
        assert_eq!(log, [&setup[..], &start, "from start", "traced", &stop, "from stop", "drop"]);
    }
}

struct Held(#[allow(dead_code)] Arc<()>);

impl DataSource for Held {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self(HELD.lock().unwrap().clone().expect("is there"))
    }
}

static HELD: Mutex<Option<Arc<()>>> = Mutex::new(None);
static HOLDER: Source<Held> = Source::new("test.held");

#[test]
fn case_17_an_instance_lives_as_long_as_it_is_referenced() {
    HOLDER.register().expect("registers");
    let token = Arc::new(());
    *HELD.lock().unwrap() = Some(Arc::clone(&token));
    let session = start(config("test.held", &[1]));
    let mut held = None;
    HOLDER.trace(|context| held = context.source());
    assert_eq!(HOLDER.instances().count(), 1);
    let mut session = Some(session);
    HOLDER.trace(|context| {
        assert!(context.source().is_some());
        let session = session.take().expect("is called once");
        // From another thread, because the end of a session flushes the thread that requests it.
        let stopped = std::thread::spawn(move || session.stop().map(|_| ())).join().expect("does not panic");
        stopped.expect("stops");
        assert!(context.source().is_none(), "it has ended while the trace point was inside");
        context.packet(|packet| {
            packet.timestamp(1);
        });
    });
    assert_eq!(HOLDER.instances().count(), 0);
    HOLDER.trace(|_| panic!("it has ended"));
    assert_eq!(Arc::strong_count(&token), 3, "this, the static, and the one held");
    drop(held);
    assert_eq!(Arc::strong_count(&token), 2);
}
