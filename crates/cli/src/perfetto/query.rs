//! The state of the service, for people and for scripts (`docs/spec/cli.md` §12).

use core::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Instant;

use esatto_ports::consumer_port::method;
use esatto_protozero::{Owned as _, ProtoString};
use esatto_schema::tracing_service_state::{Producer, TracingSession};
use esatto_schema::{
    DataSourceDescriptor, QueryServiceStateRequest, QueryServiceStateResponseReader, TracingServiceState,
};
use esatto_trace::escape::Line;

use super::consumer::{Consumer, Event};
use super::options::Query;
use super::outcome::{Outcome, failed};
use super::recording::ANSWER_TIMEOUT;
use super::sockets::Sockets;
use crate::console::print;

/// Longest answer.
const MAX_ANSWER_BYTES: usize = 256 << 20;
/// Characters of the details of a data source, unless all are wanted.
const SHORT_DETAILS: usize = 40;
const DAY_S: i64 = 86_400;

/// A session that wants to be part of bugreports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BugreportSession {
    pub(crate) id: u64,
    /// Name of the file that the session wishes, or empty.
    pub(crate) file_name: String,
}

/// Prints the state of the service.
pub(crate) fn query(sockets: &Sockets, kind: Query, is_long: bool) -> Outcome {
    let run = || {
        let answer = ask(&mut Consumer::connect(&sockets.consumer, None)?, false)?;
        match kind {
            Query::Encoded => {
                use std::io::Write as _;
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(&answer).and_then(|()| stdout.flush()).map_err(|error| failed(unprinted(&error)))?;
            }
            Query::ForPeople => {
                let state = TracingServiceState::decode(&answer).map_err(failed)?;
                let has_colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
                let is_root = rustix::process::geteuid().is_root();
                print(&text(&state, is_long, has_colour, is_root)).map_err(|error| failed(unprinted(&error)))?;
            }
        }
        Ok(Outcome::Done)
    };
    run().unwrap_or_else(|outcome| outcome)
}

fn unprinted(error: &std::io::Error) -> String {
    format!("Cannot write to stdout: {error}")
}

/// Returns the running sessions with a score, the highest first.
pub(crate) fn sessions_for_bugreport(consumer: &mut Consumer) -> Result<Vec<BugreportSession>, Outcome> {
    let answer = ask(consumer, true)?;
    let state = TracingServiceState::decode(&answer).map_err(failed)?;
    Ok(by_score(&state.tracing_sessions))
}

fn by_score(sessions: &[TracingSession]) -> Vec<BugreportSession> {
    let score = |session: &TracingSession| session.bugreport_score.unwrap_or(0);
    let is_eligible = |session: &&TracingSession| session.is_started.unwrap_or(false) && score(session) > 0;
    let mut eligible: Vec<&TracingSession> = sessions.iter().filter(is_eligible).collect();
    eligible.sort_by_key(|session| core::cmp::Reverse(score(session)));
    let session = |session: &TracingSession| BugreportSession {
        id: session.id.unwrap_or(0),
        file_name: string(session.bugreport_filename.as_ref()),
    };
    eligible.into_iter().map(session).collect()
}

/// Asks the service for its state.
fn ask(consumer: &mut Consumer, sessions_only: bool) -> Result<Vec<u8>, Outcome> {
    let request = QueryServiceStateRequest {
        sessions_only: sessions_only.then_some(true),
        ..QueryServiceStateRequest::default()
    };
    let asked = consumer.send_message::<method::QueryServiceState>(&request)?;
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let mut answer = Vec::new();
    loop {
        match consumer.next(Some(deadline))? {
            Event::Reply(reply) if reply.request_id == asked => {
                if !reply.success {
                    return Err(failed("Failed to query the service"));
                }
                if let Some(part) = QueryServiceStateResponseReader::new(&reply.body).service_state() {
                    answer.extend_from_slice(part.as_bytes());
                }
                if answer.len() > MAX_ANSWER_BYTES {
                    return Err(failed("Failed to query the service: its answer has more than 256 MiB"));
                }
                if !reply.has_more {
                    return Ok(answer);
                }
            }
            Event::Reply(_) => {}
            Event::Stop => return Err(Outcome::Failed),
            Event::Timeout => return Err(failed("Failed to query the service: it did not answer in time")),
        }
    }
}

