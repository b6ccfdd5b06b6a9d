//! A guard that is dropped on another thread, or out of order, ends no slice of another guard.

#![allow(missing_docs, reason = "tests")]

use std::future::Future;
use std::pin::Pin;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use esatto::{Backend, Session, SliceGuard, Tracing, losses};
use esatto_trace::{Slice, Trace};

esatto::categories! { static APP = "app"; }

static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

static TRACING: LazyLock<Tracing> = LazyLock::new(|| {
    let note = |line: &str| NOTICES.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    Tracing::builder().in_process().notices(note).start().expect("connects")
});

/// Returns the trace of `work`, and the number of ends that were not recorded.
fn record(work: impl FnOnce()) -> (Trace, u64) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn: MutexGuard<'_, ()> = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    LazyLock::force(&TRACING);
    let session = Session::start(Backend::InProcess, esatto::track_events(1024)).expect("starts");
    assert!(TRACING.wait_until_enabled(&APP, Duration::from_secs(10)));
    let before = losses().slice_ends;
    work();
    let ignored = losses().slice_ends - before;
    let trace = Trace::read(&session.stop().expect("stops")[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    (trace, ignored)
}

fn slice<'t>(trace: &'t Trace, name: &str) -> &'t Slice {
    trace.slices.iter().find(|slice| slice.name.as_deref() == Some(name)).expect("is in the trace")
}

fn end_ns(slice: &Slice) -> i64 {
    slice.ts_ns + slice.duration_ns.expect("has an end")
}

/// Names of the slices whose ends are later than that of `name`.
fn ended_after<'t>(trace: &'t Trace, name: &str) -> Vec<&'t str> {
    let end = end_ns(slice(trace, name));
    let later = trace.slices.iter().filter(|slice| end_ns(slice) > end);
    let mut names: Vec<&str> = later.filter_map(|slice| slice.name.as_deref()).collect();
    names.sort_unstable();
    names
}

fn pause() {
    std::thread::sleep(Duration::from_millis(2));
}

/// Sends a guard as no program should.
struct Forced(SliceGuard);

// SAFETY: none, but a guard has no pointers to its thread.
unsafe impl Send for Forced {}

#[test]
fn a_guard_of_another_thread_ends_nothing_here() {
    let (trace, ignored) = record(|| {
        let outer = esatto::slice!(APP, "outer");
        let moved = Forced(esatto::slice!(APP, "moved"));
        let drop_there = move || {
            let _own = esatto::slice!(APP, "own");
            drop({ moved }.0);
            pause();
            let _inner = esatto::slice!(APP, "inner");
        };
        std::thread::spawn(drop_there).join().expect("does not panic");
        pause();
        drop(outer);
    });
    assert_eq!(ignored, 1);
    assert_eq!(trace.slices.len(), 4);
    let (own, inner) = (slice(&trace, "own"), slice(&trace, "inner"));
    assert_eq!(inner.depth, own.depth + 1, "the guard that came from elsewhere did not end `own`");
    assert!(own.duration_ns >= Some(2_000_000), "{own:?}");
    assert_eq!(slice(&trace, "moved").depth, slice(&trace, "outer").depth + 1);
    assert!(ended_after(&trace, "own").contains(&"moved"), "it ends with the slice around it");
    let notices = NOTICES.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(notices.iter().any(|line| line.contains("`app`") && line.contains("async_slice!")), "{notices:?}");
}

#[test]
fn futures_of_one_thread_that_keep_guards_do_not_swap_their_ends() {
    /// Is ready when it is polled for the second time.
    struct Wait(bool);
    impl Future for Wait {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            pause();
            if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
        }
    }
    async fn keep(name: &'static str) {
        let _kept = esatto::slice!(APP, dynamic: name);
        Wait(false).await;
    }
    let (trace, ignored) = record(|| {
        let outer = esatto::slice!(APP, "outer");
        let mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> =
            ["first", "second", "third"].map(|name| Box::pin(keep(name)) as _).into();
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..2 {
            tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
        }
        assert!(tasks.is_empty());
        pause();
        {
            let _next = esatto::slice!(APP, "next");
        }
        drop(outer);
    });
    assert_eq!(ignored, 2, "`second` and `third` had ended with `first`");
    assert_eq!(ended_after(&trace, "first"), ["next", "outer"]);
    assert_eq!(slice(&trace, "next").depth, slice(&trace, "outer").depth + 1);
    assert_eq!(trace.slices.len(), 5);
    let ends = trace.events.iter().filter(|event| event.event_type == esatto_trace::EventType::SliceEnd).count();
    assert_eq!(ends, 5, "one for each slice");
}

#[test]
fn a_forgotten_guard_ends_with_the_slice_around_it() {
    let (trace, ignored) = record(|| {
        for _ in 0..3 {
            let _outer = esatto::slice!(APP, "outer");
            std::mem::forget(esatto::slice!(APP, "forgotten"));
        }
    });
    assert_eq!(ignored, 0);
    assert_eq!(trace.slices.len(), 6);
    let depth = trace.slices.iter().map(|slice| slice.depth).max();
    assert_eq!(depth, Some(slice(&trace, "outer").depth + 1));
    assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()));
}

#[test]
fn deeper_slices_than_a_thread_remembers_have_their_own_ends() {
    fn recurse(left: u32) {
        let _slice = esatto::slice!(APP, "level", left = left);
        if left != 0 {
            recurse(left - 1);
        }
    }
    let (trace, ignored) = record(|| recurse(99));
    assert_eq!(ignored, 0);
    assert_eq!(trace.slices.len(), 100);
    let mut ends: Vec<_> = trace.slices.iter().map(|slice| (slice.depth, end_ns(slice))).collect();
    ends.sort_unstable();
    assert_eq!(ends.last().map(|(depth, _)| *depth), Some(ends[0].0 + 99));
    assert!(ends.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{ends:?}");
}

#[test]
fn a_guard_of_a_slice_on_a_track_may_end_it_on_another_thread() {
    static TRACK: esatto::Track = esatto::Track::with_name("request", 1);
    let (trace, ignored) = record(|| {
        let request = esatto::slice!(APP, track: &TRACK, "request");
        let end_there = move || {
            let _own = esatto::slice!(APP, "own");
            drop(request);
            pause();
        };
        std::thread::spawn(end_there).join().expect("does not panic");
    });
    assert_eq!(ignored, 0);
    assert_eq!(ended_after(&trace, "request"), ["own"]);
}
