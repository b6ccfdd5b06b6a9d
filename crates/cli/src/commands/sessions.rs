//! The command `esatto sessions`: lists the sessions of the service, ends them, and
//! takes over those without a program.

use core::time::Duration;
use std::process::ExitCode;
use std::time::Instant;

use esatto_ipc::{BlockingClient, Error as IpcError, RequestId};
use esatto_ports::Rpc;
use esatto_ports::consumer_port::method;
use esatto_schema::{AttachRequest, EnableTracingRequest, EnableTracingResponseReader, FlushRequest};
use esatto_trace::escape;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::attach;
use crate::args;
use crate::console::{self, say};
use crate::failure::{Attempt as _, Failure};
use crate::process_name::name_of;
use crate::progress::Size;
use crate::service_connection::{address, connect, lost};
use crate::session_list::{ListedSession, SessionList};
use crate::table::{cell, table};

/// Longest time for an answer of the service.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time until all programs have delivered their last events, and the session has ended.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two looks at a session that its program ends.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// Flush flags: reason "trace stop", initiator "command line tool" (`docs/spec/wire-protocol.md`
/// §9).
const FLUSH_FLAGS: u64 = 0x22;
/// Programs that end a recording in order at SIGINT.
const RECORDERS: [&str; 3] = ["esatto", "perfetto", "tracebox"];

