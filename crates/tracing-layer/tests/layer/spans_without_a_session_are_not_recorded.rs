use super::{FRONTS, Front, name, nobody, record, turn};

#[test]
fn not_even_by_sessions_that_start_later() {
    for front in FRONTS {
        let dispatch = front.dispatch();
        let quiet = turn();
        let (before, inside) = tracing::dispatcher::with_default(&dispatch, || {
            let before = tracing::info_span!("before").entered();
            (before, tracing::info_span!("not entered"))
        });
        drop(quiet);
        let trace = record(&dispatch, || {
            inside.in_scope(|| ());
            drop(inside);
            drop(before);
            for _ in 0..2 {
                tracing::info_span!("during").in_scope(|| ());
            }
        });
        let names: Vec<_> = trace.slices.iter().map(name).collect();
        assert_eq!(names, ["during", "during"], "{front:?}");
    }
}

#[test]
fn open_spans_of_one_session_are_in_the_next() {
    for front in FRONTS {
        let dispatch = front.dispatch();
        let mut long = None;
        let first = record(&dispatch, || {
            let span = tracing::info_span!("long", number = 1);
            span.in_scope(|| ());
            span.in_scope(|| ());
            long = Some(span);
        });
        let second = record(&dispatch, || {
            let long = long.take().expect("is there");
            long.in_scope(|| ());
        });
        for (trace, slices) in [(first, 3), (second, 2)] {
            assert_eq!(trace.slices.iter().filter(|slice| name(slice) == "long").count(), slices, "{front:?}");
        }
    }
}

#[test]
fn the_subscriber_disables_them() {
    let quiet = turn();
    tracing::dispatcher::with_default(&Front::Subscriber.dispatch(), || {
        // The first round registers the call site, and finds its category off.
        for _ in 0..2 {
            assert!(tracing::info_span!("off").id().is_none());
            assert!(!tracing::enabled!(tracing::Level::ERROR));
        }
    });
    drop(quiet);
    let trace = record(&nobody(), || tracing::info_span!("nobody").in_scope(|| ()));
    assert!(trace.slices.is_empty());
}