/// Describes the state of a service.
fn text(state: &TracingServiceState, is_long: bool, has_colour: bool, is_root: bool) -> String {
    let mut out = String::new();
    let (red, plain) = if has_colour { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
    let line = |out: &mut String, line: core::fmt::Arguments<'_>| {
        // A string takes everything.
        let _ = writeln!(out, "{line}");
    };
    line(&mut out, format_args!("{red}Not meant for machine consumption. Use --query-raw for scripts.{plain}\n"));
    line(&mut out, format_args!("Service: {}", Line(string(state.tracing_service_version.as_ref()))));
    line(
        &mut out,
        format_args!(
            "Tracing sessions: {} (started: {})",
            state.num_sessions.unwrap_or(0),
            state.num_sessions_started.unwrap_or(0)
        ),
    );
    let has_machines = state.producers.iter().any(|producer| producer.machine_id.unwrap_or(0) != 0);
    producers(&mut out, &state.producers, has_machines);
    data_sources(&mut out, state, has_machines, is_long);
    if state.supports_tracing_sessions.unwrap_or(false) {
        sessions(&mut out, &state.tracing_sessions);
        let hidden = usize::try_from(state.num_sessions.unwrap_or(0)).unwrap_or(0) > state.tracing_sessions.len();
        if hidden && !is_root {
            out.push_str("\nNOTE: Some tracing sessions are not reported in the list above.\n");
            out.push_str("Sessions of other users are only listed for root.\n");
        }
    }
    out
}

fn producers(out: &mut String, producers: &[Producer], has_machines: bool) {
    let (head, rule) = if has_machines { ("MACHINE              ", "=======              ") } else { ("", "") };
    let _ = write!(
        out,
        "\n\nPRODUCER PROCESSES CONNECTED:\n\n\
         ID     PID      UID      FLAGS  {head}NAME                                       SDK\n\
         ==     ===      ===      =====  {rule}====                                       ===\n"
    );
    for producer in producers {
        let flags = if producer.frozen.unwrap_or(false) { "F" } else { "" };
        let machine =
            if has_machines { format!("{:<20} ", Line(machine(producer)).to_string()) } else { String::new() };
        let name = Line(string(producer.name.as_ref())).to_string();
        let sdk = Line(string(producer.sdk_version.as_ref())).to_string();
        let (id, pid, uid) = (producer.id.unwrap_or(0), producer.pid.unwrap_or(0), producer.uid.unwrap_or(0));
        let _ = writeln!(out, "{id:<6} {pid:<8} {uid:<8} {flags:<6} {machine}{name:<42} {sdk}");
    }
}

fn data_sources(out: &mut String, state: &TracingServiceState, has_machines: bool, is_long: bool) {
    let (head, rule) = if has_machines { ("MACHINE              ", "=======              ") } else { ("", "") };
    let _ = write!(
        out,
        "\n\nDATA SOURCES REGISTERED:\n\n\
         NAME                                     PRODUCER                     {head}DETAILS\n\
         ===                                      ========                     {rule}========\n"
    );
    for source in &state.data_sources {
        let id = source.producer_id.unwrap_or(0);
        let producer = state.producers.iter().find(|producer| producer.id.unwrap_or(0) == id);
        let name = producer.map(|producer| string(producer.name.as_ref())).unwrap_or_default();
        let producer_column = Line(format!("{name} ({id})")).to_string();
        let machine = match (has_machines, producer) {
            (true, Some(producer)) => format!("{:<20} ", Line(machine(producer)).to_string()),
            (true, None) => format!("{:<20} ", ""),
            (false, _) => String::new(),
        };
        let descriptor = source.ds_descriptor.as_deref();
        let source_name = Line(string(descriptor.and_then(|descriptor| descriptor.name.as_ref()))).to_string();
        let details = Line(descriptor.map(details).unwrap_or_default()).to_string();
        let details = if is_long { details } else { shortened(&details) };
        let _ = writeln!(out, "{source_name:<40} {producer_column:<28} {machine}{details}");
    }
}

