//! Source locations, operations, log messages and call stacks of events.
//!
//! `cargo run -p esatto --example places_and_messages` writes `places.pftrace` for
//! <https://ui.perfetto.dev>.

use std::error::Error;

use esatto::{Backend, Frame, Location, LogPriority, Session, Tracing};

esatto::categories! { static APP = "app"; }

#[track_caller]
fn checked(value: u32) {
    if value > 2 {
        esatto::instant!(APP, "too large", value = value, |event| event.location(core::panic::Location::caller()));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start()?;
    let session = Session::start(Backend::InProcess, esatto::track_events(1024))?;

    let request = "7f3a-11";
    {
        let _slice = esatto::slice!(APP, "request", |event| {
            event.correlate(request);
            event.location(esatto::here!());
        });
        checked(3);
        esatto::instant!(APP, "log", |event| event.log(
            LogPriority::Warn,
            "disk is almost full",
            Some(esatto::here!())
        ));
        let posted = Location::new("queue.lua", 40).in_function("post");
        esatto::instant!(APP, "task", |event| event.task_posted_from(posted));
    }
    let stack = [Frame::new("main").at("app.lua", 3), Frame::new("on_click").at("ui.lua", 41)];
    for _ in 0..3 {
        esatto::instant!(APP, "sample", |event| {
            event.correlate(esatto::interned(request));
            event.interned_callstack(&stack);
        });
    }

    std::fs::write("places.pftrace", session.stop()?)?;
    Ok(())
}
