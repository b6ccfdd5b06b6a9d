//! The command `esatto record`: records a command, or the programs of the running service, into a
//! file.

mod config;
mod program;
mod report;
mod summary;
mod watch;

use core::cell::Cell;
use core::time::Duration;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use esatto_schema::TraceConfig;
use esatto_schema::trace_config::trigger_config::TriggerMode;
use esatto_trace::escape::Line;

use self::config::{config, transfer};
use self::program::{Program, ended_by_signal, exit_code, has_failed};
pub(super) use self::report::report;
use self::report::{limited, write_page};
pub(super) use self::summary::Summary;
pub(super) use self::watch::{Saved, watch};
use self::watch::{await_reader, await_time};
use crate::console::{self, inform, say};
use crate::empty_recording::EmptyRecording;
use crate::failure::{Attempt as _, Failure};
use crate::missing_trigger::MissingTrigger;
use crate::private_service::PrivateService;
use crate::progress::{Progress, Size};
use crate::recording_session::{Recorded, RecordingSession, Transfer, refusal};
use crate::service_connection::address;
use crate::service_state::Programs;
use crate::start_time::Utc;
use crate::stop_signal::StopSignal;
use crate::trace_output::Output;
use crate::{args, machine_service, machine_sources, service_errors, trace_config};

/// Time between two updates of the progress. The child is polled at the same interval if the kernel
/// does not report its end.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// Time before the end of a recording at which its end is no surprise.
const EARLY: Duration = Duration::from_secs(1);
/// Exit status of a recording that failed beside a command that goes on.
const EXIT_FAILURE: u8 = 1;
/// Exit status of a recording without events that can be read.
pub(super) const EXIT_EMPTY: u8 = 3;
/// Exit status of a recording whose trigger did not come.
pub(super) const EXIT_NO_TRIGGER: u8 = 4;

pub(crate) fn run(args: &args::Record) -> Result<ExitCode, Failure> {
    if let Err(error) = args.check() {
        error.exit();
    }
    spoken(args.voice, |summary| record(args, summary))
}

/// Runs a recording with the wanted amount of text, and prints the summary.
pub(super) fn spoken(
    voice: args::Voice,
    record: impl FnOnce(&mut Summary) -> Result<u8, Failure>,
) -> Result<ExitCode, Failure> {
    console::set_voice(voice.quiet, voice.verbose);
    if voice.json {
        console::remember_lines();
    }
    let mut summary = Summary::default();
    let result = record(&mut summary);
    if voice.json {
        summary.print(&result).attempt(|| "cannot show the summary".to_owned())?;
    }
    result.map(ExitCode::from)
}

