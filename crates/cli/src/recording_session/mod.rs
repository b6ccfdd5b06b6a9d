//! A recording from the consumer's side: start, watch, stop, and write the trace to a file.
//!
//! ```text
//! start   EnableTracing ─ QueryCapabilities ─▶ its reply says that the session runs (or why not)
//! watch   ReadBuffers, GetTraceStats, QueryServiceState from time to time ─▶ file, progress, programs
//!         ObserveEvents ─▶ CloneSession on another connection; at the end, programs that do not answer
//! finish  Flush ─▶ QueryServiceState ─▶ DisableTracing ─▶ end of EnableTracing ─▶ ReadBuffers ─▶ GetTraceStats
//!         ─▶ FreeBuffers
//! ```
//!
//! The service handles the calls of one connection in order (`docs/spec/wire-protocol.md` §4), so a
//! program that starts after `start` finds the session.

mod finish;
mod service_file;
mod start;
mod stats;
mod timeouts;

use core::time::Duration;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use esatto_ipc::blocking_client::Reply;
use esatto_ipc::{BlockingClient, Error as IpcError, RequestId};
use esatto_ports::Rpc;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned as _;
use esatto_schema::observable_events::Type;
use esatto_schema::{
    EnableTracingResponseReader, GetTraceStatsResponseReader, ObserveEventsRequest, ObserveEventsResponse,
    ReadBuffersResponseReader,
};
use esatto_trace::TraceStats;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

pub(crate) use self::finish::Recorded;
use self::service_file::ServiceFile;
pub(crate) use self::start::refusal;
use self::stats::Stats;
use self::timeouts::Timeouts;
use crate::awaited_programs::AwaitedPrograms;
use crate::failure::Failure;
use crate::progress::Counts;
use crate::service_connection::lost;
use crate::service_state::Programs;
use crate::snapshots::{Snapshot, Snapshots};
use crate::trace_content::Content;
use crate::trace_output::{MAX_PACKET_BYTES, Output};

/// Longest time for an answer that needs only the service.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two questions about the programs while they record.
const PROGRAMS_PERIOD: Duration = Duration::from_secs(5);
/// Time between two readings of a buffer that is read while it records.
const DRAIN_PERIOD: Duration = Duration::from_millis(250);
/// Time between two queries of the service's counts.
const STATS_PERIOD: Duration = Duration::from_millis(500);
/// Time before the end of the recording from which the service tells which programs run.
const OBSERVED: Duration = Duration::from_secs(1);
/// Time between two looks at the clock while the service does not answer.
const TICK: Duration = Duration::from_millis(100);
/// Way of the trace into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// This program reads the buffers all the time, so that they need not hold the whole trace.
    Drain,
    /// This program reads the buffers once at the end, so that the config's fill policy applies.
    AtEnd,
    /// The service writes into our file, or into one that it creates.
    ByService,
    /// Each trigger saves a snapshot; the session itself cannot be read.
    Snapshots,
}

/// A session that this program controls.
#[derive(Debug)]
pub(crate) struct RecordingSession {
    client: BlockingClient,
    transfer: Transfer,
    /// The encoded config.
    config: Vec<u8>,
    output: Option<Output>,
    /// The file that the service creates, if it does.
    service_file: Option<ServiceFile>,
    /// Slices of a packet whose last slice has not come yet.
    packet: Vec<u8>,
    /// The call that the service answers at the end of the session.
    enabled: Option<RequestId>,
    /// The session waits for [`begin`](Self::begin).
    is_prepared: bool,
    reading: Option<RequestId>,
    /// A reading has ended.
    has_read: bool,
    asked_stats: Option<RequestId>,
    flushing: Option<RequestId>,
    asked_state: Option<RequestId>,
    /// The service answers questions about its programs.
    tells_programs: bool,
    last_asked_state: Instant,
    /// The service has refused to deliver the trace.
    is_read_refused: bool,
    /// Bytes that the service may deliver after the end of the session.
    max_trace_bytes: u64,
    /// Size at which the service ends its file; 0 if there is no limit.
    max_file_bytes: u64,
    /// Bytes that it may still deliver.
    left_bytes: u64,
    /// Time after which the service ends the session.
    limit: Option<Duration>,
    /// Time when the service begins to end the session by itself.
    due: Option<Instant>,
    awaited: AwaitedPrograms,
    timeouts: Timeouts,
    programs: Programs,
    content: Content,
    snapshots: Option<Snapshots>,
    waits_for_trigger: bool,
    /// The service will tell when all connected data sources record.
    awaits_sources: bool,
    last_drain: Instant,
    last_stats: Instant,
    stats: Stats,
    /// The first counts of the service for this session. Some counts have grown since the service
    /// started.
    first_stats: Option<TraceStats>,
    /// The end of the session as the service reported it, with its error text.
    ended: Option<Option<String>>,
    /// The service has closed the connection.
    is_service_gone: bool,
}

