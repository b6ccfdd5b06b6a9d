//! The end of a recording: the last events, the stop, and the rest of the trace.

use core::time::Duration;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

use esatto_ipc::Error as IpcError;
use esatto_ipc::blocking_client::Reply;
use esatto_ports::consumer_port::method;
use esatto_schema::FlushRequest;

use super::timeouts::STOP_MARGIN;
use super::{ANSWER_TIMEOUT, RecordingSession, TICK, Transfer, next_reply};
use crate::failure::Failure;
use crate::machine_losses::MachineLosses;
use crate::progress::Progress;
use crate::service_state::Programs;
use crate::snapshots::Snapshot;
use crate::trace_content::{End, Relays, Silent, Starts};
use crate::trace_output::Output;
use crate::unreadable_packets::UnreadablePackets;

/// Longest time for all of the answer about the programs. The trace is complete without it.
const PROGRAMS_TIMEOUT: Duration = Duration::from_secs(5);
/// Flush flags: reason "trace stop", initiator "command line tool" (`docs/spec/wire-protocol.md`
/// §9).
const FLUSH_FLAGS: u64 = 0x22;

/// Result of a recording.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// Bytes that are in the file, as far as this program can know.
    pub(crate) bytes: Option<u64>,
    /// Bytes that programs wrote into the buffers.
    pub(crate) buffer_bytes: u64,
    pub(crate) losses: u64,
    /// Gaps where a program dropped packets, because it found its shared memory full.
    pub(crate) gaps: u64,
    /// Chunks of ring buffers that newer ones replaced, as intended.
    pub(crate) overwritten: u64,
    /// Name of the file; `None` if the service has created it, or snapshots were taken.
    pub(crate) file: Option<PathBuf>,
    /// True if the file has an event of a program that can be read, or cannot be opened.
    pub(crate) has_events: bool,
    /// Packets that need a state that was lost.
    pub(crate) unreadable: UnreadablePackets,
    /// True if the file has track events, or has events and the config names no other data source.
    pub(crate) has_track_events: bool,
    /// True if the service keeps the trace back because no trigger has come.
    pub(crate) lacks_trigger: bool,
    /// Triggers that did not act because of `max_per_24_h`.
    pub(crate) limited_triggers: u64,
    /// Triggers that got no snapshot, because too many came.
    pub(crate) missed_snapshots: u64,
    /// Programs that were connected at any time.
    pub(crate) programs: Programs,
    /// The trace has compressed packets.
    pub(crate) is_compressed: bool,
    pub(crate) starts: Starts,
    pub(crate) silent: Silent,
    pub(crate) relays: Relays,
    /// Data sources of machines that did not record everything, and the reasons.
    pub(crate) problems: BTreeSet<(String, String)>,
    pub(crate) machine: MachineLosses,
    /// The service has stopped writing its file at the size that the config names; `None` if the
    /// file cannot be read.
    pub(crate) is_cut: Option<bool>,
    /// Reason why the service ended the session, unless it was asked to.
    pub(crate) error: Option<String>,
    /// True if the error came before the service had created its file.
    pub(crate) is_refused: bool,
    /// True if all programs have delivered their remaining data.
    pub(crate) flushed: bool,
    /// The service has ended before this program had its answers. True if it has completed the
    /// file.
    pub(crate) completed_by_service: Option<bool>,
}

impl Recorded {
    /// Adds what the last snapshot tells of the machine. The session itself cannot be read.
    pub(crate) fn add_machine(&mut self, machine: MachineLosses, problems: BTreeSet<(String, String)>) {
        self.machine = machine;
        self.problems.extend(problems);
    }
}

