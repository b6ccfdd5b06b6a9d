//! Copies of running sessions (`docs/spec/cli.md` §13).

use core::time::Duration;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use esatto_ports::consumer_port::method;
use esatto_protozero::Owned as _;
use esatto_schema::{CloneSessionRequest, CloneSessionResponse};

use super::background::Parent;
use super::consumer::{Consumer, Event, disconnected};
use super::log_line::log_line;
use super::options::Options;
use super::outcome::{Outcome, failed};
use super::output_file::OutputFile;
use super::query;
use super::readiness::Readiness;
use super::recording::leave_terminal;
use super::sockets::Sockets;
use crate::stop_signal::StopSignal;

/// Longest time until the service has made a clone: it flushes all programs first.
const CLONE_TIMEOUT: Duration = Duration::from_secs(30);
/// Id that stands for the session with the best bugreport score.
const BEST_FOR_BUGREPORT: u64 = u64::MAX;
/// Name of a trace for a bugreport whose session names none.
const BUGREPORT_NAME: &str = "systrace.pftrace";
/// Names that are tried for one trace.
const MAX_NAMES: usize = 1000;

/// Saves a copy of the session that the options name.
pub(crate) fn clone(sockets: &Sockets, options: &Options, parent: Option<Parent>) -> Outcome {
    let mut readiness = Readiness::default();
    let run = |readiness: &mut Readiness| {
        let Some(name) = &options.out else { return Err(failed("--out is required")) };
        let mut output = OutputFile::open(name, options.no_clobber).map_err(failed)?;
        leave_terminal(parent, options, readiness)?;
        let request = CloneSessionRequest {
            session_id: options.clone_id,
            unique_session_name: options.clone_name.as_deref().map(Into::into),
            skip_trace_filter: options.clone_for_bugreport.then_some(true),
            for_bugreport: options.clone_for_bugreport.then_some(true),
            ..CloneSessionRequest::default()
        };
        save(sockets, &request, &mut output, options.no_clobber).inspect_err(|_| output.remove_if_empty())
    };
    let outcome = run(&mut readiness).unwrap_or_else(|outcome| outcome);
    readiness.tell(outcome.is_success());
    outcome
}

/// Saves a copy of the session with the best score.
pub(crate) fn save_best_for_bugreport(sockets: &Sockets, out: Option<&OsString>) -> Outcome {
    let path = out.map_or_else(|| std::env::temp_dir().join(BUGREPORT_NAME), PathBuf::from);
    let run = || {
        let mut output = open_for_bugreport(&path, out.is_none())?;
        let outcome = save(sockets, &for_bugreport(BEST_FOR_BUGREPORT), &mut output, false);
        outcome.inspect_err(|_| output.remove_if_empty())
    };
    run().unwrap_or_else(|outcome| outcome)
}

/// Saves copies of all sessions that have a score.
pub(crate) fn save_all_for_bugreport(sockets: &Sockets) -> Outcome {
    let run = || {
        let sessions = query::sessions_for_bugreport(&mut Consumer::connect(&sockets.consumer, None)?)?;
        if sessions.is_empty() {
            log_line!("No tracing sessions eligible for bugreport were found.");
            return Ok(Outcome::Done);
        }
        // All clones are made before the first is read, so that they show the same time.
        let mut clones = Vec::new();
        for session in &sessions {
            let mut consumer = Consumer::connect(&sockets.consumer, None)?;
            let request = consumer.send_message::<method::CloneSession>(&for_bugreport(session.id))?;
            clones.push((consumer, request));
        }
        let mut outcome = Outcome::Done;
        let mut ready = Vec::new();
        for (mut consumer, sent) in clones {
            let reply = await_clone(&mut consumer, sent)?;
            ready.push((consumer, reply));
        }
        let mut names = Vec::new();
        for (session, (mut consumer, reply)) in sessions.iter().zip(ready) {
            if let Some(error) = error_of(&reply, &for_bugreport(session.id)) {
                log_line!("Service error: {error}");
                outcome = Outcome::Refused;
                continue;
            }
            let path = std::env::temp_dir().join(free_name(file_name(&session.file_name), &mut names));
            let mut output = open_for_bugreport(&path, true)?;
            let saved = consumer.read_buffers(&mut output);
            if saved == Outcome::Done {
                log_line!("Saved the session {} for a bugreport: {}", session.id, path.display());
            } else {
                output.remove_if_empty();
                outcome = saved;
            }
        }
        Ok(outcome)
    };
    run().unwrap_or_else(|outcome| outcome)
}

