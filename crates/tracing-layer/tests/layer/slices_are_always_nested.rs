use std::pin::pin;

use tracing::{Instrument, Span};

use super::{Yield, name, parts, poll, with_each};

esatto::categories! {
    static OWN = "own";
}

#[test]
fn in_order() {
    let work = || {
        let outer = tracing::info_span!("outer").entered();
        for _ in 0..2 {
            tracing::info_span!("inner").in_scope(|| assert!(!Span::current().is_disabled()));
        }
        assert_eq!(Span::current().id(), outer.id());
    };
    with_each(work, |front, trace| {
        let found: Vec<_> = trace.slices.iter().map(|slice| (name(slice), slice.depth)).collect();
        assert_eq!(found, [("outer", 0), ("inner", 1), ("inner", 1)], "{front:?}");
    });
}

#[test]
fn even_if_spans_are_left_in_another_order() {
    let work = || {
        let first = tracing::info_span!("first").entered();
        let second = tracing::info_span!("second").entered();
        drop(first);
        tracing::info_span!("third").in_scope(|| ());
        drop(second);
        tracing::info_span!("after").in_scope(|| ());
    };
    with_each(work, |front, trace| {
        let found: Vec<_> = trace.slices.iter().map(|slice| (name(slice), slice.depth)).collect();
        assert_eq!(found, [("first", 0), ("second", 1), ("third", 2), ("after", 0)], "{front:?}");
        assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()), "{front:?}");
    });
}

#[test]
fn even_if_a_span_is_entered_twice_at_once() {
    let work = || {
        let span = tracing::info_span!("recursive");
        span.in_scope(|| span.in_scope(|| tracing::info_span!("inner").in_scope(|| ())));
    };
    with_each(work, |front, trace| {
        let (_, slices) = parts(trace, "recursive");
        assert_eq!(slices.iter().map(|slice| slice.depth).collect::<Vec<_>>(), [0, 1], "{front:?}");
        assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()), "{front:?}");
    });
}

#[test]
fn even_if_a_thread_ends_inside_of_one() {
    let work = || {
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        let thread = std::thread::spawn(move || {
            tracing::dispatcher::with_default(&dispatch, || {
                std::mem::forget(tracing::info_span!("endless").entered());
                tracing::info_span!("inner").in_scope(|| ());
            });
        });
        thread.join().expect("does not panic");
    };
    with_each(work, |front, trace| {
        let (_, slices) = parts(trace, "inner");
        assert_eq!(slices.len(), 1, "{front:?}");
    });
}

#[test]
fn even_if_a_guard_ends_before_a_span_in_it() {
    let work = || {
        let before = esatto::losses().slice_ends;
        let guard = esatto::slice!(OWN, "guard");
        let span = tracing::info_span!("span").entered();
        drop(guard);
        {
            let _after = esatto::slice!(OWN, "after");
            drop(span);
            tracing::info_span!("in it").in_scope(|| ());
        }
        assert_eq!(esatto::losses().slice_ends - before, 1, "the span has ended with the guard");
    };
    with_each(work, |front, trace| {
        let found: Vec<_> = trace.slices.iter().map(|slice| (name(slice), slice.depth)).collect();
        assert_eq!(found, [("guard", 0), ("span", 1), ("after", 0), ("in it", 1)], "{front:?}");
        assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()), "{front:?}");
    });
}

#[test]
fn even_if_a_guard_is_kept_across_an_await() {
    let work = || {
        let future = async {
            let guard = esatto::slice!(OWN, "kept");
            Yield(1).await;
            drop(guard);
            let _step = esatto::slice!(OWN, "step");
        };
        let mut task = pin!(future.instrument(tracing::info_span!("task")));
        let before = esatto::losses().slice_ends;
        assert!(poll(task.as_mut()).is_none());
        assert!(poll(task.as_mut()).is_some());
        assert_eq!(esatto::losses().slice_ends - before, 1, "the guard has ended with the poll");
    };
    with_each(work, |front, trace| {
        let (_, polls) = parts(trace, "task");
        let [kept, step] = ["kept", "step"].map(|name| parts(trace, name).1[0]);
        let is_in = |inner: &esatto_trace::Slice, outer: &esatto_trace::Slice| {
            let end = |slice: &esatto_trace::Slice| slice.ts_ns + slice.duration_ns.expect("ends");
            outer.ts_ns <= inner.ts_ns && end(inner) <= end(outer)
        };
        assert!(is_in(kept, polls[0]) && is_in(step, polls[1]), "{front:?}");
        assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()), "{front:?}");
    });
}
