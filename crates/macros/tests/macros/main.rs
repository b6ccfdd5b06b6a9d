//! Promises of the macros, tested with a service in this process and our own reader.

#![forbid(unsafe_code)]
#![deny(warnings, clippy::all)]

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use esatto::{Backend, Category, Session, Tracing};
use esatto_trace::{AnnotationValue, Event, EventType, Slice, Trace};

mod arguments_are_recorded_on_request;
mod async_functions_have_a_lane_and_polls;
mod every_kind_of_function_can_be_traced;
mod sets_of_arguments_are_derived;
mod slices_contain_the_destructors_of_parameters;
mod the_crate_may_have_another_name;
mod traits_are_services;

static TRACING: LazyLock<Tracing> = LazyLock::new(|| Tracing::builder().in_process().start().expect("connects"));

/// Sessions record all threads, so only one test at a time has one.
static TURN: Mutex<()> = Mutex::new(());

/// Returns the trace of `work` in `category`.
fn record(category: &'static Category, work: impl FnOnce()) -> Trace {
    record_named(category.name(), || {
        assert!(TRACING.wait_until_enabled(category, Duration::from_secs(10)));
        work();
    })
}

fn record_named(category: &str, work: impl FnOnce()) -> Trace {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    LazyLock::force(&TRACING);
    let mut config = esatto::track_events(4096);
    let source = config.data_sources[0].config.as_mut().expect("is there");
    let events = source.track_event_config.as_mut().expect("is there");
    events.enabled_categories = vec![category.into()];
    events.disabled_categories = vec!["*".into()];
    let session = Session::start(Backend::InProcess, config).expect("starts");
    work();
    let trace = Trace::read(&session.stop().expect("stops")[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    trace
}

/// Returns the names of the slices of all tracks, in the order of their begins, indented by their
/// depth.
fn outline(trace: &Trace) -> Vec<String> {
    let mut slices: Vec<&Slice> = trace.slices.iter().collect();
    slices.sort_by_key(|slice| slice.event);
    slices.iter().map(|slice| format!("{}{}", "  ".repeat(slice.depth as usize), name(slice))).collect()
}

fn name(slice: &Slice) -> &str {
    slice.name.as_deref().unwrap_or_default()
}

/// Returns `name: value` for each argument of the first slice with this name, of its begin and its
/// end.
fn arguments(trace: &Trace, slice: &str) -> Vec<String> {
    let slice = trace.slices.iter().find(|found| name(found) == slice).expect("is in the trace");
    let end_ns = slice.duration_ns.map(|duration| slice.ts_ns + duration);
    let is_end = |event: &&Event| {
        event.event_type == EventType::SliceEnd && event.track == slice.track && Some(event.ts_ns) == end_ns
    };
    let end = trace.events.iter().find(is_end).expect("ends");
    let annotations = trace.events[slice.event].annotations.iter().chain(&end.annotations);
    annotations.map(|a| format!("{}: {}", a.name, show(&a.value))).collect()
}

fn show(value: &AnnotationValue) -> String {
    match value {
        AnnotationValue::Dict(entries) => {
            let entries: Vec<_> = entries.iter().map(|e| format!("{}: {}", e.name, show(&e.value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        AnnotationValue::Array(values) => format!("[{}]", values.iter().map(show).collect::<Vec<_>>().join(", ")),
        AnnotationValue::String(text) => format!("{text:?}"),
        AnnotationValue::Uint(value) => value.to_string(),
        AnnotationValue::Int(value) => value.to_string(),
        AnnotationValue::Double(value) => value.to_string(),
        AnnotationValue::Bool(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}

/// Polls a future until it is ready.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}

/// A future that is pending once.
#[derive(Default)]
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let done = std::mem::replace(&mut self.0, true);
        if done { Poll::Ready(()) } else { Poll::Pending }
    }
}