fn for_bugreport(id: u64) -> CloneSessionRequest {
    CloneSessionRequest {
        session_id: Some(id),
        skip_trace_filter: Some(true),
        for_bugreport: Some(true),
        ..CloneSessionRequest::default()
    }
}

/// Opens a file. In the folder of temporary files an older one is removed: another user may have
/// made it, or a link.
fn open_for_bugreport(path: &Path, replaces: bool) -> Result<OutputFile, Outcome> {
    if replaces {
        // If it cannot be removed, the file cannot be created.
        let _ = std::fs::remove_file(path);
    }
    OutputFile::open(path.as_os_str(), replaces).map_err(failed)
}

/// Clones a session into the file. An error has been told.
fn save(
    sockets: &Sockets,
    request: &CloneSessionRequest,
    output: &mut OutputFile,
    is_new: bool,
) -> Result<Outcome, Outcome> {
    let signal = StopSignal::install().map_err(|error| failed(format!("Could not handle signals: {error}")))?;
    let mut consumer = Consumer::connect(&sockets.consumer, Some(signal))?;
    if !is_new {
        output.empty().map_err(|error| failed(format!("Failed to empty {}: {error}", output.display())))?;
    }
    let file = output.descriptor().map_err(|error| failed(format!("Cannot hand the file to the service: {error}")))?;
    let sent = consumer.client.send_message::<method::CloneSession>(request, Some(file)).map_err(disconnected)?;
    let reply = await_clone(&mut consumer, sent)?;
    if let Some(error) = error_of(&reply, request) {
        log_line!("Service error: {error}");
        return Err(Outcome::Refused);
    }
    if reply.was_write_into_file.unwrap_or(false) {
        log_line!("Trace written into the output file");
        return Ok(Outcome::Done);
    }
    Ok(consumer.read_buffers(output))
}

fn await_clone(consumer: &mut Consumer, request: esatto_ipc::RequestId) -> Result<CloneSessionResponse, Outcome> {
    let deadline = Instant::now() + CLONE_TIMEOUT;
    loop {
        match consumer.next(Some(deadline))? {
            Event::Reply(reply) if reply.request_id == request => {
                return Ok(CloneSessionResponse::decode(&reply.body).unwrap_or_default());
            }
            Event::Reply(_) => {}
            Event::Stop => return Err(failed("SIGINT/SIGTERM received: no clone is saved")),
            Event::Timeout => return Err(failed("Timed out while waiting for trace from the service, aborting")),
        }
    }
}

/// Returns the reason why there is no clone.
fn error_of(reply: &CloneSessionResponse, request: &CloneSessionRequest) -> Option<String> {
    if reply.success.unwrap_or(false) {
        return None;
    }
    let error = reply.error.as_ref().map(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let session = match (&request.unique_session_name, request.session_id) {
        (Some(name), _) => format!("{:?}", String::from_utf8_lossy(name.as_bytes())),
        (None, id) => id.unwrap_or(0).to_string(),
    };
    Some(format!(
        "Failed to clone tracing session {session}: {}",
        error.unwrap_or_else(|| "it gave no reason".to_owned())
    ))
}

/// Returns the name of the file for a session. Sessions of other users name it, so it must not lead
/// into another folder.
fn file_name(wish: &str) -> &str {
    let is_plain = !wish.is_empty() && !wish.contains('/') && !matches!(wish, "." | "..");
    if is_plain { wish } else { BUGREPORT_NAME }
}

/// Returns the name, or one like it that is not taken by an earlier trace of this run.
fn free_name(name: &str, taken: &mut Vec<String>) -> String {
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
        _ => (name, String::new()),
    };
    let names = (0..MAX_NAMES).map(|count| match count {
        0 => name.to_owned(),
        _ => format!("{stem}_{count}{extension}"),
    });
    let free = names.into_iter().find(|name| !taken.contains(name)).unwrap_or_else(|| name.to_owned());
    taken.push(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_bugreports_stay_in_their_folder() {
        for (wish, name) in [
            ("mine.pftrace", "mine.pftrace"),
            ("", BUGREPORT_NAME),
            ("../../etc/passwd", BUGREPORT_NAME),
            ("..", BUGREPORT_NAME),
            ("/root/x", BUGREPORT_NAME),
        ] {
            assert_eq!(file_name(wish), name, "{wish}");
        }
    }

    #[test]
    fn equal_names_get_a_number_before_the_extension() {
        let mut taken = Vec::new();
        let names: Vec<String> =
            ["a.b", "a.b", "a.b", "a", "a", ".x", ".x"].iter().map(|name| free_name(name, &mut taken)).collect();
        assert_eq!(names, ["a.b", "a_1.b", "a_2.b", "a", "a_1", ".x", ".x_1"]);
    }
}