impl RecordingSession {
    /// Ends the session if it still runs, and brings all of the trace into the file. Passes the
    /// last snapshots to `save`.
    pub(crate) fn finish(
        mut self,
        progress: &Progress,
        save: impl FnMut(Vec<Result<Snapshot, Failure>>),
    ) -> Result<Recorded, Failure> {
        let ended = self.end(progress, save);
        let flushed = match ended {
            _ if self.is_left_alone() => true,
            Ok(flushed) => flushed,
            Err(failure) => return Err(self.give_up(failure)),
        };
        if self.is_left_alone() {
            self.content.wants_silent = true;
            // The service may have told the end of the session before its own.
            while let Ok(Some(reply)) = self.client.try_reply() {
                self.on_reply(&reply)?;
            }
        }
        self.content.wants_unreadable = self.stats.losses + self.stats.gaps + self.stats.overwritten > 0;
        let completed_by_service = self.is_left_alone().then(|| self.has_completed_file());
        let is_limited = self.max_file_bytes > 0 && self.transfer == Transfer::ByService;
        let end_of = |trace: std::io::Result<File>| trace.ok().filter(|_| is_limited).map(End::of);
        let (mut bytes, mut file, mut lacks_trigger, mut end) = (None, None, false, None);
        if let Some(mut output) = self.output.take() {
            let is_by_service = self.transfer == Transfer::ByService;
            lacks_trigger = self.waits_for_trigger
                && if is_by_service { output.final_bytes(true) == Some(0) } else { output.packets() == 0 };
            let is_missing = completed_by_service == Some(false) && output.final_bytes(true) == Some(0);
            if self.snapshots.is_some() || lacks_trigger || is_missing {
                bytes = is_missing.then_some(0);
                output.give_up();
            } else {
                output.finish()?;
                if is_by_service {
                    // If the file cannot be read, it may have events.
                    match output.reopen() {
                        Ok(trace) => self.content.read(trace),
                        Err(_) => self.content.has_events = true,
                    }
                    end = end_of(output.reopen());
                }
                (bytes, file) = (output.final_bytes(is_by_service), Some(output.name().to_owned()));
            }
        } else {
            if let Some(file) = self.service_file.as_ref().filter(|_| !matches!(self.ended, Some(Some(_)))) {
                file.require_in_place()?;
                end = end_of(file.open());
            }
            match self.service_file.as_ref().and_then(|file| file.open().ok()) {
                Some(trace) => {
                    lacks_trigger = self.waits_for_trigger && trace.metadata().is_ok_and(|meta| meta.len() == 0);
                    self.content.read(trace);
                }
                None => self.content.has_events = true,
            }
        }
        let is_undisturbed = !matches!(self.ended, Some(Some(_))) && completed_by_service.is_none() && !lacks_trigger;
        let is_cut = if is_limited && is_undisturbed { end.map(End::is_cut) } else { Some(false) };
        let error = self.ended.flatten();
        let is_refused = error.as_ref().zip(self.service_file).is_some_and(|(error, file)| file.is_refused(error));
        Ok(Recorded {
            // If the service has asked for the last events, only the trace tells.
            flushed: flushed && self.content.silent.at_flush.is_empty(),
            bytes,
            buffer_bytes: self.stats.written_bytes,
            losses: self.stats.losses,
            // Older services do not count them.
            gaps: self.stats.gaps.max(self.content.unreadable.gaps),
            overwritten: self.stats.overwritten,
            file,
            has_events: self.content.has_events,
            unreadable: self.content.unreadable,
            has_track_events: self.content.has_track_events
                || (self.content.has_events && !self.content.wants_track_events),
            lacks_trigger,
            limited_triggers: self.stats.limited_triggers,
            missed_snapshots: self.snapshots.map_or(0, |snapshots| snapshots.missed),
            programs: self.programs,
            is_compressed: self.content.is_compressed,
            starts: self.content.starts,
            silent: self.content.silent,
            relays: self.content.relays,
            problems: self.content.problems,
            machine: self.content.machine,
            is_cut,
            error,
            is_refused,
            completed_by_service,
        })
    }