fn record(args: &args::Record, summary: &mut Summary) -> Result<u8, Failure> {
    let is_service = args.command.is_empty() && machine_service::is_needed();
    let config = config(args, is_service)?;
    let starts_at = args.at.map(|at| at.after(SystemTime::now())).transpose()?;
    let transfer = transfer(&config, args);
    let mut output = open_output(args, &config)?;
    let limit = config.duration_ms.filter(|ms| *ms > 0).map(|ms| Duration::from_millis(ms.into()));

    let mut stop = StopSignal::install().attempt(|| "cannot handle signals".to_owned())?;
    if let Some(pipe) = output.as_mut().filter(|output| output.waits_for_reader()) {
        inform!("Waiting for a reader of {}.", Line(pipe.name().display()));
        if transfer == Transfer::ByService {
            await_reader(pipe, &mut stop, limit)?;
        }
    }
    let service = match args.command.is_empty() {
        true => None,
        false => {
            service_errors::collect();
            Some(PrivateService::start()?)
        }
    };
    let address = match &service {
        Some(service) => service.consumer().clone(),
        None => address()?,
    };
    for line in trace_config::warnings(&config) {
        say!("{line}");
    }
    let _own_service =
        is_service.then(|| machine_service::start(machine_sources::are_in(&config))).transpose()?.flatten();
    let _own_sources = machine_sources::offer(&config, &address, service.as_ref().map(PrivateService::producer))?;
    let mut recorder = RecordingSession::start(&address, config.clone(), transfer, output)
        .map_err(|failure| service_errors::first().unwrap_or(failure))?;
    if console::is_verbose() {
        inform!("The service at {address} records {}.", Line(in_words(&config)));
    }
    if let Some(starts_at) = starts_at {
        inform!(
            "The recording starts at {}.",
            Utc(starts_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
        );
        let progress = Progress::start(None);
        match await_time(&mut recorder, &mut stop, starts_at, &progress) {
            Ok(true) => recorder.begin()?,
            Ok(false) if recorder.has_ended() => return Err(recorder.ended_early()),
            Ok(false) => {
                recorder.abandon();
                drop(progress);
                say!("Nothing was recorded: the recording was stopped before its start.");
                return Ok(EXIT_EMPTY);
            }
            Err(failure) => return Err(recorder.give_up(failure)),
        }
    }
    if !args.trigger.is_empty() {
        let names: Vec<String> = args.trigger.iter().map(|name| format!("{name:?}")).collect();
        inform!("Waiting for the trigger {}; `esatto trigger NAME` activates it.", Line(names.join(" or ")));
    }
    // The session runs, so everything that the command does after it has connected can be recorded.
    let piped = args.voice.json || args.out.as_deref().or(args.long.as_deref()).is_some_and(Output::is_stdout);
    let start = |service| Program::start(&args.command, service, piped);
    if service.is_some() {
        match recorder.await_sources(&mut stop) {
            Ok(true) => {}
            Ok(false) => say!(
                "The data sources of the machine have not all started yet. The command begins nevertheless: its first \
                 moments may be missing in their data."
            ),
            Err(failure) => return Err(recorder.give_up(failure)),
        }
    }
    let is_too_late = service.is_some() && recorder.is_over() && !stop.received();
    if is_too_late {
        say!(
            "The recording was over before the data sources of the machine had started, so the command was not \
             started. Give the recording more time."
        );
    }
    let mut child = service.as_ref().filter(|_| !is_too_late && !stop.received()).map(start).transpose()?;

    let progress = Progress::start(limit);
    let mut saved = Saved::default();
    let command = args.command.first().map(|name| name.to_string_lossy());
    let is_warned = Cell::new(false);
    let warning = |programs: &Programs| {
        let is_default = args.config.is_none();
        let command = command.as_deref();
        let empty =
            EmptyRecording { config: &config, is_default, programs, command, buffer_bytes: 0, missing_events: None };
        let line = empty.early_warning();
        is_warned.set(line.is_some());
        line
    };
    let watched = watch(&mut recorder, &mut stop, child.as_mut(), &progress, &mut saved, warning);
    let is_early = recorder.has_ended() && progress.rest().is_none_or(|rest| rest > EARLY);
    let is_by_itself = recorder.has_ended() && progress.rest().is_none_or(|rest| !rest.is_zero());
    let lasted = progress.elapsed();
    // After a failure the session is given up, and the file keeps its content.
    let recorded = match watched {
        Ok(()) => recorder.finish(&progress, |snapshots| saved.report(snapshots, &progress)),
        Err(failure) => Err(recorder.give_up(failure)),
    };
    let rest = progress.rest();
    drop(progress);
    let recorded = recorded.and_then(|mut recorded| {
        saved.complete(&mut recorded);
        summary.note(&recorded, &saved, &config, lasted);
        if recorded.is_refused {
            // The file of this name is not of this session.
        } else if recorded.lacks_trigger && saved.number() == 0 && saved.failed {
            say!("No complete snapshot could be saved.");
        } else if recorded.lacks_trigger && saved.number() == 0 && recorded.limited_triggers > 0 {
            say!("Nothing was written: {}", limited(recorded.limited_triggers));
        } else if recorded.lacks_trigger && saved.number() == 0 {
            say!("Nothing was written: {}.", Line(MissingTrigger::of(&config)));
        } else {
            report(&recorded, &config, saved.number(), service.is_some());
            if args.report {
                write_page(&recorded, &config);
            }
        }
        recorded.check()
    });
    if let (Err(failure), Some(program)) = (&recorded, &mut child) {
        if !program.has_ended() && !stop.received() {
            // The command belongs to the user.
            summary.error = Some(failure.to_string());
            say!("esatto: {failure}");
            say!("Nothing more is recorded. The command goes on.");
            program.wait(&mut stop, rest);
            let _ = child.map(Program::end);
            return Ok(EXIT_FAILURE);
        }
    }
    let is_cut = recorded.as_ref().is_ok_and(|recorded| {
        let is_complete = recorded.completed_by_service == Some(true);
        !is_complete && recorded.is_cut.unwrap_or_else(|| is_early && MissingTrigger::mode(&config).is_none())
    });
    if is_cut {
        let max_bytes = config.max_file_size_bytes.unwrap_or(0);
        let what = match is_by_itself {
            true => format!("The recording ended after {:.1} s", lasted.as_secs_f64()),
            false => "The end of the trace is missing".to_owned(),
        };
        say!("{what}, because the file reached max_file_size_bytes ({max_bytes}).");
        if let Some(program) = child.as_mut().filter(|_| !stop.received()) {
            if !program.has_ended() {
                // The user has not asked for its end.
                say!("Nothing more is recorded. The command goes on.");
                program.wait(&mut stop, rest);
            }
        }
    }
    // Only an end by itself counts, not one that this program causes.
    let by_itself = child.as_mut().is_some_and(Program::has_ended) && !stop.received();
    let status = child.map(Program::end).filter(|_| by_itself);
    if let Some(line) = status.as_ref().and_then(ended_by_signal) {
        say!("{line}");
    }
    let recorded = recorded?;
    if recorded.completed_by_service == Some(true) {
        say!("The tracing service has stopped. The trace is complete up to then.");
    } else if !is_cut && is_early && MissingTrigger::mode(&config).is_none() {
        say!("The tracing service has ended the recording. The trace is complete up to then.");
    }
    let missing_events = recorded.machine.missing_events();
    let empty = EmptyRecording {
        config: &config,
        is_default: args.config.is_none(),
        programs: &recorded.programs,
        command: command.as_deref(),
        buffer_bytes: recorded.buffer_bytes,
        missing_events: missing_events.as_deref(),
    };
    let result = if saved.number() == 0 && recorded.lacks_trigger {
        EXIT_NO_TRIGGER
    } else if recorded.has_events || saved.has_events {
        // A service that has stopped has not told which programs came last.
        let has_track_events = recorded.has_track_events || saved.has_events;
        if recorded.completed_by_service.is_none() {
            for line in empty.unseen_sources(has_track_events) {
                say!("{}", Line(line));
            }
        }
        // Kernels differ, so a preset also names events that this one lacks.
        if let Some(missing) = missing_events.as_ref().filter(|_| args.config.is_some()) {
            say!("Some events were not recorded: {}.", Line(missing));
        }
        if let Some(machines) = empty.machines_left_out() {
            say!("{}", Line(machines));
        }
        if let Some(options) = args.misplaced_output().filter(|_| !has_failed(status.as_ref())) {
            say!("The command got {} as its own. Options of record come before the command.", Line(options));
        }
        if !is_warned.get() {
            if let Some(unknown) = empty.unknown_machines() {
                say!("Until the end, {}.", Line(unknown.trim_end_matches('.')));
            }
            if let Some(unknown) = empty.unknown_categories() {
                say!("In the recorded programs, {}.", Line(unknown.trim_end_matches('.')));
            }
        }
        0
    } else if let Some(line) = recorded.unreadable.why_none(&config) {
        say!("{line}");
        EXIT_EMPTY
    } else {
        let reason = if is_cut {
            "the file reached max_file_size_bytes before the first event; a larger one leaves room".to_owned()
        } else if recorded.gaps + recorded.losses > 0 {
            "all of them were lost, as told above".to_owned()
        } else if let Some(error) = service_errors::first() {
            error.to_string()
        } else {
            empty.reason()
        };
        let end = if reason.ends_with(['.', '?']) { "" } else { "." };
        say!("No event was recorded: {}{end}", Line(reason));
        if let Some(options) = args.misplaced_options().filter(|_| has_failed(status.as_ref())) {
            say!("The command got {} as its own. Options of record come before the command.", Line(options));
        }
        EXIT_EMPTY
    };
    if console::is_verbose() && !summary.programs().is_empty() {
        inform!("Programs that were connected: {}.", Line(summary.programs().join(", ")));
    }
    if saved.failed || is_too_late {
        return Ok(EXIT_FAILURE);
    }
    summary.command_status = status.as_ref().map(exit_code);
    let command_failed = status.filter(|status| has_failed(Some(status)));
    Ok(command_failed.map_or(result, |status| exit_code(&status)))
}

impl Recorded {
    /// Fails if the service has not recorded until the end that the user wants.
    pub(super) fn check(self) -> Result<Self, Failure> {
        let kept = self.file.as_ref().zip(self.bytes.filter(|bytes| *bytes > 0));
        let kept =
            kept.map(|(file, bytes)| format!("{} has the first {bytes} bytes, the end is missing", file.display()));
        if let Some(error) = self.error {
            let why = || kept.map_or_else(|| error.to_string(), |kept| format!("{error}; {kept}"));
            return Err(match self.is_refused {
                true => refusal(error),
                false => Failure::new("the service ended the recording", why()),
            });
        }
        if self.completed_by_service == Some(false) {
            let is_empty = self.file.is_none() && self.bytes == Some(0);
            let hint = if is_empty { "nothing was written" } else { "the end of the trace is missing" };
            let hint = kept.unwrap_or_else(|| hint.to_owned());
            return Err(Failure::new("lost the connection to the tracing service", "it has ended").hint(hint));
        }
        Ok(self)
    }

    /// Returns whether it failed, so that the end of the trace is missing.
    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some() || self.completed_by_service == Some(false)
    }
}

