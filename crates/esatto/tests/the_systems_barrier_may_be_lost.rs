//! A process that has already traced filters its system calls. After that, `membarrier` fails.
//! Threads trace while their sessions are flushed: nothing is lost, torn or out of order.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(missing_docs, reason = "tests")]

#[path = "../../instances/tests/seccomp/mod.rs"]
mod seccomp;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use esatto::schema::{DataSourceConfig, TraceConfig, TracePacketReader, trace_config};
use esatto::{Backend, BufferExhausted, DataSource, Session, Setup, Source, Tracing};
use esatto_protozero::{Fields, Value};

struct Numbers;

impl DataSource for Numbers {
    type Config = ();
    type ThreadState = u64;
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

static NUMBERS: Source<Numbers> = Source::new("test.numbers").buffer_exhausted(BufferExhausted::Stall);

const TRACING: usize = 3;
/// Flushes of the session while threads trace.
const FLUSHES: usize = 1_000;

/// Writes the next number of this thread, and a check value for the reader.
fn write(thread: usize) {
    NUMBERS.trace(|context| {
        let number = *context.thread_state();
        *context.thread_state() += 1;
        let text = format!("{thread} {number} {:x<1$}", "", (number % 40) as usize);
        context.packet(|packet| {
            packet.for_testing().str(&text);
        });
    });
}

#[test]
fn threads_keep_tracing_and_lose_nothing() {
    let _tracing = Tracing::builder().in_process().start().expect("connects");
    NUMBERS.register().expect("registers");
    let config = DataSourceConfig { name: Some("test.numbers".into()), ..Default::default() };
    let config = TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(256 << 10), ..Default::default() }],
        data_sources: vec![trace_config::DataSource { config: Some(Box::new(config)), ..Default::default() }],
        ..Default::default()
    };
    let session = Session::start(Backend::InProcess, config).expect("starts");
    let (have_traced, is_over) = (Barrier::new(TRACING + 2), AtomicBool::new(false));
    let is_lost = AtomicBool::new(false);
    let written: [AtomicUsize; TRACING + 1] = Default::default();
    let trace = std::thread::scope(|scope| {
        for thread in 0..TRACING {
            let (have_traced, is_over, is_lost, written) = (&have_traced, &is_over, &is_lost, &written[thread]);
            scope.spawn(move || {
                let mut count = 0;
                let mut write = || {
                    write(thread);
                    count += 1;
                };
                write();
                have_traced.wait();
                while !is_lost.load(Ordering::Relaxed) {
                    write();
                }
                while !is_over.load(Ordering::Relaxed) {
                    write();
                    // Lets flushes happen on a machine with few processors.
                    (0..200).for_each(|_| core::hint::spin_loop());
                }
                written.store(count, Ordering::SeqCst);
            });
        }
        // A thread that then sleeps and does not learn of the change.
        let (sleeps, is_asleep) = (&written[TRACING], &have_traced);
        let is_over = &is_over;
        scope.spawn(move || {
            write(TRACING);
            write(TRACING);
            sleeps.store(2, Ordering::SeqCst);
            is_asleep.wait();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        have_traced.wait();
        session.flush(None).wait().expect("flushes");
        seccomp::lose_membarrier();
        is_lost.store(true, Ordering::SeqCst);
        for _ in 0..FLUSHES {
            session.flush(None).wait().expect("flushes");
        }
        is_over.store(true, Ordering::SeqCst);
        // The sleeping thread may still exist.
        session
    })
    .stop()
    .expect("stops");

    let mut next = [0; TRACING + 1];
    for field in Fields::new(&trace) {
        let Value::Bytes(packet) = field.value else { continue };
        let packet = TracePacketReader::new(packet);
        assert_eq!(packet.previous_packet_dropped().filter(|&loss| loss > 1), None);
        let Some(text) = packet.for_testing().and_then(|event| event.str()) else { continue };
        let text = std::str::from_utf8(text).expect("is whole");
        let mut parts = text.splitn(3, ' ');
        let mut number = || parts.next().and_then(|number| number.parse::<usize>().ok()).expect("a number");
        let (thread, number) = (number(), number());
        assert_eq!(number, next[thread], "thread {thread}");
        assert_eq!(parts.next(), Some("x".repeat(number % 40).as_str()), "packet {number} of thread {thread}");
        next[thread] += 1;
    }
    assert_eq!(next, written.map(|count| count.into_inner()));
}
