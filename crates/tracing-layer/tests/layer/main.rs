//! Tests of the layer and the subscriber with a service inside this process and our own reader. In
//! `tests/`, Perfetto's trace processor checks a whole application.

#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use esatto::{Backend, Session, SessionConfig, Tracing};
use esatto_trace::{AnnotationValue, EventType, Slice, Trace};
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::prelude::*;

mod events_are_named_after_their_call_site;
mod fields_keep_their_types;
mod filters_work_unchanged;
mod futures_have_a_lane_and_linked_polls;
mod layers_may_be_replaced;
mod levels_below_info_have_the_tag_debug;
mod slices_are_always_nested;
mod spans_without_a_session_are_not_recorded;

static TRACING: LazyLock<Tracing> = LazyLock::new(|| Tracing::builder().in_process().start().expect("connects"));

/// Way from `tracing` to the trace: each test runs with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Front {
    Layer,
    Subscriber,
}

const FRONTS: [Front; 2] = [Front::Layer, Front::Subscriber];

impl Front {
    fn dispatch(self) -> Dispatch {
        match self {
            Self::Layer => tracing_subscriber::registry().with(esatto_tracing::layer()).into(),
            Self::Subscriber => esatto_tracing::subscriber().into(),
        }
    }
}

/// Runs `work` with both, and `check` on the traces.
fn with_each(work: impl Fn(), check: impl Fn(Front, &Trace)) {
    for front in FRONTS {
        let trace = record(&front.dispatch(), &work);
        check(front, &trace);
    }
}

/// Allows one session at a time, because sessions record all threads.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the trace that `work` records, with all levels.
fn record(dispatch: &Dispatch, work: impl FnOnce()) -> Trace {
    record_with(SessionConfig::new().tags(["debug"]), dispatch, work)
}

/// Returns the trace that `work` records in a session with this config.
fn record_with(config: SessionConfig, dispatch: &Dispatch, work: impl FnOnce()) -> Trace {
    let _turn = turn();
    LazyLock::force(&TRACING);
    let session = Session::start(Backend::InProcess, config.buffer_size_kb(4096)).expect("starts");
    tracing::dispatcher::with_default(dispatch, work);
    let trace = Trace::read(&session.stop().expect("stops")[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    trace
}

fn name(slice: &Slice) -> &str {
    slice.name.as_deref().unwrap_or_default()
}

/// Returns the slices with this name: those on lanes, and those on threads.
fn parts<'t>(trace: &'t Trace, wanted: &str) -> (Vec<&'t Slice>, Vec<&'t Slice>) {
    let slices = trace.slices.iter().filter(|slice| name(slice) == wanted && !slice.instant);
    slices.partition(|slice| slice.tid.is_none())
}

/// Returns `name: value` for each argument of a slice, from its begin and its end.
fn arguments(trace: &Trace, slice: &Slice) -> Vec<String> {
    let end_ns = slice.duration_ns.map(|duration| slice.ts_ns + duration);
    let end = trace.events.iter().find(|event| {
        event.event_type == EventType::SliceEnd && event.track == slice.track && Some(event.ts_ns) == end_ns
    });
    let annotations = trace.events[slice.event].annotations.iter().chain(end.iter().flat_map(|end| &end.annotations));
    annotations.map(|a| format!("{}: {}", a.name, show(&a.value))).collect()
}

fn show(value: &AnnotationValue) -> String {
    match value {
        AnnotationValue::String(text) => format!("{text:?}"),
        AnnotationValue::Uint(value) => format!("{value}u"),
        AnnotationValue::Int(value) => format!("{value}i"),
        AnnotationValue::Double(value) => format!("{value}f"),
        AnnotationValue::Bool(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}

/// Returns the arrows, by the names and tracks (`thread` or `lane`) of their ends.
fn arrows(trace: &Trace) -> Vec<String> {
    let show = |place: usize| {
        let slice = &trace.slices[place];
        let track = if slice.tid.is_some() { "thread" } else { slice.track_name.as_deref().unwrap_or("?") };
        format!("{}{}@{track}", if slice.instant { "mark " } else { "" }, name(slice))
    };
    let mut arrows: Vec<_> =
        trace.flows.iter().map(|flow| format!("{} -> {}", show(flow.from), show(flow.to))).collect();
    arrows.sort();
    arrows
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A future that is pending this many times.
struct Yield(u32);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match self.0 {
            0 => Poll::Ready(()),
            _ => {
                self.0 -= 1;
                Poll::Pending
            }
        }
    }
}

/// Returns a dispatcher without a subscriber.
fn nobody() -> Dispatch {
    NoSubscriber::default().into()
}