    /// Ends the recording because of a failure. If the service has gone, adds what is on the disk.
    pub(crate) fn give_up(mut self, failure: Failure) -> Failure {
        if !self.is_service_gone {
            return failure;
        }
        let kept = match (&mut self.output, &self.snapshots) {
            (_, Some(snapshots)) if snapshots.saved > 0 => "the snapshots up to then are complete".to_owned(),
            (Some(output), _) if output.waits_for_reader() => "nothing was written".to_owned(),
            (Some(output), _) => {
                if let Err(failure) = output.flush() {
                    return failure;
                }
                match output.bytes() {
                    0 => "nothing was written".to_owned(),
                    bytes => {
                        let name = output.name();
                        let name = if Output::is_stdout(name) { "stdout".into() } else { name.to_string_lossy() };
                        format!("{name} has the first {bytes} bytes, the end is missing")
                    }
                }
            }
            (None, _) => return failure,
        };
        Failure::new("lost the connection to the tracing service", "it has ended or was restarted").hint(kept)
    }

    /// Ends the session if it still runs, and reads what the service has. Returns whether all
    /// programs have delivered their remaining data.
    fn end(
        &mut self,
        progress: &Progress,
        mut save: impl FnMut(Vec<Result<Snapshot, Failure>>),
    ) -> Result<bool, Failure> {
        let flushed = self.has_ended() || self.flush(progress)?;
        self.content.wants_silent |= !flushed;
        // The answer to an earlier question may lack the last programs.
        self.await_programs()?;
        self.ask_for_programs()?;
        if self.snapshots.is_some() {
            self.await_programs()?;
            self.final_stats()?;
        }
        // Only Esatto's service counts them. For others, a clone tells.
        let may_have_delayed = !self.programs.is_esattos || self.stats.delayed_triggers > 0;
        if let Some(snapshots) = &mut self.snapshots {
            // A clone needs the session, which is gone if it failed.
            let has_failed = matches!(self.ended, Some(Some(_)));
            save(snapshots.finish(!has_failed && may_have_delayed));
        }
        self.disable(progress)?;
        // The service answers in order, so the programs are those before the end.
        self.await_programs()?;
        if matches!(self.transfer, Transfer::AtEnd | Transfer::Drain) {
            if let Some(output) = &mut self.output {
                output.require_reader()?;
            }
            self.read_all()?;
        }
        self.free()?;
        Ok(flushed)
    }

    /// Returns whether the file has all that the service recorded. The service ends the session
    /// only after it has completed the file, and the file usually says so itself.
    fn has_completed_file(&self) -> bool {
        let file = match (&self.output, &self.service_file) {
            (Some(output), _) => output.reopen(),
            (None, Some(file)) => file.open(),
            (None, None) => return false,
        };
        let has_ended = self.ended == Some(None);
        let end = file.map(End::of);
        end.map_or(has_ended, |end| end.is_whole && (has_ended || end.is_noted))
    }

    /// Asks all programs for their remaining data. Returns false if some did not answer in time.
    fn flush(&mut self, progress: &Progress) -> Result<bool, Failure> {
        self.observe_programs()?;
        let request = FlushRequest { flags: Some(FLUSH_FLAGS), ..FlushRequest::default() };
        let flushing = self.client.send_message::<method::Flush>(&request, None);
        self.flushing = Some(flushing.map_err(|e| self.lost(e))?);
        self.awaited.on_flush(Instant::now());
        let mut deadline = Instant::now() + self.timeouts.flush;
        while self.flushing.is_some() && !self.has_ended() {
            match self.next_reply(deadline, progress) {
                Ok(reply) if Some(reply.request_id) == self.flushing => {
                    self.flushing = None;
                    return Ok(reply.success);
                }
                Ok(reply) => deadline += self.on_other_reply(&reply)?,
                Err(IpcError::Timeout) => return Ok(false),
                Err(e) => return Err(self.lost(e)),
            }
        }
        Ok(true)
    }

    fn disable(&mut self, progress: &Progress) -> Result<(), Failure> {
        if self.has_ended() {
            return Ok(());
        }
        self.send::<method::DisableTracing>().map_err(|e| self.lost(e))?;
        let begun = Instant::now();
        self.awaited.on_stop(begun);
        let mut deadline = begun + self.timeouts.stop;
        while !self.has_ended() {
            match self.next_reply(deadline, progress) {
                Ok(reply) => deadline += self.on_other_reply(&reply)?,
                Err(e @ IpcError::Timeout) => return Err(Failure::new("the service did not end the session", e)),
                Err(e) => return Err(self.lost(e)),
            }
        }
        // The session names those that let the service wait until the end.
        self.content.wants_silent |= begun.elapsed() + STOP_MARGIN >= self.timeouts.stop;
        Ok(())
    }

