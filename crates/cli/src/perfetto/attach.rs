//! Sessions that another run of the command has detached (`docs/spec/cli.md` §11).

use std::time::Instant;

use esatto_ports::consumer_port::method;
use esatto_schema::{AttachRequest, DetachRequest, EnableTracingRequest};

use super::consumer::{Consumer, Event};
use super::log_line::log_line;
use super::outcome::{Outcome, failed};
use super::readiness::Readiness;
use super::recording::{ANSWER_TIMEOUT, Run, Timeouts};
use super::sockets::Sockets;
use crate::stop_signal::StopSignal;

/// Attaches to a session and waits for its end, or ends it.
pub(crate) fn attach(sockets: &Sockets, key: &str, stop: bool) -> Outcome {
    run(sockets, key, stop).unwrap_or_else(|outcome| outcome)
}

fn run(sockets: &Sockets, key: &str, stop: bool) -> Result<Outcome, Outcome> {
    let signal = StopSignal::install().map_err(|error| failed(format!("Could not handle signals: {error}")))?;
    let mut consumer = Consumer::connect(&sockets.consumer, Some(signal))?;
    if !call_attach(&mut consumer, key)? {
        log_line!("Session re-attach failed: this user has no detached session {key:?}");
        return Ok(Outcome::NotFound);
    }
    let request = EnableTracingRequest { attach_notification_only: Some(true), ..EnableTracingRequest::default() };
    let enabled = consumer.send_message::<method::EnableTracing>(&request)?;
    let mut readiness = Readiness::default();
    let mut run = Run {
        consumer,
        snapshots: None,
        // A session can only be detached if it does.
        writes_file: true,
        timeouts: Timeouts::default(),
        waits_for_trigger: false,
        enabled: Some(enabled),
        end: None,
        readiness: &mut readiness,
    };
    if stop {
        run.stop()?;
    } else {
        run.wait_for_end()?;
    }
    run.complete(None)
}

/// Tells whether there is such a session. Its owner may attach to it afterwards.
pub(crate) fn is_detached(sockets: &Sockets, key: &str) -> Outcome {
    let run = || {
        let mut consumer = Consumer::connect(&sockets.consumer, None)?;
        if !call_attach(&mut consumer, key)? {
            return Ok(Outcome::NotFound);
        }
        let request = DetachRequest { key: Some(key.into()), ..DetachRequest::default() };
        let detaching = consumer.send_message::<method::Detach>(&request)?;
        let is_detached = await_success(&mut consumer, detaching)?;
        if is_detached { Ok(Outcome::Done) } else { Err(failed("Session detach failed")) }
    };
    run().unwrap_or_else(|outcome| outcome)
}

/// Returns whether the service has found the session.
fn call_attach(consumer: &mut Consumer, key: &str) -> Result<bool, Outcome> {
    let request = AttachRequest { key: Some(key.into()), ..AttachRequest::default() };
    let attaching = consumer.send_message::<method::Attach>(&request)?;
    await_success(consumer, attaching)
}

fn await_success(consumer: &mut Consumer, request: esatto_ipc::RequestId) -> Result<bool, Outcome> {
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    loop {
        match consumer.next(Some(deadline))? {
            Event::Reply(reply) if reply.request_id == request => return Ok(reply.success),
            Event::Reply(_) => {}
            Event::Stop => return Err(Outcome::Failed),
            Event::Timeout => return Err(failed("The traced service did not answer in time")),
        }
    }
}