/// Returns the names of a data source's categories.
fn details(descriptor: &DataSourceDescriptor) -> String {
    let names: Vec<String> = if let Some(events) = &descriptor.track_event_descriptor {
        events.available_categories.iter().map(|category| string(category.name.as_ref())).collect()
    } else if let Some(ftrace) = &descriptor.ftrace_descriptor {
        ftrace.atrace_categories.iter().map(|category| string(category.name.as_ref())).collect()
    } else {
        Vec::new()
    };
    names.join(",")
}

fn shortened(details: &str) -> String {
    match details.char_indices().nth(SHORT_DETAILS) {
        Some((end, _)) => format!("{}... (use --long to expand)", &details[..end]),
        None => details.to_owned(),
    }
}

fn sessions(out: &mut String, sessions: &[TracingSession]) {
    out.push_str(
        "\n\nTRACING SESSIONS:\n\n\
         ID      UID     STATE      BUF (#) KB   DUR (s)   #DS  STARTED  NAME\n\
         ===     ===     =====      ==========   =======   ===  =======  ====\n",
    );
    for session in sessions {
        let kb: u64 = session.buffer_size_kb.iter().map(|&kb| u64::from(kb)).sum();
        let buffers = format!("({}) {kb}", session.buffer_size_kb.len());
        let second = (session.start_realtime_ns.unwrap_or(0) / 1_000_000_000).rem_euclid(DAY_S);
        let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
        let _ = writeln!(
            out,
            "{:<7} {:<7} {:<10} {buffers:<12} {:<9} {:<4} {hours:02}:{minutes:02}:{seconds:02} {}",
            session.id.unwrap_or(0),
            session.consumer_uid.unwrap_or(0),
            Line(string(session.state.as_ref())).to_string(),
            session.duration_ms.unwrap_or(0) / 1000,
            session.num_data_sources.unwrap_or(0),
            Line(string(session.unique_session_name.as_ref())),
        );
    }
}

/// Returns the name of a producer's machine.
fn machine(producer: &Producer) -> String {
    match (producer.machine_id.unwrap_or(0), &producer.machine_name) {
        (0, _) => "(host)".to_owned(),
        (_, Some(name)) if !name.is_empty() => string(Some(name)),
        (id, _) => format!("{id:#x}"),
    }
}

fn string(text: Option<&ProtoString>) -> String {
    text.map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: u64, score: i32, is_started: bool) -> TracingSession {
        TracingSession {
            id: Some(id),
            bugreport_score: Some(score),
            is_started: Some(is_started),
            ..TracingSession::default()
        }
    }

    #[test]
    fn the_highest_score_comes_first_and_zero_not_at_all() {
        let sessions = [session(1, 5, true), session(2, 9, true), session(3, 0, true), session(4, 99, false)];
        let ids: Vec<u64> = by_score(&sessions).iter().map(|session| session.id).collect();
        assert_eq!(ids, [2, 1]);
    }

    #[test]
    fn machines_have_a_column_only_if_there_are_several() {
        let producer = |machine| Producer { id: Some(1), machine_id: Some(machine), ..Producer::default() };
        let of = |machines: &[u32]| {
            let producers = machines.iter().map(|&machine| producer(machine)).collect();
            text(&TracingServiceState { producers, ..TracingServiceState::default() }, false, false, true)
        };
        assert!(!of(&[0]).contains("MACHINE"));
        let both = of(&[0, 0xabc]);
        assert!(both.contains("MACHINE") && both.contains("(host)") && both.contains("0xabc"), "{both}");
    }

    #[test]
    fn long_details_are_cut_and_names_cannot_act_on_the_terminal() {
        assert_eq!(shortened(&"ä".repeat(41)), format!("{}... (use --long to expand)", "ä".repeat(40)));
        assert_eq!(shortened("abc"), "abc");
        let producer = Producer { name: Some("\u{1b}[2J".into()), ..Producer::default() };
        let state = TracingServiceState { producers: vec![producer], ..TracingServiceState::default() };
        assert!(!text(&state, false, false, true).contains('\u{1b}'));
        assert!(text(&state, false, true, true).starts_with("\u{1b}[31mNot meant"));
    }
}
