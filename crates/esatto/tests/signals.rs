//! Signal handlers trace. The interrupted code decides whether the event is recorded or dropped,
//! and nothing hangs.

#![allow(missing_docs, reason = "tests")]
#![cfg(unix)]

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use esatto::{Arg, Backend, Category, Kind, Name, Session, SessionConfig, Site, Tracing};
use esatto_trace::{AnnotationValue, Event, Trace};

esatto::categories! {
    static TEST = "test";
    static HANDLER = "handler";
}

/// Categories that only the handler uses.
static NEW: [Category; 64] = [const { Category::new("new") }; 64];

/// A category that the handler uses first.
static LATE: Category = Category::new("late");

const SIGNAL: c_int = if cfg!(target_os = "linux") { 10 } else { 30 };

/// Events of the interrupted thread, during the storm of signals.
const AT_LEAST: u64 = 50_000;
const AT_MOST: u64 = 1_000_000;
/// Signals of each kind: recorded, and dropped.
const SIGNALS: u64 = 500;

unsafe extern "C" {
    safe fn signal(signal: c_int, handler: extern "C" fn(c_int)) -> usize;
    safe fn raise(signal: c_int) -> c_int;
    safe fn pthread_self() -> usize;
    fn pthread_kill(thread: usize, signal: c_int) -> c_int;
}

/// How often the handler has run, and how often its event was recorded.
static HANDLED: AtomicU64 = AtomicU64::new(0);
static RECORDED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: c_int) {
    static NAMES: [Name; 2] = [Name::new("n"), Name::new("twice")];
    static SITE: Site = Site::new(&HANDLER, Kind::Instant, Some("handler"), &NAMES);
    let n = HANDLED.fetch_add(1, Ordering::Relaxed);
    let sessions = esatto::record(&SITE, &mut [Arg::U64(n), Arg::U64(2 * n)]);
    RECORDED.fetch_add(u64::from(sessions != 0), Ordering::Relaxed);
    let _slice = esatto::slice!(category: &NEW[n as usize % NEW.len()], "in a new category", n = n);
}

/// Runs tests one by one, because the process has one handler and one tracing.
fn alone() -> impl Sized {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock();
    assert_ne!(signal(SIGNAL, handler), usize::MAX);
    alone
}

fn start() -> (Tracing, Session) {
    let tracing = Tracing::builder().in_process().shared_memory(4096, 0).categories(CATEGORIES).start().unwrap();
    let config = SessionConfig::new().buffer_size_kb(128 * 1024).stall();
    let session = Session::start(Backend::InProcess, config).unwrap();
    assert!(tracing.wait_until_enabled(&TEST, Duration::from_secs(60)));
    (tracing, session)
}

