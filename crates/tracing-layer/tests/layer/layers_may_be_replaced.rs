use std::sync::mpsc;

use esatto_trace::Trace;
use tracing_subscriber::prelude::*;
use tracing_subscriber::reload;

use super::{Yield, arrows, name, parts, poll, record};

/// Returns the trace of `work`, whose argument replaces the layer with a new one, or with none.
fn record_replacing(work: impl FnOnce(&(dyn Fn(bool) + Sync))) -> Trace {
    let (layer, handle) = reload::Layer::new(Some(esatto_tracing::layer()));
    let dispatch = tracing_subscriber::registry().with(layer).into();
    let replace = |is_on: bool| {
        handle.modify(|layer| *layer = is_on.then(esatto_tracing::layer)).expect("the subscriber is there");
    };
    let trace = record(&dispatch, || work(&replace));
    assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()), "{:#?}", trace.slices);
    trace
}

fn depths(trace: &Trace) -> Vec<(&str, u32)> {
    trace.slices.iter().map(|slice| (name(slice), slice.depth)).collect()
}

#[test]
fn the_spans_of_a_removed_layer_end() {
    let trace = record_replacing(|replace| {
        {
            let _request = tracing::info_span!("request").entered();
            let _step = tracing::info_span!("step").entered();
            replace(false);
        }
        replace(true);
        for _ in 0..2 {
            tracing::info_span!("later").in_scope(|| ());
        }
    });
    assert_eq!(depths(&trace), [("request", 0), ("step", 1), ("later", 0), ("later", 0)]);
}

#[test]
fn a_new_layer_ends_no_slice_twice() {
    let trace = record_replacing(|replace| {
        let request = tracing::info_span!("request").entered();
        replace(true);
        let later = tracing::info_span!("later").entered();
        drop(request);
        tracing::info_span!("inner").in_scope(|| ());
        drop(later);
    });
    assert_eq!(depths(&trace), [("request", 0), ("later", 0), ("inner", 1)]);
}

#[test]
fn spans_of_other_threads_end_with_their_next_span() {
    let trace = record_replacing(|replace| {
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        let (entered, wait_entered) = mpsc::channel();
        let (replaced, wait_replaced) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    let request = tracing::info_span!("request").entered();
                    entered.send(()).expect("is waited for");
                    wait_replaced.recv().expect("is sent");
                    drop(request);
                    tracing::info_span!("later").in_scope(|| ());
                });
            });
            wait_entered.recv().expect("is sent");
            replace(false);
            replace(true);
            replaced.send(()).expect("is waited for");
        });
    });
    assert_eq!(depths(&trace), [("request", 0), ("later", 0)]);
}

#[test]
fn the_lifetimes_of_futures_end() {
    let trace = record_replacing(|replace| {
        use tracing::Instrument as _;
        let mut future = Box::pin(Yield(3).instrument(tracing::info_span!("future")));
        assert!(poll(future.as_mut()).is_none());
        assert!(poll(future.as_mut()).is_none());
        replace(false);
        replace(true);
        while poll(future.as_mut()).is_none() {}
    });
    let (lanes, polls) = parts(&trace, "future");
    assert_eq!((lanes.len(), polls.len()), (1, 2), "{:?}", arrows(&trace));
}
