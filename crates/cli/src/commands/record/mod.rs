//! The command `esatto record`: records a command, or the programs of the running service, into a
//! file.

use core::cell::Cell;
use core::time::Duration;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::Instant;

use esatto_probes::presets;
use esatto_schema::TraceConfig;
use esatto_schema::trace_config::trigger_config::TriggerMode;
use esatto_trace::escape::Line;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::args;
use crate::console::say;
use crate::empty_recording::{EmptyRecording, MissingTrigger};
use crate::failure::{Attempt as _, Failure};
use crate::missed_programs::missed_programs;
use crate::private_service::PrivateService;
use crate::progress::{Progress, Size};
use crate::recording_session::{Recorded, RecordingSession, Transfer};
use crate::service_connection::address;
use crate::service_state::Programs;
use crate::snapshots::Snapshot;
use crate::stop_signal::StopSignal;
use crate::trace_config;
use crate::trace_output::Output;
use crate::{machine_service, machine_sources};

/// Time between two updates of the progress. The child is polled at the same interval if the kernel
/// does not report its end.
const TICK: Duration = Duration::from_millis(100);
/// Time before the end of a recording at which its end is no surprise.
const EARLY: Duration = Duration::from_secs(1);
/// Time after which a config that matches nothing is told. Programs have connected by then.
const WARN_AFTER: Duration = Duration::from_secs(1);
/// Time that a command may take to end after SIGTERM.
const TERM_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in milliseconds for which a program waits until the session has found it. Without it, the
/// recording would miss the program's first events, or all of them. On an idle machine this takes
/// some milliseconds.
const WAIT: (&str, &str) = ("ESATTO_WAIT_MS", "5000");
/// The session runs already, so a program that offers nothing that it wants need not wait.
const WAIT_FOR: (&str, &str) = ("ESATTO_WAIT_FOR", "service");

/// Time between two writes of a private service into its file.
const WRITE_PERIOD_MS: u32 = 500;
/// Advice for a config whose triggers come too often.
const LIMIT_TRIGGERS: &str = "`max_per_24_h` in the config limits a trigger.";
/// Exit status of a recording without events.
const EXIT_EMPTY: u8 = 3;
/// Exit status of a recording whose trigger did not come.
const EXIT_NO_TRIGGER: u8 = 4;