pub(crate) fn run(args: &args::Sessions) -> Result<ExitCode, Failure> {
    match &args.action {
        Some(args::SessionsAction::Attach(args)) => return attach::run(args),
        Some(args::SessionsAction::Stop { session }) => {
            let mut client = connect(&address()?)?;
            let list = SessionList::query(&mut client)?;
            match list.find(session) {
                Ok(found) => stop(&mut client, found)?,
                // Perfetto's service does not tell detach keys, so the word may be one.
                Err(unknown) => end_detached(&mut client, session.as_bytes()).map_err(|_| unknown)?,
            }
        }
        None => {
            let list = SessionList::query(&mut connect(&address()?)?)?;
            let text = if args.json { json(&list) } else { text(&list) };
            console::print(&text).attempt(|| "cannot show the list".to_owned())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn text(list: &SessionList) -> String {
    let rows: Vec<[String; 9]> = list.sessions.iter().map(row).collect();
    let head = ["id", "uid", "name", "state", "since", "ends in", "buffers", "data sources", "controlled by"];
    let mut text = if rows.is_empty() { "No session runs.\n".to_owned() } else { table(&head, rows) };
    if list.hidden > 0 {
        text += &format!("\n{} more of other users\n", list.hidden);
    }
    text
}

fn row(session: &ListedSession) -> [String; 9] {
    let sizes: Vec<String> = session.buffers_kb.iter().map(|kb| Size(u64::from(*kb) * 1024).to_string()).collect();
    let left = session.duration.zip(session.age).map(|(duration, age)| duration.saturating_sub(age));
    [
        session.id.to_string(),
        session.uid.to_string(),
        cell(&session.name),
        cell(&session.state.to_lowercase()),
        session.age.map(in_words).unwrap_or_default(),
        left.map(in_words).unwrap_or_default(),
        cell(&sizes.join(" + ")),
        session.data_sources.to_string(),
        cell(&controller(session)),
    ]
}

/// Returns who controls a session.
fn controller(session: &ListedSession) -> String {
    match (&session.detach_key, session.pid) {
        (Some(key), _) => format!("nobody (detached as {:?})", String::from_utf8_lossy(key)),
        (None, Some(pid)) => format!("{} ({pid})", name_of(pid).unwrap_or_else(|| "a process".to_owned())),
        (None, None) => String::new(),
    }
}

/// Formats a time with one unit or two.
pub(crate) fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

fn json(list: &SessionList) -> String {
    let sessions = list.sessions.iter().map(|session| {
        json!({
            "id": session.id,
            "uid": session.uid,
            "name": session.name,
            "state": session.state,
            "age_s": session.age.map(|age| age.as_secs_f64()),
            "duration_s": session.duration.map(|duration| duration.as_secs_f64()),
            "buffers_kb": session.buffers_kb,
            "data_sources": session.data_sources,
            "pid": session.pid,
            "detach_key": session.detach_key.as_deref().map(String::from_utf8_lossy),
        })
    });
    let sessions: Vec<_> = sessions.collect();
    let value = json!({ "sessions": sessions, "hidden": list.hidden, "service": list.version });
    escape::json(&format!("{value:#}\n"))
}

/// Ends a session in order: all programs deliver their last events.
fn stop(client: &mut BlockingClient, session: &ListedSession) -> Result<(), Failure> {
    if let Some(key) = &session.detach_key {
        end_detached(client, key)?;
        say!("Ended session {}.", session.id);
        return Ok(());
    }
    let what = format!("cannot end session {}", session.id);
    let Some(pid) = session.pid else {
        // A flight recorder has its name as the key.
        if !session.name.is_empty() && end_detached(client, session.name.as_bytes()).is_ok() {
            say!("Ended session {}.", session.id);
            return Ok(());
        }
        let why = "the service does not tell who controls it";
        let hint = "if a program does, end that program with Ctrl-C or SIGINT; if it is detached, give its key: \
                    `esatto sessions stop KEY`";
        return Err(Failure::new(what, why).hint(hint));
    };
    let name = name_of(pid).ok_or_else(|| {
        Failure::new(&what, format!("its process {pid} is not visible here")).hint("it may run in another container")
    })?;
    if !RECORDERS.contains(&name.as_str()) {
        let why = format!("the program {name} (process {pid}) controls it");
        return Err(Failure::new(what, why).hint("end it there; SIGINT may do"));
    }
    let process = Pid::from_raw(pid).ok_or_else(|| Failure::new(&what, "it has no process"))?;
    kill_process(process, Signal::INT)
        .map_err(|error| Failure::new(&what, format!("{name} (process {pid}): {}", std::io::Error::from(error))))?;
    let deadline = Instant::now() + END_TIMEOUT;
    while SessionList::query(client)?.sessions.iter().any(|other| other.id == session.id) {
        if Instant::now() > deadline {
            let why = format!("{name} (process {pid}) was asked to, but has not ended it yet");
            return Err(Failure::new(what, why));
        }
        std::thread::sleep(LOOK_PERIOD);
    }
    say!("{name} (process {pid}) has ended session {}, and writes its trace.", session.id);
    Ok(())
}

/// Attaches a detached session, flushes it and ends it.
pub(crate) fn end_detached(client: &mut BlockingClient, key: &[u8]) -> Result<(), Failure> {
    let what = || format!("cannot end the session {:?}", String::from_utf8_lossy(key));
    let request = AttachRequest { key: Some(key.to_vec().into()), ..AttachRequest::default() };
    let attached = client.send_message::<method::Attach>(&request, None).map_err(lost)?;
    if !client.wait_reply(attached, Some(ANSWER_TIMEOUT)).map_err(lost)?.success {
        return Err(Failure::new(what(), "this user has no such session"));
    }
    let request = EnableTracingRequest { attach_notification_only: Some(true), ..EnableTracingRequest::default() };
    let end = client.send_message::<method::EnableTracing>(&request, None).map_err(lost)?;
    let request = FlushRequest { flags: Some(FLUSH_FLAGS), ..FlushRequest::default() };
    let flushing = client.send_message::<method::Flush>(&request, None).map_err(lost)?;
    // If a program does not answer, the session ends nevertheless.
    match client.wait_reply(flushing, Some(END_TIMEOUT)) {
        Ok(_) | Err(IpcError::Timeout) => {}
        Err(error) => return Err(lost(error)),
    }
    send::<method::DisableTracing>(client)?;
    let reply = client.wait_reply(end, Some(END_TIMEOUT)).map_err(|error| match error {
        IpcError::Timeout => Failure::new(what(), "the service did not end it in time"),
        error => lost(error),
    })?;
    let error = EnableTracingResponseReader::new(&reply.body).error().filter(|error| !error.is_empty());
    if let Some(error) = error {
        return Err(Failure::new(what(), String::from_utf8_lossy(error)));
    }
    let freed = send::<method::FreeBuffers>(client)?;
    client.wait_reply(freed, Some(ANSWER_TIMEOUT)).map_err(lost)?;
    Ok(())
}

fn send<M: Rpc>(client: &mut BlockingClient) -> Result<RequestId, Failure> {
    client.send_message::<M>(&M::Request::default(), None).map_err(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units_at_most() {
        let shown = [0, 59, 61, 3_700, 90_000].map(|seconds| in_words(Duration::from_secs(seconds)));
        assert_eq!(shown, ["0 s", "59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]);
    }

    #[test]
    fn names_of_sessions_do_not_act_on_the_terminal() {
        let session = ListedSession { name: "\u{1b}[2J".to_owned(), ..ListedSession::default() };
        let list = SessionList { sessions: vec![session], hidden: 2, version: String::new() };
        assert!(!text(&list).contains('\u{1b}') && !json(&list).contains('\u{1b}'));
        assert!(text(&list).ends_with("2 more of other users\n"));
    }
}
