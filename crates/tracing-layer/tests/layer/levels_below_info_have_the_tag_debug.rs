use esatto::SessionConfig;
use esatto_trace::Trace;
use tracing::{Dispatch, Level};
use tracing_subscriber::prelude::*;

use super::{FRONTS, record_with};

fn work() {
    tracing::info_span!("info span").in_scope(|| {
        tracing::error!(name: "error", "");
        tracing::info!(name: "info", "");
        tracing::debug_span!("debug span").in_scope(|| tracing::trace!(name: "trace", ""));
        tracing::debug!(name: "elsewhere", target: "elsewhere", "");
    });
}

fn names(trace: &Trace) -> Vec<&str> {
    trace.slices.iter().map(|slice| slice.name.as_deref().unwrap_or_default()).collect()
}

/// Names of what a session records, the same with the layer and the subscriber.
fn recorded(config: impl Fn() -> SessionConfig) -> Vec<String> {
    let [first, second] = FRONTS.map(|front| {
        let trace = record_with(config(), &front.dispatch(), work);
        names(&trace).into_iter().map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(first, second);
    first
}

const QUIET: [&str; 3] = ["info span", "error", "info"];
const ALL: [&str; 6] = ["info span", "error", "info", "debug span", "trace", "elsewhere"];

#[test]
fn so_they_are_off_by_default() {
    assert_eq!(recorded(SessionConfig::new), QUIET);
    assert_eq!(recorded(|| SessionConfig::new().categories(["layer*", "elsewhere*"])), QUIET);
}

#[test]
fn and_on_in_sessions_that_ask_for_the_tag() {
    assert_eq!(recorded(|| SessionConfig::new().tags(["debug"])), ALL);
}

#[test]
fn and_on_in_sessions_that_name_the_target_in_full() {
    assert_eq!(recorded(|| SessionConfig::new().categories(["elsewhere"])), ["elsewhere"]);
    assert_eq!(recorded(|| SessionConfig::new().categories([module_path!()])), ALL[..5]);
}

#[test]
fn unless_the_options_say_otherwise() {
    let options = || {
        esatto_tracing::options()
            .debug_tag(|metadata| *metadata.level() == Level::TRACE || metadata.target() == "elsewhere")
    };
    let layer = tracing_subscriber::registry().with(options().layer());
    for dispatch in [Dispatch::from(options().subscriber()), layer.into()] {
        let trace = record_with(SessionConfig::new(), &dispatch, work);
        assert_eq!(names(&trace), ["info span", "error", "info", "debug span"]);
    }
}
