//! The time in which a session records: progress, snapshots, warnings.

use core::time::Duration;
use std::collections::BTreeSet;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Instant, SystemTime};

use esatto_trace::escape::Line;

use super::TICK;
use super::program::Program;
use crate::console;
use crate::failure::Failure;
use crate::machine_losses::MachineLosses;
use crate::progress::Progress;
use crate::recording_session::{Recorded, RecordingSession};
use crate::service_state::Programs;
use crate::snapshots::Snapshot;
use crate::stop_signal::StopSignal;
use crate::trace_output::Output;

/// Time after which a config that matches nothing is told. Programs have connected by then.
const WARN_AFTER: Duration = Duration::from_secs(1);

/// Snapshots that were saved.
#[derive(Debug, Default)]
pub(in crate::commands) struct Saved {
    /// Name and size of each.
    pub(super) files: Vec<(String, u64)>,
    pub(in crate::commands) has_events: bool,
    pub(in crate::commands) failed: bool,
    /// Data of the machine that the session lacked until the last snapshot.
    machine: Option<MachineLosses>,
    problems: BTreeSet<(String, String)>,
}

impl Saved {
    /// Returns how many there are.
    pub(in crate::commands) fn number(&self) -> usize {
        self.files.len()
    }

    /// Passes on what the snapshots tell of the machine.
    pub(in crate::commands) fn complete(&mut self, recorded: &mut Recorded) {
        if let Some(machine) = self.machine.take() {
            recorded.add_machine(machine, core::mem::take(&mut self.problems));
        }
    }

    pub(in crate::commands) fn report(&mut self, snapshots: Vec<Result<Snapshot, Failure>>, progress: &Progress) {
        for snapshot in snapshots {
            match snapshot {
                Ok(snapshot) => {
                    self.has_events |= snapshot.has_events;
                    let (bytes, name, trigger) = (snapshot.bytes, snapshot.path.display(), &snapshot.trigger);
                    if !console::is_quiet() {
                        progress.note(&Line(format_args!("Wrote {bytes} bytes into {name}: trigger {trigger:?}")));
                    }
                    self.files.push((name.to_string(), bytes));
                    // Each snapshot counts from the begin of the session.
                    self.machine = Some(snapshot.machine);
                    self.problems.extend(snapshot.problems);
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
pub(in crate::commands) fn watch(
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
pub(super) fn await_reader(pipe: &mut Output, stop: &mut StopSignal, time: Option<Duration>) -> Result<(), Failure> {
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

/// Waits with a session that is prepared until this time of the clock. Returns false if the user
/// stops it before, or the session ends.
pub(super) fn await_time(
    recorder: &mut RecordingSession,
    stop: &mut StopSignal,
    start: SystemTime,
    progress: &Progress,
) -> Result<bool, Failure> {
    loop {
        if stop.received() || recorder.has_ended() {
            return Ok(false);
        }
        // The clock may be set meanwhile.
        let left = match start.duration_since(SystemTime::now()) {
            Ok(left) if !left.is_zero() => left,
            _ => return Ok(true),
        };
        progress.show_wait(left);
        recorder.watch(left.min(TICK), &[stop.as_fd()])?;
    }
}
