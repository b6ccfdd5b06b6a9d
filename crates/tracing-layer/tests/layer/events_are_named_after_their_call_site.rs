use esatto_trace::Trace;
use esatto_tracing::EventNames;
use tracing::Dispatch;
use tracing_subscriber::prelude::*;

use super::{record, with_each};

fn names(trace: &Trace) -> Vec<&str> {
    trace.events.iter().map(|event| event.name.as_deref().unwrap_or_default()).collect()
}

#[test]
fn by_the_last_part_of_the_module_and_the_line() {
    let first = line!() + 3;
    let work = || {
        for number in 0..2 {
            tracing::info!("read {number} bytes");
        }
        tracing::warn!(target: "elsewhere", reason = "none");
    };
    with_each(work, |front, trace| {
        let module = "events_are_named_after_their_call_site";
        let read = format!("{module}:{first}");
        assert_eq!(names(trace), [&read, &read, &format!("{module}:{}", first + 2)], "{front:?}");
        let messages = trace.events.iter().flat_map(|event| &event.annotations).filter(|a| a.name == "message").count();
        assert_eq!(messages, 2, "{front:?}");
    });
}

#[test]
fn by_the_name_that_the_program_gives() {
    let work = || {
        tracing::info!(name: "accepted", "from {}", "localhost");
        tracing::info!(name: "event of the year", "no place");
    };
    with_each(work, |front, trace| assert_eq!(names(trace), ["accepted", "event of the year"], "{front:?}"));
}

#[test]
fn unless_the_options_ask_for_the_message() {
    let options = || esatto_tracing::options().event_names(EventNames::Message);
    let layer = tracing_subscriber::registry().with(options().layer());
    for dispatch in [Dispatch::from(options().subscriber()), layer.into()] {
        let trace = record(&dispatch, || {
            tracing::info!(name: "accepted", size = 3, "read {} bytes", 3);
            tracing::info!(name: "silent", size = 4);
        });
        assert_eq!(names(&trace), ["read 3 bytes", "silent"]);
        let annotations: Vec<_> = trace.events[0].annotations.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(annotations, ["size"], "the message is not said twice");
    }
}