    fn read_all(&mut self) -> Result<(), Failure> {
        // Two streams at once would mix their packets (§13), so the current one is read to its end
        // first.
        self.left_bytes = self.max_trace_bytes;
        self.await_read()?;
        self.read()?;
        self.await_read()?;
        // Without a trigger, there is nothing to deliver. If the session has failed, that is the
        // reason.
        if self.is_read_refused && !self.waits_for_trigger && !matches!(self.ended, Some(Some(_))) {
            return Err(Failure::new("the service did not deliver the trace", "it refused to read its buffers"));
        }
        Ok(())
    }

    fn await_read(&mut self) -> Result<(), Failure> {
        while self.reading.is_some() {
            // The timeout is for each reply, not for all together.
            self.await_reply(Instant::now() + ANSWER_TIMEOUT, "the service did not deliver the trace")?;
        }
        Ok(())
    }

    fn final_stats(&mut self) -> Result<(), Failure> {
        match self.call::<method::GetTraceStats>() {
            Ok(reply) => self.on_stats(&reply),
            // Services before Android 10 have no stats.
            Err(IpcError::NoSuchMethod(_)) => {}
            Err(e) => return Err(self.lost(e)),
        }
        Ok(())
    }

    /// Asks for the last stats, and frees the buffers.
    fn free(&mut self) -> Result<(), Failure> {
        let stats = match self.send::<method::GetTraceStats>() {
            Ok(stats) => Some(stats),
            // Services before Android 10 have no stats.
            Err(IpcError::NoSuchMethod(_)) => None,
            Err(e) => return Err(self.lost(e)),
        };
        let freed = self.send::<method::FreeBuffers>().map_err(|e| self.lost(e))?;
        if let Some(stats) = stats {
            let reply = self.client.wait_reply(stats, Some(ANSWER_TIMEOUT)).map_err(|e| self.lost(e))?;
            self.on_stats(&reply);
        }
        // The reply has no content. This waits for it so that the buffers are freed before this
        // program ends.
        self.client.wait_reply(freed, Some(ANSWER_TIMEOUT)).map_err(|e| self.lost(e)).map(drop)
    }

    /// Waits for the next reply. Tells the user for whom, if it takes long.
    fn next_reply(&mut self, deadline: Instant, progress: &Progress) -> Result<Reply, IpcError> {
        loop {
            if let Some(line) = self.awaited() {
                progress.note(&line);
            }
            let now = Instant::now();
            match next_reply(&mut self.client, deadline.min(now + TICK)) {
                Err(IpcError::Timeout) if now + TICK < deadline => {}
                other => return other,
            }
        }
    }

    /// Takes another reply than the wanted one. Returns the time that this took: it is no wait for
    /// the service, whose reply may be there.
    fn on_other_reply(&mut self, reply: &Reply) -> Result<Duration, Failure> {
        let begun = Instant::now();
        self.on_reply(reply)?;
        Ok(begun.elapsed())
    }

    /// Waits for the answer to the question about the programs, if there is one. A trace does not
    /// need it.
    fn await_programs(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + PROGRAMS_TIMEOUT;
        while self.asked_state.is_some() {
            match next_reply(&mut self.client, deadline) {
                Ok(reply) => self.on_reply(&reply)?,
                Err(IpcError::Timeout) => self.do_without_programs(),
                Err(e) => return Err(self.lost(e)),
            }
        }
        Ok(())
    }

    /// Takes the next reply.
    fn await_reply(&mut self, deadline: Instant, what: &str) -> Result<(), Failure> {
        match next_reply(&mut self.client, deadline) {
            Ok(reply) => self.on_reply(&reply),
            Err(e @ IpcError::Timeout) => Err(Failure::new(what, e)),
            Err(e) => Err(self.lost(e)),
        }
    }
}
