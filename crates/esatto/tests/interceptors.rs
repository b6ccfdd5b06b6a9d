//! Interceptors: row 37 of `docs/spec/client-library.md` §20. They have their own process, because
//! interceptors are registered for the whole process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::thread::ThreadId;

use esatto::interceptor;
use esatto::schema::{TraceConfig, TracePacketReader};
use esatto::{Backend, DataSource, Interceptor, Session, Setup, Source, Tracing};

esatto::categories! {
    static APP = "app";
}

static TRACING: LazyLock<Tracing> = LazyLock::new(|| Tracing::builder().in_process().start().expect("connects"));

/// Tests take turns, because there is one list of packets.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    LazyLock::force(&TRACING);
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn intercepted(mut config: TraceConfig, name: &str) -> TraceConfig {
    for source in &mut config.data_sources {
        source.config.as_mut().expect("is there").interceptor_config.get_or_insert_default().name = Some(name.into());
    }
    config
}

static CALLS: Mutex<Vec<&str>> = Mutex::new(Vec::new());
static PACKETS: Mutex<Vec<(ThreadId, u32, Vec<u8>)>> = Mutex::new(Vec::new());
static PANICS: AtomicU32 = AtomicU32::new(0);

fn call(what: &'static str) {
    CALLS.lock().unwrap().push(what);
}

struct Collector;

impl Interceptor for Collector {
    type ThreadState = u32;

    fn setup(_: &[u8]) -> Self {
        call("interceptor is set up");
        Self
    }

    fn start(&self) {
        call("interceptor starts");
    }

    fn stop(&self) {
        call("interceptor stops");
    }

    fn packet(&self, count: &mut u32, packet: &[u8]) {
        *count += 1;
        // Recursion does nothing.
        esatto::instant!(APP, "inside");
        PACKETS.lock().unwrap().push((std::thread::current().id(), *count, packet.to_vec()));
        if packet.windows(5).any(|bytes| bytes == b"PANIC") {
            PANICS.fetch_add(1, Ordering::SeqCst);
            panic!("as a test wants it");
        }
    }
}

struct Texts;

impl DataSource for Texts {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        call("source is set up");
        Self
    }

    fn start(&self) {
        call("source starts");
    }

    fn stop(&self, stop: esatto::Stop) {
        call("source stops");
        write("the end");
        stop.complete();
    }
}

static TEXTS: Source<Texts> = Source::new("test.texts");

fn write(text: &str) {
    TEXTS.trace(|context| {
        context.packet(|packet| {
            packet.for_testing().str(text);
        });
    });
}

#[test]
fn case_37_packets_come_in_order_and_the_service_gets_none() {
    let _turn = turn();
    interceptor::register::<Collector>("test_interceptor").expect("may be called this");
    interceptor::register::<Collector>("test_interceptor").expect("is ignored");
    TEXTS.register().expect("registers");
    let mut config = esatto::track_events(64);
    config.data_sources[0].config.as_mut().expect("is there").name = Some("test.texts".into());
    let session = Session::start(Backend::InProcess, intercepted(config, "test_interceptor")).expect("starts");
    // Spans several chunks of memory, so that lengths arrive later.
    let long = "long ".repeat(3000);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let long = &long;
            scope.spawn(move || {
                for number in 0..50 {
                    write(&format!("{thread} {number}"));
                }
                write(long);
                write("PANIC");
                write(&format!("{thread} last"));
            });
        }
    });
    let trace = session.stop().expect("stops");
    assert!(
        esatto_trace::packets(&trace)
            .all(|packet| { TracePacketReader::new(&packet.expect("is whole").bytes).for_testing().is_none() })
    );
    assert_eq!(PANICS.load(Ordering::SeqCst), 2);

    let mut sequences: BTreeMap<u32, (ThreadId, Vec<String>)> = BTreeMap::new();
    for (thread, count, packet) in PACKETS.lock().unwrap().drain(..) {
        assert_eq!(packet[0], 10 << 3, "the sequence comes first");
        let packet = TracePacketReader::new(&packet);
        let id = packet.trusted_packet_sequence_id().expect("is there");
        let (of, texts) = sequences.entry(id).or_insert_with(|| (thread, Vec::new()));
        assert_eq!((*of, texts.len() + 1), (thread, count as usize), "on the writer's thread, with its state");
        assert_eq!(packet.first_packet_on_sequence().unwrap_or(false), count == 1);
        let text = packet.for_testing().and_then(|test| test.str()).expect("is a test event");
        texts.push(String::from_utf8(text.to_vec()).expect("is text"));
    }
    assert_eq!(sequences.len(), 3, "two threads and the control thread");
    let mut by_thread: Vec<_> = sequences.into_values().map(|(_, texts)| texts).collect();
    by_thread.sort_unstable();
    for (thread, texts) in by_thread[..2].iter().enumerate() {
        let mut expected: Vec<_> = (0..50).map(|number| format!("{thread} {number}")).collect();
        expected.extend([long.clone(), "PANIC".into(), format!("{thread} last")]);
        assert_eq!(*texts, expected);
    }
    assert_eq!(by_thread[2], ["the end"]);
    let calls = core::mem::take(&mut *CALLS.lock().unwrap());
    assert_eq!(
        calls,
        [
            "interceptor is set up",
            "source is set up",
            "interceptor starts",
            "source starts",
            "interceptor stops",
            "source stops"
        ]
    );
}

#[test]
fn an_unknown_interceptor_is_ignored() {
    let _turn = turn();
    let session =
        Session::start(Backend::InProcess, intercepted(esatto::track_events(64), "etwexport")).expect("starts");
    esatto::instant!(APP, "to the service");
    let trace = session.stop().expect("stops");
    assert!(trace.windows(14).any(|bytes| bytes == b"to the service"));
    let error = interceptor::register::<Collector>("mine").expect_err("cannot be called this");
    assert_eq!(
        error.to_string(),
        "cannot register the interceptor `mine`: the name must be one of `console`, `test_interceptor`, `etwexport`"
    );
}
