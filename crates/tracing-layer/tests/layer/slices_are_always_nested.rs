use tracing::Span;

use super::{name, parts, with_each};

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