pub(crate) fn run(args: &args::Record) -> Result<ExitCode, Failure> {
    let is_service = args.command.is_empty() && machine_service::is_needed();
    let mut config = match (&args.config, &args.preset) {
        (Some(path), _) => trace_config::from_file(path)?,
        (None, Some(preset)) => trace_config::preset(preset, args.all_categories)?,
        (None, None) if is_service || args.command.is_empty() && machine_sources::are_offered(&address()?) => {
            trace_config::preset(presets::DEFAULT, args.all_categories)?
        }
        (None, None) => trace_config::track_events(args.all_categories),
    };
    trace_config::check(&config)?;
    trace_config::complete(&mut config, args.time)?;
    if !args.command.is_empty() && config.write_into_file == Some(true) {
        // The service ends with this program, so what it has not written is lost if both are
        // killed. By default it writes every 5 s.
        config.file_write_period_ms.get_or_insert(WRITE_PERIOD_MS);
    }
    let transfer = transfer(&config, args.config.is_some());
    let mut output = open_output(args, &config)?;
    let limit = config.duration_ms.filter(|ms| *ms > 0).map(|ms| Duration::from_millis(ms.into()));

    let mut stop = StopSignal::install().attempt(|| "cannot handle signals".to_owned())?;
    if let Some(pipe) = output.as_mut().filter(|output| output.waits_for_reader()) {
        say!("Waiting for a reader of {}.", Line(pipe.name().display()));
        if transfer == Transfer::ByService {
            await_reader(pipe, &mut stop, limit)?;
        }
    }
    let service = if args.command.is_empty() { None } else { Some(PrivateService::start()?) };
    let address = match &service {
        Some(service) => service.consumer().clone(),
        None => address()?,
    };
    for line in trace_config::warnings(&config) {
        say!("{line}");
    }
    let _own_service = is_service.then(machine_service::start).transpose()?.flatten();
    let _own_sources = machine_sources::offer(&config, &address, service.as_ref().map(PrivateService::producer))?;
    let mut recorder = RecordingSession::start(&address, config.clone(), transfer, output)?;
    // The session runs, so everything that the command does after it has connected can be recorded.
    let piped = args.out.as_deref().is_some_and(Output::is_stdout);
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
    let mut child = service.as_ref().filter(|_| !stop.received()).map(start).transpose()?;

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
    let recorded = recorded.and_then(|recorded| {
        if recorded.is_refused {
            // The file of this name is not of this session.
        } else if recorded.lacks_trigger && saved.number == 0 && saved.failed {
            say!("No complete snapshot could be saved.");
        } else if recorded.lacks_trigger && saved.number == 0 && recorded.limited_triggers > 0 {
            say!("Nothing was written: {}", limited(recorded.limited_triggers));
        } else if recorded.lacks_trigger && saved.number == 0 {
            say!("Nothing was written: {}.", Line(MissingTrigger::of(&config)));
        } else {
            report(&recorded, &config, saved.number);
        }
        recorded.check()
    });
    if let (Err(failure), Some(program)) = (&recorded, &mut child) {
        if !program.has_ended() && !stop.received() {
            // The command belongs to the user.
            say!("esatto: {failure}");
            say!("Nothing more is recorded. The command goes on.");
            program.wait(&mut stop, rest);
            let _ = child.map(Program::end);
            return Ok(ExitCode::FAILURE);
        }
    }
    // Only an end by itself counts, not one that this program causes.
    let by_itself = child.as_mut().is_some_and(Program::has_ended) && !stop.received();
    let status = child.map(Program::end).filter(|_| by_itself);
    let recorded = recorded?;
    let is_cut = recorded.is_cut.unwrap_or_else(|| is_early && MissingTrigger::mode(&config).is_none());
    if recorded.completed_by_service == Some(true) {
        say!("The tracing service has stopped. The trace is complete up to then.");
    } else if is_cut {
        let max_bytes = config.max_file_size_bytes.unwrap_or(0);
        let what = match is_by_itself {
            true => format!("The recording ended after {:.1} s", lasted.as_secs_f64()),
            false => "The end of the trace is missing".to_owned(),
        };
        say!("{what}, because the file reached max_file_size_bytes ({max_bytes}).");
    } else if is_early && MissingTrigger::mode(&config).is_none() {
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
    let result = if saved.number == 0 && recorded.lacks_trigger {
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
    } else {
        let reason = match is_cut {
            true => "the file reached max_file_size_bytes before the first event; a larger one leaves room".to_owned(),
            false => empty.reason(),
        };
        let end = if reason.ends_with(['.', '?']) { "" } else { "." };
        say!("No event was recorded: {}{end}", Line(reason));
        if let Some(options) = args.misplaced_options().filter(|_| has_failed(status.as_ref())) {
            say!("The command got {} as its own. Options of record come before the command.", Line(options));
        }
        EXIT_EMPTY
    };
    if saved.failed {
        return Ok(ExitCode::FAILURE);
    }
    let command_failed = status.filter(|status| has_failed(Some(status)));
    Ok(command_failed.map_or_else(|| ExitCode::from(result), |status| exit_code(&status)))
}

impl Recorded {
    /// Fails if the service has not recorded until the end that the user wants.
    fn check(self) -> Result<Self, Failure> {
        if let Some(error) = self.error {
            let what =
                if self.is_refused { "the service refused the config" } else { "the service ended the recording" };
            return Err(Failure::new(what, error));
        }
        if self.completed_by_service == Some(false) {
            let is_empty = self.file.is_none() && self.bytes == Some(0);
            let hint = if is_empty { "nothing was written" } else { "the end of the trace is missing" };
            return Err(Failure::new("lost the connection to the tracing service", "it has ended").hint(hint));
        }
        Ok(self)
    }
}

/// Snapshots that were saved.
#[derive(Debug, Default)]
struct Saved {
    number: usize,
    has_events: bool,
    failed: bool,
}

impl Saved {
    fn report(&mut self, snapshots: Vec<Result<Snapshot, Failure>>, progress: &Progress) {
        for snapshot in snapshots {
            match snapshot {
                Ok(snapshot) => {
                    self.number += 1;
                    self.has_events |= snapshot.has_events;
                    let (bytes, name, trigger) = (snapshot.bytes, snapshot.path.display(), &snapshot.trigger);
                    progress.note(&Line(format_args!("Wrote {bytes} bytes into {name}: trigger {trigger:?}")));
                }
                Err(failure) => {
                    self.failed = true;
                    progress.note(&format_args!("esatto: {failure}"));
                }
            }
        }
    }
}

/// Records until the command ends, the time is over, or the user stops it.
fn watch(
    recorder: &mut RecordingSession,
    stop: &mut StopSignal,
    mut program: Option<&mut Program>,
    progress: &Progress,
    saved: &mut Saved,
    early_warning: impl Fn(&Programs) -> Option<String>,
) -> Result<(), Failure> {
    let mut warn_at = Some(Instant::now() + WARN_AFTER);
    let mut is_command_running = program.is_some();
    while !(recorder.has_ended() || stop.received()) {
        if program.as_mut().is_some_and(|program| program.has_ended()) {
            if !recorder.waits_for_reader() {
                break;
            }
            // The trace is kept for a reader that comes now.
            if core::mem::take(&mut is_command_running) {
                progress.note(&"The command has ended. Its trace waits for the reader; Ctrl-C gives it up.");
            }
        }
        saved.report(recorder.snapshots(), progress);
        if let Some(line) = recorder.awaited() {
            progress.note(&line);
        }
        if warn_at.take_if(|at| *at <= Instant::now()).is_some() {
            if let Some(line) = early_warning(recorder.programs()) {
                progress.note(&Line(line));
            }
        }
        progress.show(&recorder.counts());
        let mut others: Vec<BorrowedFd<'_>> = vec![stop.as_fd()];
        others.extend(program.as_ref().filter(|_| is_command_running).and_then(|program| program.ending()));
        recorder.watch(TICK, &others)?;
    }
    Ok(())
}

/// Waits until a program reads the pipe, the time is over, or the user stops it.
fn await_reader(pipe: &mut Output, stop: &mut StopSignal, time: Option<Duration>) -> Result<(), Failure> {
    let deadline = time.map(|time| Instant::now() + time);
    while pipe.waits_for_reader() {
        if stop.received() || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return pipe.require_reader();
        }
        std::thread::sleep(TICK);
        pipe.find_reader()?;
    }
    Ok(())
}

