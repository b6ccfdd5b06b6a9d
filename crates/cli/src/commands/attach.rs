//! The command `esatto sessions attach`: takes over a session that its program has left, shows its
//! progress, and saves its trace.

use core::time::Duration;
use std::process::ExitCode;

use esatto_ipc::BlockingClient;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned as _;
use esatto_schema::trace_config::trigger_config::TriggerMode;
use esatto_schema::{AttachRequest, AttachResponse, DetachRequest, TraceConfig};
use esatto_trace::escape::Line;

use super::record::{EXIT_EMPTY, EXIT_NO_TRIGGER, Saved, Summary, report, spoken, watch};
use crate::args;
use crate::console::{inform, say};
use crate::empty_recording::EmptyRecording;
use crate::failure::{Attempt as _, Failure};
use crate::missing_trigger::MissingTrigger;
use crate::process_name::name_of;
use crate::progress::Progress;
use crate::recording_session::RecordingSession;
use crate::service_connection::{address, connect, lost};
use crate::session_list::{ListedSession, SessionList};
use crate::stop_signal::StopSignal;
use crate::trace_output::Output;

/// Longest time for an answer of the service.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &args::Attach) -> Result<ExitCode, Failure> {
    spoken(args.voice, |summary| attach(args, summary))
}

fn attach(args: &args::Attach, summary: &mut Summary) -> Result<u8, Failure> {
    let address = address()?;
    let mut client = connect(&address)?;
    let list = SessionList::query(&mut client)?;
    let found = list.find(&args.session);
    let key = key_of(found.as_deref().ok(), &args.session)?;
    let mut stop = StopSignal::install().attempt(|| "cannot handle signals".to_owned())?;
    let attached = call_attach(&mut client, &key)?;
    let Some(config) = attached else {
        return Err(found.err().unwrap_or_else(|| {
            let what = format!("cannot attach the session {:?}", args.session);
            Failure::new(what, "the service has no detached session of this key").hint("`esatto sessions` lists them")
        }));
    };
    // From now on, the session ends with this connection.
    let output = match open_output(args, &config) {
        Ok(output) => output,
        Err(failure) => {
            leave(&mut client, &key)?;
            return Err(failure);
        }
    };
    let session = found.ok();
    let age = session.and_then(|session| session.age).unwrap_or_default();
    let limit = config.duration_ms.filter(|&ms| ms > 0 && MissingTrigger::mode(&config).is_none());
    let left = limit.map(|ms| Duration::from_millis(ms.into()).saturating_sub(age));
    inform!("Attached {:?}. Ctrl-C ends the session and saves its trace.", args.session);
    let mut recorder = RecordingSession::attached(client, &address, &config, age, output)?;
    let progress = Progress::start(left);
    let mut saved = Saved::default();
    let watched = watch(&mut recorder, &mut stop, None, &progress, &mut saved, |_| None);
    let lasted = progress.elapsed();
    let recorded = match watched {
        Ok(()) => recorder.finish(&progress, |snapshots| saved.report(snapshots, &progress)),
        Err(failure) => Err(recorder.give_up(failure)),
    };
    drop(progress);
    let mut recorded = recorded?;
    saved.complete(&mut recorded);
    summary.note(&recorded, &saved, &config, lasted);
    let lacks_trigger = recorded.lacks_trigger && saved.number() == 0;
    if lacks_trigger {
        say!("Nothing was written: {}.", Line(MissingTrigger::of(&config)));
    } else {
        report(&recorded, &config, saved.number(), false);
        if writes_file(&config) && config.output_path.is_none() && !recorded.has_failed() {
            inform!("The service wrote the trace into the file that its program has named at the start.");
        }
    }
    let recorded = recorded.check()?;
    if saved.failed {
        return Ok(1);
    }
    if lacks_trigger {
        return Ok(EXIT_NO_TRIGGER);
    }
    if recorded.has_events || saved.has_events {
        return Ok(0);
    }
    if let Some(line) = recorded.unreadable.why_none(&config) {
        say!("{line}");
        return Ok(EXIT_EMPTY);
    }
    let missing_events = recorded.machine.missing_events();
    let empty = EmptyRecording {
        config: &config,
        is_default: false,
        programs: &recorded.programs,
        command: None,
        buffer_bytes: recorded.buffer_bytes,
        missing_events: missing_events.as_deref(),
    };
    say!("No event was recorded: {}.", Line(empty.reason().trim_end_matches('.')));
    Ok(EXIT_EMPTY)
}

