//! `begin!` and `end!` that do not match ruin no slice of a guard around them.

#![allow(missing_docs, reason = "tests")]

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use esatto::{Backend, Session, Tracing, losses};
use esatto_trace::{EventType, Slice, Trace};

esatto::categories! {
    static APP = "app";
    static OTHER = "other";
}

static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

static TRACING: LazyLock<Tracing> = LazyLock::new(|| {
    let note = |line: &str| NOTICES.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    Tracing::builder().in_process().notices(note).start().expect("connects")
});

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(category: &'static esatto::Category) -> Session {
    LazyLock::force(&TRACING);
    let session =
        Session::start(Backend::InProcess, esatto::SessionConfig::new().categories([category.name()])).expect("starts");
    assert!(TRACING.wait_until_enabled(category, Duration::from_secs(10)));
    session
}

fn stop(session: Session) -> Trace {
    let trace = Trace::read(&session.stop().expect("stops")[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    trace
}

/// Returns the trace of `work`, and the number of ends that were wrong.
fn record(work: impl FnOnce()) -> (Trace, u64) {
    let _turn = turn();
    let session = start(&APP);
    let before = losses().slice_ends;
    work();
    (stop(session), losses().slice_ends - before)
}

fn slice<'t>(trace: &'t Trace, name: &str) -> &'t Slice {
    trace.slices.iter().find(|slice| slice.name.as_deref() == Some(name)).expect("is in the trace")
}