/// Says that triggers came more often than the config allows.
fn limited(triggers: u64) -> String {
    let s = if triggers == 1 { "" } else { "s" };
    format!(
        "{triggers} trigger{s} came in vain because of max_per_24_h, which counts the triggers of a name in the last 24 \
         hours, over all sessions of the service."
    )
}

fn transfer(config: &TraceConfig, users_config: bool) -> Transfer {
    if config.write_into_file == Some(true) {
        Transfer::ByService
    } else if users_config {
        Transfer::AtEnd
    } else {
        Transfer::Drain
    }
}

/// Opens the file of `-o`, or plans one with a name of its own, unless the service creates the file
/// that the config names (`docs/spec/cli.md` §7).
fn open_output(args: &args::Record, config: &TraceConfig) -> Result<Option<Output>, Failure> {
    let names_file =
        config.write_into_file == Some(true) && config.output_path.as_ref().is_some_and(|path| !path.is_empty());
    let takes_snapshots = MissingTrigger::mode(config) == Some(TriggerMode::CLONE_SNAPSHOT);
    match (&args.out, names_file) {
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

/// Says what is in the file, and what is missing.
fn report(recorded: &Recorded, config: &TraceConfig, snapshots: usize) {
    if !recorded.flushed {
        let who = names(&recorded.silent.at_flush).unwrap_or_else(|| "Some programs".to_owned());
        say!("{who} did not deliver the last events in time. The end of the trace is incomplete.");
    }
    if let Some(who) = names(&recorded.silent.at_stop) {
        say!("{who} did not stop in time. It delays the end of every recording.");
    }
    for (source, reason) in &recorded.problems {
        say!("{} did not record everything: {}.", Line(source), Line(reason.trim_end_matches('.')));
    }
    for line in recorded.machine.ends(&recorded.programs) {
        say!("{}", Line(line));
    }
    if let Some(mode) = recorded.programs.lockdown {
        say!("{}", mode.in_words(&recorded.programs));
    }
    for (id, names) in recorded.relays.shared_ids() {
        let names = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" and ");
        say!(
            "The relays {} have one machine id, 0x{id:08x}: the trace shows their machines as one. If they are two, start \
             each relay with another ESATTO_MACHINE_ID_HINT.",
            Line(names)
        );
    }
    for (machine, after) in recorded.relays.ends() {
        let after = after.map_or_else(String::new, |after| format!(" after {:.1} s", after.as_secs_f64()));
        say!(
            "The connection to machine {} broke{after}: the last events of its programs may be missing.",
            Line(machine)
        );
    }
    if let Some(line) = recorded.starts.in_words() {
        say!("{}", Line(line));
    }
    if recorded.has_events {
        for line in missed_programs(config, &recorded.programs) {
            say!("{}", Line(line));
        }
    }
    let compressed = config.compression.is_some() && config.compression_type.is_none();
    if compressed && recorded.has_events && recorded.file.is_some() && !recorded.is_compressed {
        say!(
            "The service did not compress the trace: it does not know `compression`. Use \
             `compression_type: COMPRESSION_TYPE_DEFLATE`, which every service knows."
        );
    }
    if recorded.gaps > 0 {
        say!(
            "Events were lost in {} place{}, because a program found its shared memory full. Give it more \
             (`Builder::shared_memory`; in C `PerfettoProducerBackendInitArgsSetShmemSizeHintKb`), or let its threads \
             wait (`buffer_exhausted_policy: BUFFER_EXHAUSTED_STALL_THEN_DROP` in the config of the data source, \
             `stall` in a `SessionConfig`): see docs/concepts/losses.md.",
            recorded.gaps,
            if recorded.gaps == 1 { "" } else { "s" }
        );
    }
    if let Some(line) = recorded.machine.kernel_losses() {
        say!("{line}");
    }
    if recorded.losses > 0 {
        say!("{} chunks or packets were lost. Larger buffers may help.", recorded.losses);
    }
    if recorded.limited_triggers > 0 {
        say!("{}", limited(recorded.limited_triggers));
    }
    if recorded.missed_snapshots > 0 {
        say!(
            "{} triggers got no snapshot: they came too fast, or at the end. {LIMIT_TRIGGERS}",
            recorded.missed_snapshots
        );
    }
    let clears = config.incremental_state_config.as_ref().and_then(|clears| clears.clear_period_ms);
    // Esatto's service asks for the names again.
    if recorded.overwritten > 0 && clears.unwrap_or(0) == 0 && !recorded.programs.is_esattos {
        say!(
            "The ring was overwritten, and with it names that later events may need. Add \
             `incremental_state_config {{ clear_period_ms: 1000 }}` to the config: this service is not Esatto's, which \
             asks for the names again."
        );
    }
    let by_service = || {
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(config.output_path.as_ref()?.as_bytes()));
        // The service has its own current folder.
        let meta = std::fs::metadata(&path).ok().filter(|meta| path.is_absolute() && meta.is_file());
        Some((meta.map(|meta| meta.len()), path))
    };
    let written = match &recorded.file {
        Some(path) => Some((recorded.bytes, path.clone())),
        None if snapshots > 0 => return,
        None => by_service(),
    };
    let Some((bytes, path)) = written else { return };
    let name = if Output::is_stdout(&path) { "stdout".into() } else { path.to_string_lossy() };
    let name = Line(name);
    match bytes {
        Some(bytes) if recorded.has_events => {
            say!("Wrote {bytes} bytes into {name} ({}). Open it in https://ui.perfetto.dev", Size(bytes));
        }
        Some(bytes) => say!("Wrote {bytes} bytes into {name}."),
        None if path.is_relative() => say!("The service wrote the trace into {name}, in the folder of the service."),
        None => say!("The service wrote the trace into {name}."),
    }
}

