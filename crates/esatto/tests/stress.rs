//! Threads use every feature while sessions start, are flushed, and stop. Nothing is lost and
//! nothing is out of order.
//!
//! `ESATTO_STRESS_SECONDS` sets the duration. `cargo xtask soak asan` runs it for a minute under
//! AddressSanitizer.

#![allow(missing_docs, reason = "tests")]

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use esatto::schema::data_source_config::BufferExhaustedPolicy;
use esatto::schema::{DataSourceConfig, trace_config};
use esatto::{
    Backend, Category, CounterTrack, Flow, LogPriority, Session, SessionConfig, Setup, Source, StateTrack, Tracing,
    Track, Unit,
};
use esatto_trace::{AnnotationValue, EventType, Trace};

esatto::categories! {
    static WORK = "work";
    static DETAIL = "work.detail", "Every little thing", tags: ["slow"];
}

const THREADS: u64 = 8;
const SESSIONS_AT_A_TIME: usize = 3;

static QUEUE: CounterTrack = CounterTrack::new("queue").unit(Unit::Count);
static SENT: CounterTrack = CounterTrack::new("sent").incremental();
static LINK: StateTrack = StateTrack::new("link");

/// A custom data source whose packets contain the same numbers as the events.
struct Numbers;

impl esatto::DataSource for Numbers {
    type Config = ();
    type ThreadState = u64;
    type IncrementalState = bool;

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

static NUMBERS: Source<Numbers> = Source::new("numbers");

fn seconds() -> u64 {
    std::env::var("ESATTO_STRESS_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3)
}

/// The work of a thread. Every event of the thread's own track has the next number of its category,
/// because a session that begins or ends switches one category after the other.
struct Worker {
    thread: u64,
    number: u64,
    detail: u64,
    lane: Track,
    dynamic: &'static Category,
}

impl Worker {
    fn new(thread: u64) -> Self {
        let lane = Track::with_name("lane", thread).child_of(&Track::with_name("lanes", 0));
        Self { thread, number: 0, detail: 0, lane, dynamic: Category::dynamic(&format!("worker.{thread}")) }
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn next_detail(&mut self) -> u64 {
        self.detail += 1;
        self.detail
    }

    fn round(&mut self) {
        let (thread, n) = (self.thread, self.next());
        let flow = Flow::process(thread << 32 | n);
        {
            let _slice = esatto::slice!(WORK, "slice", n = n, flow: flow);
            let n = self.next();
            let text =
                "a text that is too long for the short way, so that it is written in the ordinary one, over chunks"
                    .repeat(2);
            let _inner = esatto::slice!(WORK, dynamic: format!("inner {}", n % 7), n = n, text = &text);
            let n = self.next();
            esatto::instant!(WORK, "instant", n = n, half = 0.5, yes = true, at = &raw const self.number, end_flow: flow);
        }
        let n = self.next_detail();
        esatto::instant!(
            DETAIL,
            "dictionary",
            n = n,
            size = esatto::dict(|d| {
                d.add("width", 3).list("parts").push("a").push(2_u64);
            })
        );
        let n = self.next();
        esatto::instant!(WORK, "message", n = n, |event| {
            event.log(LogPriority::Info, "all is well", Some(esatto::here!()));
            event.correlate(thread);
            event.annotate("again", esatto::interned("the same text every time"));
        });
        esatto::counter!(WORK, &QUEUE, n % 100);
        esatto::counter!(WORK, &SENT, n as i64);
        esatto::state!(WORK, &LINK, "up", thread = thread);
        esatto::begin!(WORK, track: &self.lane, "on a lane", n = n);
        esatto::end!(WORK, track: &self.lane);
        esatto::instant!(category: self.dynamic, "dynamic category", thread = thread);
        NUMBERS.trace(|context| {
            *context.thread_state() += 1;
            context.packet(|packet| {
                packet.for_testing().seq_value(u32::try_from(n).unwrap_or(0)).str("numbers");
            });
        });
        // Inside a trace point nothing is recorded.
        let n = self.next_detail();
        esatto::instant!(DETAIL, "outer", n = n, |_event| esatto::instant!(WORK, "never"));
    }
}

fn config(n: u64) -> SessionConfig {
    let numbers = DataSourceConfig {
        name: Some("numbers".into()),
        buffer_exhausted_policy: Some(BufferExhaustedPolicy::BUFFER_EXHAUSTED_STALL_THEN_DROP),
        ..Default::default()
    };
    let config = SessionConfig::new().buffer_size_kb(64 << 10).categories(["*"]).tags(["slow"]).stall();
    config.data_source(numbers).edit(|config| {
        if n % 3 == 0 {
            let clear = trace_config::IncrementalStateConfig { clear_period_ms: Some(20), ..Default::default() };
            config.incremental_state_config = Some(clear);
        }
    })
}

/// Records for a while and checks the trace.
fn session(n: u64, events: &AtomicU64) {
    let session = Session::start(Backend::InProcess, config(n)).expect("starts");
    let mut bytes = Vec::new();
    for part in 0..n % 4 {
        std::thread::sleep(Duration::from_millis(10 * part));
        session.flush(Some(Duration::from_secs(60))).wait().expect("is flushed");
        bytes.extend(session.read().wait().expect("is read"));
    }
    bytes.extend(session.stop().expect("stops"));
    check(&Trace::read(&bytes[..]), events);
}

fn check(trace: &Trace, total: &AtomicU64) {
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    // A session may begin between `begin!` and `end!`.
    let problems: Vec<_> = trace.problems.iter().filter(|(name, _)| **name != "slice_ends_without_begin").collect();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(trace.skipped_packets, 0);
    let mut numbers = BTreeMap::<(i64, &[String]), Vec<u64>>::new();
    for event in &trace.events {
        assert_ne!(event.name.as_deref(), Some("never"));
        let on_lane = event.name.as_deref() == Some("on a lane");
        let is_counted = matches!(event.event_type, EventType::SliceBegin | EventType::Instant) && !on_lane;
        let n = event.annotations.iter().find(|a| a.name == "n").map(|a| &a.value);
        if let (true, Some(AnnotationValue::Uint(n)), Some(tid)) = (is_counted, n, event.tid) {
            numbers.entry((tid, &event.categories)).or_default().push(*n);
        }
    }
    for (of, numbers) in &mut numbers {
        numbers.sort_unstable();
        let gap = numbers.windows(2).find(|w| w[1] != w[0] + 1);
        assert_eq!(gap, None, "{of:?} lost or doubled an event");
        total.fetch_add(numbers.len() as u64, Ordering::Relaxed);
    }
}

#[test]
fn nothing_is_lost() {
    NUMBERS.register().expect("is registered");
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start().unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let events = AtomicU64::new(0);
    let sessions = AtomicU64::new(0);
    let end = Instant::now() + Duration::from_secs(seconds());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let done = Arc::clone(&done);
            scope.spawn(move || {
                let mut worker = Worker::new(thread);
                while !done.load(Ordering::Relaxed) {
                    if thread % 2 == 0 {
                        worker.round();
                    } else {
                        // On a thread that starts and ends.
                        std::thread::scope(|scope| {
                            scope.spawn(|| (0..20).for_each(|_| worker.round()));
                        });
                    }
                    // The sessions are read on the same two processors.
                    std::thread::sleep(Duration::from_micros(300));
                }
            });
        }
        let controllers: Vec<_> = (0..SESSIONS_AT_A_TIME)
            .map(|_| {
                scope.spawn(|| {
                    while Instant::now() < end {
                        session(sessions.fetch_add(1, Ordering::Relaxed), &events);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = controllers.into_iter().map(|controller| controller.join()).collect();
        done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.expect("a controller does not panic"));
    });
    let (events, sessions) = (events.load(Ordering::Relaxed), sessions.load(Ordering::Relaxed));
    println!("{sessions} sessions, {events} numbered events, none missing");
    assert!(sessions >= SESSIONS_AT_A_TIME as u64 && events > 0);
}
