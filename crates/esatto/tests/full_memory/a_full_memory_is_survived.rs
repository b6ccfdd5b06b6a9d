use std::sync::Mutex;
use std::time::Duration;

use esatto::data_source::FlushReason;
use esatto::{BufferExhausted, DataSource, Setup, Source};

use super::own_memory;
use super::recording::{config, packets, start};

/// More than the 256 KiB that writers and service share.
const BYTES: u64 = 2 << 20;

struct Flood;

/// How often packets began to be dropped, and whether the trace points found their state new.
static RESULT: Mutex<(u64, Vec<bool>)> = Mutex::new((0, Vec::new()));

impl DataSource for Flood {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

/// Runs on the thread that would empty the memory, so that it stays full.
static SOURCE: Source<Flood> = Source::new("test.flood").on_flush(|_, flush| {
    if flush.reason() != FlushReason::Explicit {
        return;
    }
    SOURCE.trace(|context| {
        let mut result = RESULT.lock().unwrap();
        result.1.push(context.is_state_new());
        let until = if result.0 == 0 { BYTES } else { context.written() + 10_000 };
        let text = if result.0 == 0 { "flood" } else { "after" }.repeat(100);
        while context.written() < until {
            context.packet(|packet| {
                packet.for_testing().str(&text);
            });
        }
        result.0 = context.drop_count();
    });
});

#[test]
fn case_21_drops_are_counted_and_marked() {
    let _memory = own_memory();
    const LOSS: u32 = 1 | 256;
    SOURCE.register().expect("registers");
    let session = start(config("test.flood", &[1]));
    for _ in 0..3 {
        session.flush(Some(Duration::from_secs(30))).wait().expect("flushes");
    }
    let trace = session.stop().expect("stops");
    let (drops, new) = RESULT.lock().unwrap().clone();
    assert_eq!(drops, 1);
    assert_eq!(new, [true, true, true], "at first, while it drops, and when it has recovered");
    let written = packets(&trace);
    let written: Vec<_> = written.iter().filter(|packet| packet.for_testing().is_some()).collect();
    let kept =
        written.iter().filter(|packet| packet.for_testing().unwrap().str().unwrap().starts_with(b"flood")).count();
    assert!((100..BYTES as usize / 500).contains(&kept), "{kept} packets");
    let marked: Vec<_> =
        (0..written.len()).filter(|&i| written[i].previous_packet_dropped().is_some_and(|v| v != 0)).collect();
    assert_eq!(marked, [kept], "the first one behind the gap");
    // The service adds the losses that it has seen itself.
    assert_eq!(written[kept].previous_packet_dropped().map(|causes| causes & LOSS), Some(LOSS));
}

static PATIENT: Source<Flood> = Source::new("test.patient").buffer_exhausted(BufferExhausted::Stall);

#[test]
fn a_data_source_that_stalls_loses_nothing() {
    let _memory = own_memory();
    PATIENT.register().expect("registers");
    let session = start(config("test.patient", &[1]));
    let text = "z".repeat(4000);
    for number in 0..2000_u64 {
        PATIENT.trace(|context| {
            context.packet(|packet| {
                packet.timestamp(number);
                packet.for_testing().str(&text);
            });
            assert_eq!(context.drop_count(), 0);
        });
    }
    let trace = session.stop().expect("stops");
    // The buffer of 4 MiB is a ring and holds the last ones.
    let numbers: Vec<_> =
        packets(&trace).iter().filter(|p| p.for_testing().is_some()).filter_map(|p| p.timestamp()).collect();
    assert!(numbers.len() > 500, "{}", numbers.len());
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    assert_eq!(numbers.last(), Some(&1999));
}