impl RecordingSession {
    /// Sends a request without content.
    fn send<M: Rpc>(&mut self) -> Result<RequestId, IpcError> {
        self.client.send_message::<M>(&M::Request::default(), None)
    }

    /// Sends a request without content, and waits for the reply.
    fn call<M: Rpc>(&mut self) -> Result<Reply, IpcError> {
        let request = self.send::<M>()?;
        self.client.wait_reply(request, Some(ANSWER_TIMEOUT))
    }

    /// Serves the session until `timeout`, or until one of `others` is readable.
    pub(crate) fn watch(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]) -> Result<(), Failure> {
        let served = self.serve(timeout, others);
        if self.is_left_alone() { Ok(()) } else { served }
    }

    fn serve(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]) -> Result<(), Failure> {
        let deadline = Instant::now() + timeout;
        if let Some(output) = &mut self.output {
            output.show_content()?;
            output.find_reader()?;
        }
        if let Some(file) = &mut self.service_file {
            file.observe();
        }
        loop {
            self.ask()?;
            while let Some(reply) = self.client.try_reply().map_err(|e| self.lost(e))? {
                self.on_reply(&reply)?;
                if Instant::now() >= deadline {
                    // Replies without end must not keep the caller from a signal.
                    break;
                }
            }
            if self.has_ended() {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wait(left.min(DRAIN_PERIOD), others)? {
                return Ok(());
            }
        }
    }

    /// Returns the programs that have been seen so far.
    pub(crate) const fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Returns whether the service has ended the session: its time is over, or it failed.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some() || self.is_left_alone()
    }

    /// Returns whether the service has ended the session, or is about to, because its time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.has_ended() || self.due.is_some_and(|due| Instant::now() >= due)
    }

    /// Returns whether the trace goes into a named pipe that no program reads yet.
    pub(crate) fn waits_for_reader(&self) -> bool {
        self.output.as_ref().is_some_and(Output::waits_for_reader)
    }

    /// Returns whether the service has ended, and the trace is in its file as far as it goes.
    fn is_left_alone(&self) -> bool {
        self.is_service_gone && self.transfer == Transfer::ByService
    }

    /// Returns the line about programs that do not answer, once it is due.
    pub(crate) fn awaited(&mut self) -> Option<String> {
        let now = Instant::now();
        if self.due.is_some_and(|due| now >= due) {
            self.awaited.on_flush(now);
        }
        let line = self.awaited.line(now, &self.programs)?;
        // The trace will name them.
        self.content.wants_silent = true;
        Some(line)
    }

    /// Returns the amounts recorded so far.
    pub(crate) fn counts(&self) -> Counts {
        let losses = self.stats.losses.saturating_add(self.stats.gaps);
        match (&self.output, self.transfer) {
            (Some(output), Transfer::ByService) => {
                Counts { bytes: output.file_bytes().max(self.stats.written_bytes), packets: None, losses }
            }
            (Some(output), _) if output.packets() > 0 => {
                Counts { bytes: output.bytes(), packets: Some(output.packets()), losses }
            }
            _ => Counts { bytes: self.stats.written_bytes, packets: None, losses },
        }
    }

    /// Returns the snapshots that were completed since the last call, or why they failed.
    pub(crate) fn snapshots(&mut self) -> Vec<Result<Snapshot, Failure>> {
        self.snapshots.as_mut().map(Snapshots::results).unwrap_or_default()
    }

    /// Asks the service to tell which programs run, and which have stopped.
    fn observe_programs(&mut self) -> Result<(), Failure> {
        // Services before Android 10 have no such method.
        if self.awaited.is_told() || !self.client.has::<method::ObserveEvents>() {
            return Ok(());
        }
        // This question takes the place of the one before.
        let clones = self.snapshots.is_some().then_some(Type::TYPE_CLONE_TRIGGER_HIT);
        let starts = self.awaits_sources.then_some(Type::TYPE_ALL_DATA_SOURCES_STARTED);
        let types: Vec<Type> = [Type::TYPE_DATA_SOURCES_INSTANCES].into_iter().chain(clones).chain(starts).collect();
        observe(&mut self.client, &types).map_err(|e| self.lost(e))?;
        self.awaited.are_told();
        // Their process ids.
        self.ask_for_programs()
    }

    /// Asks the service for its programs, unless it is being asked already.
    fn ask_for_programs(&mut self) -> Result<(), Failure> {
        // Services before Android 10 have no such method.
        self.tells_programs &= self.client.has::<method::QueryServiceState>();
        if self.asked_state.is_none() && self.tells_programs {
            self.last_asked_state = Instant::now();
            self.asked_state = Some(self.send::<method::QueryServiceState>().map_err(|e| self.lost(e))?);
        }
        Ok(())
    }

    /// Asks for the programs no more.
    fn do_without_programs(&mut self) {
        (self.asked_state, self.tells_programs) = (None, false);
    }

    /// Sends the requests that are due.
    fn ask(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        if self.due.is_some_and(|due| now + OBSERVED >= due) {
            self.observe_programs()?;
        }
        let has_room = self.output.as_ref().is_none_or(Output::has_room);
        let drains = self.transfer == Transfer::Drain && has_room && !self.is_prepared;
        if drains && self.reading.is_none() && now - self.last_drain >= DRAIN_PERIOD {
            self.last_drain = now;
            self.read()?;
        }
        if self.asked_stats.is_none() && now - self.last_stats >= STATS_PERIOD {
            self.last_stats = now;
            self.ask_stats()?;
            if self.stats.written_bytes == 0 || now - self.last_asked_state >= PROGRAMS_PERIOD {
                // If nothing comes, the user wants to know which programs were there.
                self.ask_for_programs()?;
            }
        }
        Ok(())
    }

    fn ask_stats(&mut self) -> Result<(), Failure> {
        // Services before Android 10 have no stats.
        if self.client.has::<method::GetTraceStats>() {
            self.asked_stats = Some(self.send::<method::GetTraceStats>().map_err(|e| self.lost(e))?);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), Failure> {
        self.reading = Some(self.send::<method::ReadBuffers>().map_err(|e| self.lost(e))?);
        Ok(())
    }

    fn on_reply(&mut self, reply: &Reply) -> Result<(), Failure> {
        let request = Some(reply.request_id);
        if request == self.enabled {
            let error = EnableTracingResponseReader::new(&reply.body)
                .error()
                .map(|text| String::from_utf8_lossy(text).into_owned());
            let rejected = || "the service ended the session without a reason".to_owned();
            self.ended = Some(if reply.success { error } else { Some(error.unwrap_or_else(rejected)) });
        } else if request == self.reading {
            self.is_read_refused = !reply.success;
            self.left_bytes = self.left_bytes.saturating_sub(reply.body.len() as u64);
            if self.left_bytes == 0 {
                let why = "it sends more than its buffers can hold";
                return Err(Failure::new("the service did not end the trace", why));
            }
            self.on_slices(&reply.body)?;
            if !reply.has_more {
                self.reading = None;
                let is_first = !core::mem::replace(&mut self.has_read, true);
                if self.transfer == Transfer::Drain && is_first && !self.has_ended() {
                    // If this program is killed, two readings without the session's end show that
                    // the end is missing. So the file never has only one.
                    self.read()?;
                } else if let Some(output) = self.output.as_mut().filter(|_| self.transfer == Transfer::Drain) {
                    // If this program is killed, the file has everything up to here.
                    output.flush()?;
                }
            }
        } else if request == self.asked_stats {
            self.asked_stats = None;
            self.on_stats(reply);
        } else if request == self.flushing {
            self.flushing = None;
        } else if request == self.asked_state {
            match self.programs.add_part(reply) {
                Ok(()) if reply.has_more => {}
                Ok(()) => {
                    self.asked_state = None;
                    self.awaited.on_list(&self.programs);
                }
                Err(_) => self.do_without_programs(),
            }
        } else if reply.is_of::<method::ObserveEvents>() {
            // The last events for an earlier question may still be on their way.
            let events = ObserveEventsResponse::decode(&reply.body).ok().and_then(|response| response.events);
            let events = events.unwrap_or_default();
            self.awaits_sources &= events.all_data_sources_started != Some(true);
            for change in &events.instance_state_changes {
                self.awaited.on_change(change);
            }
            if let Some((hit, snapshots)) = events.clone_trigger_hit.zip(self.snapshots.as_mut()) {
                snapshots.request(*hit);
            }
        }
        Ok(())
    }

    /// The failure of a call.
    fn lost(&mut self, error: IpcError) -> Failure {
        let is_gone = match &error {
            IpcError::Disconnected => true,
            IpcError::Io(error) => matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset),
            _ => false,
        };
        self.is_service_gone |= is_gone;
        lost(error)
    }

    fn on_slices(&mut self, body: &[u8]) -> Result<(), Failure> {
        let Some(output) = &mut self.output else { return Ok(()) };
        for slice in ReadBuffersResponseReader::new(body).slices() {
            self.packet.extend_from_slice(slice.data().unwrap_or_default());
            if self.packet.len() > MAX_PACKET_BYTES {
                return Err(Failure::new("the service sent too large a packet", "it has more than 256 MiB"));
            }
            if slice.last_slice_for_packet() == Some(true) {
                self.content.packet(&self.packet);
                let written = output.packet(&self.packet);
                self.packet.clear();
                written?;
            }
        }
        Ok(())
    }

    fn on_stats(&mut self, reply: &Reply) {
        if let Some(stats) = GetTraceStatsResponseReader::new(&reply.body).trace_stats() {
            let stats = TraceStats::decode(stats.as_bytes());
            let first = self.first_stats.get_or_insert_with(|| stats.clone());
            self.stats = Stats::of(&stats, first, &self.config, self.transfer);
        }
    }

    /// Waits for the service or one of `others`. Returns true for one of `others`.
    fn wait(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]) -> Result<bool, Failure> {
        let mut interest = PollFlags::IN;
        interest.set(PollFlags::OUT, self.client.connection().wants_write());
        let mut fds = vec![PollFd::new(&self.client, interest)];
        fds.extend(others.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => Ok(fds[1..].iter().any(|fd| !fd.revents().is_empty())),
            Err(Errno::INTR) => Ok(true),
            Err(e) => Err(Failure::new("cannot wait for the service", io::Error::from(e))),
        }
    }
}

/// Waits for the next reply. Other replies than the wanted one do not extend the time.
fn next_reply(client: &mut BlockingClient, deadline: Instant) -> Result<Reply, IpcError> {
    let now = Instant::now();
    if now > deadline + TICK {
        return Err(IpcError::Timeout);
    }
    client.next_reply(Some(deadline.saturating_duration_since(now)))
}

/// Asks the service to report events of these types, and no others.
fn observe(client: &mut BlockingClient, types: &[Type]) -> Result<(), IpcError> {
    let request = ObserveEventsRequest { events_to_observe: types.to_vec(), ..ObserveEventsRequest::default() };
    client.send_message::<method::ObserveEvents>(&request, None).map(drop)
}
