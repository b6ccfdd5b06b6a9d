use std::pin::pin;

use esatto_tracing::Slices;
use tracing::{Instrument, Span};
use tracing_subscriber::prelude::*;

use super::{Yield, arguments, arrows, name, parts, poll, record, with_each};

#[test]
fn even_the_first_one_of_a_call_site() {
    let work = || {
        // Call sites are known for ever, but each dispatcher learns about them separately.
        let mut task = pin!(Yield(1).instrument(tracing::info_span!("task", number = 3)));
        assert!(poll(task.as_mut()).is_none());
        assert!(poll(task.as_mut()).is_some());
    };
    with_each(work, |front, trace| {
        let (lanes, polls) = parts(trace, "task");
        // `Instrumented` enters its span again to drop the future.
        assert_eq!(lanes.len(), 1, "{front:?}");
        assert!(polls.len() >= 2, "{front:?}");
        assert_eq!(arguments(trace, lanes[0]), ["number: 3i"], "{front:?}");
        assert_eq!(lanes[0].track_name.as_deref(), Some("task"), "{front:?}");
        assert!(lanes[0].ts_ns <= polls[0].ts_ns, "{front:?}: it begins when it was made");
        let end = lanes[0].ts_ns + lanes[0].duration_ns.expect("ends");
        for poll in &polls {
            assert!(poll.ts_ns + poll.duration_ns.expect("ends") <= end, "{front:?}");
        }
        let mut expected = vec!["task@task -> task@thread"];
        expected.resize(polls.len(), "task@thread -> task@thread");
        assert_eq!(arrows(trace), expected, "{front:?}");
    });
}

#[test]
fn concurrent_futures_are_kept_apart() {
    let work = || {
        let task = |number: usize| Box::pin(Yield(2).instrument(tracing::info_span!("mixed", number)));
        let mut tasks: Vec<_> = (0..20).map(task).collect();
        for round in 0..3 {
            for task in &mut tasks {
                assert_eq!(poll(task.as_mut()).is_some(), round == 2);
            }
        }
        let mut cancelled = task(20);
        assert!(poll(cancelled.as_mut()).is_none());
    };
    with_each(work, |front, trace| {
        let (lanes, _) = parts(trace, "mixed");
        assert_eq!(lanes.len(), 21, "{front:?}");
        assert!(lanes.iter().all(|lane| lane.depth == 0 && lane.duration_ns.is_some()), "{front:?}");
        let numbers: Vec<_> = lanes.iter().map(|lane| arguments(trace, lane).join(",")).collect();
        for number in 0..21 {
            assert_eq!(numbers.iter().filter(|&found| *found == format!("number: {number}u")).count(), 1, "{front:?}");
        }
    });
}

#[test]
fn flows_lead_to_parents() {
    let work = || {
        for _ in 0..2 {
            let parent = tracing::info_span!("parent");
            let mut child = {
                let _entered = parent.enter();
                Box::pin(Yield(1).instrument(tracing::info_span!("child")))
            };
            assert!(poll(child.as_mut()).is_none());
            assert!(poll(child.as_mut()).is_some());
            let mut other = Box::pin(Yield(1).instrument(tracing::info_span!(parent: &parent, "explicit")));
            assert!(poll(other.as_mut()).is_none());
            assert!(poll(other.as_mut()).is_some());
        }
    };
    with_each(work, |front, trace| {
        let arrows = arrows(trace);
        let count = |arrow: &str| arrows.iter().filter(|found| *found == arrow).count();
        assert_eq!(count("parent@thread -> child@child"), 2, "{front:?}: {arrows:#?}");
        // The parent is not entered when these spans are created.
        assert_eq!(count("mark explicit@parent -> explicit@explicit"), 2, "{front:?}: {arrows:#?}");
        let (parents, _) = parts(trace, "parent");
        assert_eq!(parents.len(), 2, "{front:?}");
    });
}

#[test]
fn flows_lead_to_followed_spans() {
    let work = || {
        let earlier = tracing::info_span!("earlier");
        let later = tracing::info_span!("later");
        later.follows_from(&earlier);
        later.follows_from(Span::none());
    };
    with_each(work, |front, trace| {
        assert_eq!(arrows(trace), ["mark later@earlier -> mark earlier@later"], "{front:?}");
    });
}

#[test]
fn across_threads() {
    let work = || {
        let mut task = Box::pin(Yield(2).instrument(tracing::info_span!("wandering", result = tracing::field::Empty)));
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        for _ in 0..2 {
            let dispatch = dispatch.clone();
            let run = move || {
                tracing::dispatcher::with_default(&dispatch, || assert!(poll(task.as_mut()).is_none()));
                task
            };
            task = std::thread::spawn(run).join().expect("does not panic");
        }
        task.span().record("result", 5);
        assert!(poll(task.as_mut()).is_some());
    };
    with_each(work, |front, trace| {
        let (lanes, polls) = parts(trace, "wandering");
        assert_eq!(lanes.len(), 1, "{front:?}");
        assert_eq!(arguments(trace, lanes[0]), ["result: 5i"], "{front:?}");
        let threads: std::collections::BTreeSet<_> = polls.iter().map(|poll| poll.tid).collect();
        assert_eq!(threads.len(), 3, "{front:?}");
    });
}

#[test]
fn unless_the_options_say_otherwise() {
    let work = || {
        let mut task = pin!(Yield(1).instrument(tracing::info_span!("task")));
        assert!(poll(task.as_mut()).is_none());
        assert!(poll(task.as_mut()).is_some());
        tracing::info_span!("sync").in_scope(|| ());
    };
    for (slices, expected) in [
        (Slices::Threads, [(0, true), (0, true)]),
        (Slices::Lifetime, [(1, false), (1, false)]),
        (Slices::Both, [(1, true), (1, true)]),
        (Slices::Auto, [(1, true), (0, true)]),
    ] {
        let options = || esatto_tracing::options().slices(move |_| slices);
        let layer = tracing_subscriber::registry().with(options().layer());
        for dispatch in [options().subscriber().into(), layer.into()] {
            let trace = record(&dispatch, work);
            for (name, (lanes, polls)) in ["task", "sync"].into_iter().zip(expected) {
                let found = parts(&trace, name);
                assert_eq!((found.0.len(), !found.1.is_empty()), (lanes, polls), "{slices:?} {name}");
            }
        }
    }
}

#[test]
fn events_with_an_explicit_parent_are_on_its_lane() {
    let work = || {
        for _ in 0..2 {
            let span = tracing::info_span!("lonely");
            span.in_scope(|| ());
            span.in_scope(|| ());
            tracing::info!(name: "from afar", parent: &span, "hello");
        }
    };
    with_each(work, |front, trace| {
        let far: Vec<_> = trace.slices.iter().filter(|slice| name(slice) == "from afar").collect();
        assert_eq!(far.len(), 2, "{front:?}");
        assert!(far.iter().all(|slice| slice.track_name.as_deref() == Some("lonely")), "{front:?}");
    });
}