fn names(silent: &BTreeSet<String>) -> Option<String> {
    let names = silent.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    Some(Line(names).to_string()).filter(|names| !names.is_empty())
}

/// The recorded command.
#[derive(Debug)]
struct Program {
    child: Child,
    /// Readable when the command has ended; `None` on kernels without such descriptors.
    ending: Option<OwnedFd>,
    /// The status of a command that has ended. It is unknown if the parent of this process ignores
    /// SIGCHLD.
    status: Option<io::Result<ExitStatus>>,
}

impl Program {
    /// Starts the command. If `piped`, standard output is for the trace, so the command's output
    /// goes to standard error.
    fn start(command: &[std::ffi::OsString], service: &PrivateService, piped: bool) -> Result<Self, Failure> {
        let (name, args) =
            command.split_first().ok_or_else(|| Failure::new("cannot start a command", "no command is given"))?;
        let mut command = Command::new(name);
        service.announce_to(command.args(args));
        command.env(WAIT_FOR.0, WAIT_FOR.1);
        if std::env::var_os(WAIT.0).is_none() {
            command.env(WAIT.0, WAIT.1);
        }
        if piped {
            let stderr = io::stderr().as_fd().try_clone_to_owned();
            command.stdout(stderr.attempt(|| "cannot redirect the output of the command".to_owned())?);
        }
        let child = command.spawn().map_err(|e| {
            let failure = Failure::new(format!("cannot start {}", name.to_string_lossy()), &e);
            match e.kind() {
                io::ErrorKind::NotFound => failure.hint("check the spelling and PATH"),
                _ => failure,
            }
        })?;
        let ending = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        Ok(Self { child, ending, status: None })
    }

    fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().transpose();
        }
        self.status.is_some()
    }

    fn ending(&self) -> Option<BorrowedFd<'_>> {
        self.ending.as_ref().map(|fd| fd.as_fd())
    }

    /// Waits until the command has ended, the user stops it, or the time is over.
    fn wait(&mut self, stop: &mut StopSignal, time: Option<Duration>) {
        let deadline = time.map(|time| Instant::now() + time);
        while !(self.has_ended() || stop.received() || deadline.is_some_and(|deadline| Instant::now() >= deadline)) {
            std::thread::sleep(TICK);
        }
    }

    /// Returns the exit status. If the command still runs because the time is over, asks it to end.
    fn end(mut self) -> io::Result<ExitStatus> {
        if !self.has_ended() {
            say!("The recording is over. Asking the command to end …");
            // It may have ended this very moment.
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let deadline = Instant::now() + TERM_TIMEOUT;
            while !self.has_ended() && Instant::now() < deadline {
                std::thread::sleep(TICK / 10);
            }
            if !self.has_ended() {
                say!("The command does not end. Killing it.");
                let _ = self.child.kill();
            }
        }
        let status = self.status.unwrap_or_else(|| self.child.wait());
        status.inspect_err(|why| say!("The exit status of the command is unknown: {why}"))
    }
}

fn has_failed(status: Option<&io::Result<ExitStatus>>) -> bool {
    status.is_some_and(|status| !status.as_ref().is_ok_and(ExitStatus::success))
}

/// Returns the command's own exit code, or 128 plus the number of the signal that ended it, as
/// shells do.
fn exit_code(status: &io::Result<ExitStatus>) -> ExitCode {
    let Ok(status) = status else { return ExitCode::FAILURE };
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_writes_if_the_config_says_so_and_ring_buffers_are_read_once() {
        let by_service = TraceConfig { write_into_file: Some(true), ..TraceConfig::default() };
        assert_eq!(transfer(&by_service, true), Transfer::ByService);
        assert_eq!(transfer(&TraceConfig::default(), true), Transfer::AtEnd);
        assert_eq!(transfer(&trace_config::track_events(false), false), Transfer::Drain);
    }

    #[test]
    fn a_signal_counts_as_128_and_its_number() {
        let killed = Ok(ExitStatus::from_raw(9));
        assert_eq!(format!("{:?}", exit_code(&killed)), format!("{:?}", ExitCode::from(137)));
    }
}