/// Returns the key of a session. The service of Perfetto does not tell keys, so the word of the
/// user may be one.
fn key_of(session: Option<&ListedSession>, wanted: &str) -> Result<Vec<u8>, Failure> {
    let Some(session) = session else { return Ok(wanted.as_bytes().to_vec()) };
    match (&session.detach_key, session.pid) {
        (Some(key), _) => Ok(key.clone()),
        (None, None) => Ok(wanted.as_bytes().to_vec()),
        (None, Some(pid)) => {
            let program = name_of(pid).unwrap_or_else(|| "a program".to_owned());
            let id = session.id;
            let what = format!("cannot attach the session {wanted:?}");
            Err(Failure::new(what, format!("{program} (process {pid}) controls it")).hint(format!(
                "`esatto snapshot take {id}` saves what it has, and `esatto sessions stop {id}` ends it"
            )))
        }
    }
}

/// Returns the config of the session, or `None` if there is none of this key.
fn call_attach(client: &mut BlockingClient, key: &[u8]) -> Result<Option<TraceConfig>, Failure> {
    let request = AttachRequest { key: Some(key.to_vec().into()), ..AttachRequest::default() };
    let attaching = client.send_message::<method::Attach>(&request, None).map_err(lost)?;
    let reply = client.wait_reply(attaching, Some(ANSWER_TIMEOUT)).map_err(lost)?;
    if !reply.success {
        return Ok(None);
    }
    let response = AttachResponse::decode(&reply.body)
        .map_err(|_| Failure::new("cannot attach the session", "the answer of the service is malformed"))?;
    Ok(Some(response.trace_config.map(|config| *config).unwrap_or_default()))
}

/// Detaches the session again, so that it goes on.
fn leave(client: &mut BlockingClient, key: &[u8]) -> Result<(), Failure> {
    let request = DetachRequest { key: Some(key.to_vec().into()), ..DetachRequest::default() };
    let detaching = client.send_message::<method::Detach>(&request, None).map_err(lost)?;
    client.wait_reply(detaching, Some(ANSWER_TIMEOUT)).map(drop).map_err(lost)
}

fn writes_file(config: &TraceConfig) -> bool {
    config.write_into_file == Some(true)
}

/// Opens the file of the trace, unless the service writes it.
fn open_output(args: &args::Attach, config: &TraceConfig) -> Result<Option<Output>, Failure> {
    match &args.out {
        Some(_) if writes_file(config) => {
            let path = config.output_path.as_deref().map(String::from_utf8_lossy);
            let place = path.map_or_else(|| "the file that its program has named".to_owned(), |path| path.into_owned());
            let what = "-o is not possible";
            Err(Failure::new(what, format!("the service writes the trace of this session itself, into {place}"))
                .hint("leave out -o"))
        }
        Some(path) if MissingTrigger::mode(config) == Some(TriggerMode::CLONE_SNAPSHOT) && Output::is_stdout(path) => {
            Err(Failure::new("cannot write snapshots to stdout", "each of them is a file")
                .hint("name them with -o FILE"))
        }
        Some(path) => {
            let output = Output::create(path)?;
            output.require_old_trace().map_err(|failure| failure.hint("choose another file"))?;
            Ok(Some(output))
        }
        None if writes_file(config) => Ok(None),
        None => Output::with_default_name(&args.session).map(Some),
    }
}