fn read(session: Session) -> Trace {
    let trace = Trace::read(&session.stop().unwrap()[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    trace
}

/// Returns the annotation `key` of all events with this name, in order.
fn numbers(trace: &Trace, name: &str, key: &str) -> Vec<u64> {
    let number = |event: &Event| {
        let annotation = event.annotations.iter().find(|annotation| annotation.name == key)?;
        let AnnotationValue::Uint(n) = annotation.value else { return None };
        Some(n)
    };
    let named = trace.events.iter().filter(|event| event.name.as_deref() == Some(name));
    named.map(|event| number(event).unwrap_or_else(|| panic!("{event:?}"))).collect()
}

#[test]
fn a_handler_inside_of_a_trace_point_is_not_recorded() {
    let _alone = alone();
    let (_tracing, session) = start();
    let before = HANDLED.load(Ordering::Relaxed);
    esatto::instant!(TEST, "lazy", |event| {
        raise(SIGNAL);
        esatto::instant!(category: &LATE, "nested");
        assert!(!LATE.is_enabled(), "the trace point would do nothing");
        event.annotate("after", 1_u64);
    });
    assert_eq!(HANDLED.load(Ordering::Relaxed), before + 1);
    esatto::instant!(category: &LATE, "no longer nested");
    let trace = read(session);
    assert_eq!(numbers(&trace, "lazy", "after"), [1]);
    let names: Vec<_> = trace.events.iter().filter_map(|event| event.name.as_deref()).collect();
    assert_eq!(names, ["lazy", "no longer nested"]);
}

#[test]
fn a_handler_between_trace_points_is_recorded() {
    let _alone = alone();
    let (_tracing, session) = start();
    let first = HANDLED.load(Ordering::Relaxed);
    esatto::instant!(TEST, "own", n = 0_u64);
    raise(SIGNAL);
    esatto::instant!(TEST, "own", n = 1_u64);
    // Also on a thread without an earlier trace point.
    std::thread::spawn(|| raise(SIGNAL)).join().unwrap();
    let trace = read(session);
    assert_eq!(numbers(&trace, "own", "n"), [0, 1]);
    for name in ["handler", "in a new category"] {
        assert_eq!(numbers(&trace, name, "n"), [first, first + 1], "{name}");
    }
    let slices = trace.slices.iter().filter(|slice| slice.name.as_deref() == Some("in a new category"));
    assert!(slices.map(|slice| slice.duration_ns.is_some()).eq([true, true]), "with their ends");
}

/// Ends the storm if the test panics. Otherwise the scope waits for the storm for ever.
struct EndOfStorm<'a>(&'a AtomicBool);

impl Drop for EndOfStorm<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn many_signals_do_not_damage_the_trace() {
    let _alone = alone();
    let (tracing, session) = start();
    let before = [&HANDLED, &RECORDED].map(|count| count.load(Ordering::Relaxed));
    let counts = || {
        // In this order: a signal between the two must not make the second count the smaller one.
        let recorded = RECORDED.load(Ordering::Relaxed) - before[1];
        let handled = HANDLED.load(Ordering::Relaxed) - before[0];
        (recorded, handled - recorded)
    };
    let over = AtomicBool::new(false);
    let thread = pthread_self();
    let own = std::thread::scope(|scope| {
        let _end = EndOfStorm(&over);
        let storm = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // SAFETY: the thread waits for this one before it ends.
                assert_eq!(unsafe { pthread_kill(thread, SIGNAL) }, 0);
            }
        });
        let mut n = 0;
        let has_seen_enough = || counts().0 >= SIGNALS && counts().1 >= SIGNALS;
        // The code in here may allocate only in trace points; otherwise the handler would wait for
        // the allocator.
        while n < AT_LEAST || (n < AT_MOST && !has_seen_enough()) {
            esatto::instant!(TEST, "own", n = n);
            n += 1;
            if n % 16 == 0 {
                // Takes the lock that new categories take.
                tracing.wait_until_enabled(&TEST, Duration::ZERO);
                // Takes the slow path. On one processor, signals arrive where this thread is
                // preempted: without the yield, hardly any event would be dropped.
                esatto::instant!(TEST, "closure", |event| {
                    if counts().1 < SIGNALS {
                        std::thread::yield_now();
                    }
                    event.annotate("n", n);
                });
                if counts().0 < SIGNALS {
                    std::thread::yield_now();
                }
            }
        }
        over.store(true, Ordering::Relaxed);
        storm.join().unwrap();
        n
    });
    let (recorded, dropped) = counts();
    println!("{own} events; of the handler's {recorded} were recorded, {dropped} dropped");
    let trace = read(session);
    assert!(numbers(&trace, "own", "n").into_iter().eq(0..own), "an event of the thread itself is missing");
    assert!(numbers(&trace, "closure", "n").into_iter().eq((1..=own / 16).map(|n| n * 16)));
    let ns = numbers(&trace, "handler", "n");
    assert!(ns.windows(2).all(|pair| pair[0] < pair[1]), "in their order, each once");
    assert!(ns.iter().all(|n| (before[0]..before[0] + recorded + dropped).contains(n)));
    assert_eq!(ns.len() as u64, recorded);
    assert!(recorded > 0 && dropped > 0);
    let twice: Vec<u64> = ns.iter().map(|n| 2 * n).collect();
    assert_eq!(numbers(&trace, "handler", "twice"), twice);
}
