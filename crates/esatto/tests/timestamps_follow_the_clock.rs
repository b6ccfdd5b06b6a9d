//! Timestamps of events are between the readings of `CLOCK_BOOTTIME` before and after them, within
//! a microsecond. They do not run backwards.
//!
//! `ESATTO_CLOCK_SECONDS` sets the duration; `cargo xtask soak clock` takes minutes.

#![allow(missing_docs, reason = "tests")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use esatto::{Backend, Session, Tracing};
use esatto_trace::{Annotation, AnnotationValue};
use rustix::time::{ClockId, clock_gettime};

esatto::categories! {
    static TEST = "clock";
}

/// The largest error of a timestamp.
const TOLERANCE_NS: i64 = 1000;

fn boot_ns() -> u64 {
    let t = clock_gettime(ClockId::Boottime);
    t.tv_sec.unsigned_abs() * 1_000_000_000 + t.tv_nsec.unsigned_abs()
}

fn seconds() -> u64 {
    std::env::var("ESATTO_CLOCK_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3)
}

#[test]
fn timestamps_are_within_a_microsecond_of_the_clock() {
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start().unwrap();
    let session = Session::start(Backend::InProcess, esatto::track_events(64 << 10)).unwrap();
    // Bursts with pauses of every length: the line is renewed both in use and after its end.
    let writers = [60_u64, 1700, 20_000, 300_000].map(|pause_us| {
        let writer = std::thread::spawn(move || {
            let mut brackets = Vec::new();
            let end = Instant::now() + Duration::from_secs(seconds());
            while Instant::now() < end {
                for _ in 0..3 {
                    let before = boot_ns();
                    esatto::instant!(TEST, "now", pause_us = pause_us);
                    brackets.push((before, boot_ns()));
                }
                std::thread::sleep(Duration::from_micros(pause_us));
            }
            brackets
        });
        (pause_us, writer)
    });
    let expected = writers.map(|(pause_us, writer)| (pause_us, writer.join().unwrap()));
    let mut events = esatto_trace::events(&session.stop().unwrap());
    // In the order of writing.
    events.sort_by_key(|event| event.offset);
    let mut written = BTreeMap::<u64, Vec<i64>>::new();
    for event in events.iter().filter(|event| event.name.as_deref() == Some("now")) {
        match event.annotations[..] {
            [Annotation { value: AnnotationValue::Uint(pause_us), .. }] => {
                written.entry(pause_us).or_default().push(event.ts_ns);
            }
            _ => panic!("{event:?}"),
        }
    }
    for (pause_us, brackets) in &expected {
        let times = &written[pause_us];
        assert_eq!(times.len(), brackets.len());
        assert!(times.is_sorted());
        for (&time, &(before, after)) in times.iter().zip(brackets) {
            let (early, late) = (before as i64 - time, time - after as i64);
            assert!(early <= TOLERANCE_NS && late <= TOLERANCE_NS, "{early} ns early, {late} ns late");
        }
    }
}