/// Describes what a config records.
fn in_words(config: &TraceConfig) -> String {
    let kb = |kb: Option<u32>| Size(u64::from(kb.unwrap_or(0)) << 10).to_string();
    let buffers: Vec<String> = config.buffers.iter().map(|buffer| kb(buffer.size_kb)).collect();
    let names = config.data_sources.iter().filter_map(|source| source.config.as_deref()?.name.as_deref());
    let names: Vec<String> = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let buffers = if buffers.len() == 1 {
        format!("a buffer of {}", buffers[0])
    } else {
        format!("buffers of {}", buffers.join(", "))
    };
    format!("{} into {buffers}", names.join(", "))
}

/// Opens the file of `-o`, or plans one with a name of its own, unless the service creates the file
/// that the config names (`docs/spec/cli.md` §7).
fn open_output(args: &args::Record, config: &TraceConfig) -> Result<Option<Output>, Failure> {
    let names_file =
        config.write_into_file == Some(true) && config.output_path.as_ref().is_some_and(|path| !path.is_empty());
    let takes_snapshots = MissingTrigger::mode(config) == Some(TriggerMode::CLONE_SNAPSHOT);
    match (args.long.as_ref().or(args.out.as_ref()), names_file) {
        (Some(path), false) if takes_snapshots && !may_name_file(path) => {
            let name = if Output::is_stdout(path) { "stdout".into() } else { path.to_string_lossy() };
            Err(Failure::new(format!("cannot write snapshots to {name}"), "each of them is a file")
                .hint("name them with -o FILE"))
        }
        (Some(path), false) => {
            let output = Output::create(path)?;
            if !args.force && !takes_snapshots {
                let hint = "choose another file, or overwrite it with --force";
                output.require_old_trace().map_err(|failure| failure.hint(hint))?;
            }
            Ok(Some(output))
        }
        (None, true) => Ok(None),
        (Some(_), true) => {
            Err(Failure::new("two output files are given", "-o names one, and output_path in the config another")
                .hint("leave out one of them"))
        }
        (None, false) => {
            let program = args.command.first().and_then(|command| Path::new(command).file_name());
            let program = program.map_or_else(|| "trace".into(), |name| name.to_string_lossy());
            Output::with_default_name(&program).map(Some)
        }
    }
}

/// Returns whether a path is or may become that of a regular file.
fn may_name_file(path: &Path) -> bool {
    !Output::is_stdout(path) && std::fs::metadata(path).map_or(true, |meta| meta.is_file())
}
