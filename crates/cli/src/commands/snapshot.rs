//! The command `esatto snapshot`: a flight recorder of the machine's service.
//!
//! `start` makes a session that records into a ring, and detaches it, so no process of this command
//! goes on. `take` saves a copy of it, `stop` ends it.

use core::time::Duration;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use esatto_ipc::{BlockingClient, Error as IpcError};
use esatto_ports::consumer_port::method;
use esatto_schema::trace_config::buffer_config::FillPolicy;
use esatto_schema::trace_config::{BufferConfig, IncrementalStateConfig};
use esatto_schema::{
    CloneSessionRequest, DetachRequest, EnableTracingRequest, EnableTracingResponseReader, QueryCapabilitiesRequest,
    TraceConfig,
};
use esatto_trace::escape::Line;

use super::sessions::end_detached;
use crate::args::{self, SnapshotAction};
use crate::console::say;
use crate::failure::Failure;
use crate::progress::Size;
use crate::ring_size::resize;
use crate::service_connection::{address, connect, lost};
use crate::session_list::SessionList;
use crate::shell_word::ShellWord;
use crate::snapshots::save_clone;
use crate::trace_config;
use crate::trace_output::Output;

/// Longest time for an answer of the service.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Ring of a flight recorder, unless the user wants another size.
const RING_KB: u32 = 64 << 10;
/// Longest time for which a ring may lack names that it has lost.
const CLEAR_PERIOD_MS: u32 = 1000;

pub(crate) fn run(args: &args::Snapshot) -> Result<ExitCode, Failure> {
    match &args.action {
        SnapshotAction::Start(args) => start(args)?,
        SnapshotAction::Take { name, out } => take(name, out.as_ref())?,
        SnapshotAction::Stop { name } => {
            let mut client = connect(&address()?)?;
            end_detached(&mut client, name.as_bytes())?;
            say!("Ended the flight recorder {name:?}.");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn start(args: &args::SnapshotStart) -> Result<(), Failure> {
    let config = config(args)?;
    let mut client = connect(&address()?)?;
    let what = || format!("cannot start the flight recorder {:?}", args.name);
    let request = EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() };
    let enabled = client.send_message::<method::EnableTracing>(&request, None).map_err(lost)?;
    // The service handles calls in order, so its reply tells that the session was accepted.
    let barrier = client.send_message::<method::QueryCapabilities>(&QueryCapabilitiesRequest::default(), None);
    let barrier = barrier.map_err(lost)?;
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let reply = client.next_reply(Some(left)).map_err(|error| match error {
            IpcError::Timeout => Failure::new(what(), "the service did not answer in time"),
            error => lost(error),
        })?;
        if reply.request_id == enabled {
            let error = EnableTracingResponseReader::new(&reply.body).error().unwrap_or_default();
            return Err(Failure::new(what(), String::from_utf8_lossy(error)));
        }
        if reply.request_id == barrier {
            break;
        }
    }
    detach(&mut client, &args.name).map_err(|why| Failure::new(what(), why))?;
    say!(
        "The flight recorder {:?} runs. `esatto snapshot take {}` saves what it has, `esatto snapshot stop {}` ends it.",
        args.name,
        ShellWord::new(&args.name),
        ShellWord::new(&args.name)
    );
    Ok(())
}

fn detach(client: &mut BlockingClient, key: &str) -> Result<(), String> {
    let request = DetachRequest { key: Some(key.into()), ..DetachRequest::default() };
    let detaching = client.send_message::<method::Detach>(&request, None).map_err(|error| error.to_string())?;
    let reply = client.wait_reply(detaching, Some(ANSWER_TIMEOUT)).map_err(|error| error.to_string())?;
    if reply.success {
        Ok(())
    } else {
        Err("the service did not detach it: is there another one of this name?".to_owned())
    }
}

/// Returns the config of a flight recorder: a ring without an end.
fn config(args: &args::SnapshotStart) -> Result<TraceConfig, Failure> {
    let mut config = match (&args.config, &args.preset) {
        (Some(path), _) => trace_config::from_file(path)?,
        (None, Some(preset)) => trace_config::preset(preset, args.all_categories)?,
        (None, None) => trace_config::track_events(args.all_categories),
    };
    trace_config::check(&config)?;
    let refused = |why: &str| Failure::new("cannot use the config for a flight recorder", why);
    if config.write_into_file.unwrap_or(false) || config.output_path.is_some() {
        return Err(refused("it writes into a file").hint("remove write_into_file and output_path"));
    }
    if config.trigger_config.is_some() {
        return Err(refused("it has triggers").hint("use `esatto record -c CONFIG`, which waits for them"));
    }
    let is_ring = |buffer: &BufferConfig| buffer.fill_policy != Some(FillPolicy::DISCARD);
    if !config.buffers.iter().all(is_ring) {
        return Err(refused("a buffer has the fill policy DISCARD, and would never get newer events"));
    }
    let default_kb = args.config.is_none().then_some(RING_KB);
    if let Some(ring_kb) = args.ring_kb.or(default_kb) {
        resize(&mut config, ring_kb);
    }
    if args.config.is_none() {
        // Perfetto's service does not ask for names again when a ring has lost them.
        config.incremental_state_config = Some(IncrementalStateConfig {
            clear_period_ms: Some(CLEAR_PERIOD_MS),
            ..IncrementalStateConfig::default()
        });
    }
    config.unique_session_name = Some(args.name.as_str().into());
    config.duration_ms = None;
    trace_config::complete(&mut config, None)?;
    trace_config::check_size(&config)?;
    Ok(config)
}

fn take(name: &str, out: Option<&PathBuf>) -> Result<(), Failure> {
    let address = address()?;
    let session = SessionList::query(&mut connect(&address)?)?;
    let session = session.find(name)?;
    let mut output = match out {
        Some(path) => {
            let output = Output::create(path)?;
            output.require_old_trace()?;
            output
        }
        None => Output::with_default_name(name)?,
    };
    let request = CloneSessionRequest { session_id: Some(session.id), ..CloneSessionRequest::default() };
    let what = format!("cannot save a snapshot of the session {name:?}");
    let content = save_clone(&address, &request, &mut output, &what)?;
    if let Some(line) = content.silent.flush_in_words() {
        say!("{line}");
    }
    let bytes = output.final_bytes(false).unwrap_or(0);
    let file = Line(output.name().display());
    let word = ShellWord::new(output.name());
    if Output::is_stdout(output.name()) {
        say!("Wrote {} to stdout.", Size(bytes));
    } else if content.has_events {
        say!("Wrote {} into {file}. Open it in https://ui.perfetto.dev, or run `esatto info {word}`.", Size(bytes));
    } else {
        say!("Wrote {} into {file}. It has no event: `esatto list` shows which programs are connected.", Size(bytes));
    }
    Ok(())
}