/// Returns the names of the slices with their depths below the first one, in the order of their
/// begins. A slice without an end has a `*`.
fn tree(trace: &Trace) -> String {
    let mut slices: Vec<&Slice> = trace.slices.iter().collect();
    slices.sort_by_key(|slice| (slice.ts_ns, slice.depth));
    let name = |slice: &&Slice| {
        let open = if slice.duration_ns.is_none() { "*" } else { "" };
        format!(
            "{}{}{open}",
            ".".repeat((slice.depth - slices[0].depth) as usize),
            slice.name.as_deref().unwrap_or("?")
        )
    };
    slices.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn ends(trace: &Trace) -> usize {
    trace.events.iter().filter(|event| event.event_type == EventType::SliceEnd).count()
}

fn pause() {
    std::thread::sleep(Duration::from_millis(2));
}

fn is_noticed(words: &[&str]) -> bool {
    let notices = NOTICES.lock().unwrap_or_else(PoisonError::into_inner);
    notices.iter().filter(|line| words.iter().all(|word| line.contains(word))).count() == 1
}

#[test]
fn a_slice_without_end_ends_with_the_guard_around_it() {
    fn job(fail: bool) -> Result<(), ()> {
        let _job = esatto::slice!(APP, "job");
        esatto::begin!(APP, "step", fail = fail);
        if fail {
            Err(())?;
        }
        esatto::end!(APP);
        Ok(())
    }
    let (trace, wrong) = record(|| (0..4).for_each(|i| assert_eq!(job(i % 2 == 1).is_err(), i % 2 == 1)));
    assert_eq!(tree(&trace), "job .step job .step job .step job .step");
    assert_eq!((wrong, ends(&trace)), (2, 8));
    assert!(is_noticed(&["`app`", "has no `end!`"]), "once, {NOTICES:?}");
}

#[test]
fn an_end_without_begin_does_not_end_the_slice_of_a_guard() {
    let (trace, wrong) = record(|| {
        let _outer = esatto::slice!(APP, "outer");
        {
            let _inner = esatto::slice!(APP, "inner");
            esatto::end!(APP);
            esatto::end!(APP, result = 1);
            esatto::end!(category: &APP);
            pause();
        }
        pause();
    });
    assert_eq!(tree(&trace), "outer .inner");
    assert_eq!((wrong, ends(&trace)), (3, 2));
    assert!(slice(&trace, "inner").duration_ns >= Some(2_000_000));
    assert!(slice(&trace, "outer").duration_ns >= Some(4_000_000));
    assert!(is_noticed(&["`end!(app)` is ignored"]), "{NOTICES:?}");
}

#[test]
fn an_end_inside_of_a_guard_does_not_end_what_began_before_it() {
    let (trace, wrong) = record(|| {
        esatto::begin!(APP, "whole");
        {
            let _guard = esatto::slice!(APP, "guard");
            esatto::end!(APP);
        }
        esatto::instant!(APP, "later");
        esatto::end!(APP);
    });
    assert_eq!(tree(&trace), "whole .guard .later");
    assert_eq!((wrong, ends(&trace)), (1, 2));
}

#[test]
fn other_functions_may_end_what_was_begun() {
    fn begin() {
        esatto::begin!(APP, "outer");
        esatto::begin!(category: &APP, "inner", n = 1);
    }
    fn end() {
        esatto::end!(category: &APP, n = 2);
        esatto::end!(APP);
    }
    let (trace, wrong) = record(|| {
        begin();
        end();
        let _guard = esatto::slice!(APP, "guard");
        begin();
        end();
    });
    assert_eq!(tree(&trace), "outer .inner guard .outer ..inner");
    assert_eq!((wrong, ends(&trace)), (0, 5));
}

#[test]
fn other_tracks_have_nothing_to_do_with_guards() {
    static TRACK: esatto::Track = esatto::Track::with_name("other", 1);
    let (trace, wrong) = record(|| {
        {
            let _guard = esatto::slice!(APP, "guard");
            esatto::begin!(APP, track: &TRACK, "there");
            esatto::begin!(category: &APP, track: &TRACK, "inner", n = 1);
        }
        let _guard = esatto::slice!(APP, "later");
        esatto::end!(APP, track: &TRACK);
        esatto::end!(category: &APP, track: &TRACK);
    });
    assert_eq!((wrong, ends(&trace), trace.slices.len()), (0, 4, 4));
    assert_eq!(slice(&trace, "inner").depth, slice(&trace, "there").depth + 1);
    assert_eq!(slice(&trace, "later").depth, slice(&trace, "guard").depth);
    let end = |name: &str| slice(&trace, name).ts_ns + slice(&trace, name).duration_ns.expect("has an end");
    assert!(end("there") > end("guard"));
}

#[test]
fn categories_that_are_off_are_not_on_the_stack() {
    let (trace, wrong) = record(|| {
        let _off = esatto::slice!(OTHER, "off");
        esatto::begin!(APP, "on");
        {
            let _guard = esatto::slice!(APP, "guard");
            esatto::begin!(OTHER, "off");
            esatto::end!(OTHER);
        }
        esatto::end!(APP);
    });
    assert_eq!(tree(&trace), "on .guard");
    assert_eq!((wrong, ends(&trace)), (0, 2));
}

#[test]
fn each_session_has_its_own_slices() {
    let _turn = turn();
    let before = losses().slice_ends;
    let first = start(&APP);
    let outer = esatto::slice!(APP, "outer");
    esatto::begin!(APP, "in the first");
    let second = start(&APP);
    {
        let _guard = esatto::slice!(APP, "guard");
        esatto::begin!(APP, "in both");
        esatto::end!(APP);
    }
    esatto::begin!(APP, "forgotten");
    drop(outer);
    esatto::instant!(APP, "later");
    let (first, second) = (stop(first), stop(second));
    assert_eq!(tree(&first), "outer .in the first ..guard ...in both ..forgotten later");
    assert_eq!(tree(&second), "guard .in both forgotten later");
    assert_eq!(losses().slice_ends - before, 2, "`in the first` and `forgotten`");
}

#[test]
fn sessions_may_come_and_go_inside_of_a_guard() {
    let _turn = turn();
    let before = losses().slice_ends;
    let first = start(&APP);
    let _main = esatto::slice!(APP, "main");
    let _loop = esatto::slice!(APP, "loop");
    esatto::begin!(APP, "cut");
    let first = stop(first);
    esatto::end!(APP);
    assert_eq!(tree(&first), "main* .loop* ..cut*");
    for _ in 0..3 {
        esatto::begin!(APP, "before the session");
        let session = start(&APP);
        esatto::end!(APP);
        {
            let _guard = esatto::slice!(APP, "guard");
            esatto::begin!(APP, "step");
            esatto::end!(APP);
        }
        esatto::begin!(APP, "cut");
        let trace = stop(session);
        esatto::end!(APP);
        assert_eq!(tree(&trace), "guard .step cut*");
    }
    assert_eq!(losses().slice_ends, before, "each `begin!` had its `end!`");
}
