//! The start of a recording: a new session, one that waits for its start, or one that another
//! program has left.

use core::time::Duration;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Instant;

use esatto_ipc::{Address, BlockingClient, Error as IpcError};
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned as _;
use esatto_schema::observable_events::Type;
use esatto_schema::trace_config::trigger_config::TriggerMode;
use esatto_schema::{EnableTracingRequest, TraceConfig};

use super::service_file::ServiceFile;
use super::stats::Stats;
use super::timeouts::{Timeouts, patience};
use super::{ANSWER_TIMEOUT, RecordingSession, TICK, Transfer, next_reply, observe};
use crate::awaited_programs::AwaitedPrograms;
use crate::failure::{Attempt as _, Failure};
use crate::missing_trigger::MissingTrigger;
use crate::producer_filter::wants_other_machines;
use crate::service_connection::{connect, lost};
use crate::service_state::Programs;
use crate::snapshots::Snapshots;
use crate::stop_signal::StopSignal;
use crate::trace_content::Content;
use crate::trace_output::Output;
use crate::{machine_sources, trace_config};

/// Longest time until the data sources of the machine record. ftrace needs 0.1 s on an idle
/// machine.
const SOURCES_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that a service may deliver for each byte of its buffers after the end of the session: it
/// adds fields to each packet.
const MAX_BYTES_PER_BUFFER_BYTE: u64 = 64;
/// Bytes that it may deliver beyond that.
const MIN_TRACE_BYTES: u64 = 256 << 20;
/// Errors of a file that the service may not create.
const DENIALS: [&str; 2] = ["Permission denied", "Read-only file system"];

impl RecordingSession {
    /// Starts a session. When this returns, programs that connect are recorded. If the config has
    /// `deferred_start`, the session is only prepared, and [`begin`](Self::begin) starts it.
    ///
    /// `output` is `None` if the service writes the file.
    pub(crate) fn start(
        address: &Address,
        mut config: TraceConfig,
        transfer: Transfer,
        output: Option<Output>,
    ) -> Result<Self, Failure> {
        let client = connect(address)?;
        if MissingTrigger::mode(&config) == Some(TriggerMode::CLONE_SNAPSHOT) && has_delays(&config) {
            name_session(&mut config);
        }
        trace_config::check_size(&config)?;
        let service_file = config.output_path.as_ref().filter(|_| output.is_none());
        let service_file = service_file.map(|path| ServiceFile::new(OsStr::from_bytes(path.as_bytes()).into()));
        let mut this = Self::new(client, address, &config, transfer, output)?;
        this.service_file = service_file;
        this.is_prepared = config.deferred_start == Some(true);
        this.observe_session()?;
        let request = EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() };
        let file = match (&mut this.output, this.transfer) {
            (Some(output), Transfer::ByService) => {
                let file = output.lend()?.try_clone_to_owned();
                Some(file.attempt(|| "cannot hand the file to the service".to_owned())?)
            }
            _ => None,
        };
        this.enabled = Some(this.client.send_message::<method::EnableTracing>(&request, file).map_err(lost)?);
        this.set_due(Duration::ZERO);
        match this.complete_start() {
            Ok(()) => Ok(this),
            Err(failure) => Err(this.give_up(failure)),
        }
    }

    /// Waits until the session runs, and asks the first questions.
    fn complete_start(&mut self) -> Result<(), Failure> {
        // Without delay, so that losses of this session are not among the first counts.
        self.ask_stats()?;
        self.await_start()?;
        if let Some(output) = self.output.as_mut().filter(|_| !self.is_prepared) {
            output.started()?;
        }
        self.ask_for_programs()
    }

    /// Takes over a session that this connection has attached, and that began some time ago.
    ///
    /// `output` is `None` if the service writes the file.
    pub(crate) fn attached(
        client: BlockingClient,
        address: &Address,
        config: &TraceConfig,
        age: Duration,
        output: Option<Output>,
    ) -> Result<Self, Failure> {
        let is_by_service = config.write_into_file == Some(true);
        let transfer = if is_by_service { Transfer::ByService } else { Transfer::AtEnd };
        let mut this = Self::new(client, address, config, transfer, output)?;
        let path = config.output_path.as_ref().filter(|path| !path.is_empty());
        this.service_file = path.map(|path| ServiceFile::existing(OsStr::from_bytes(path.as_bytes()).into()));
        // It has been awaited by the program that has left the session.
        this.awaits_sources = false;
        this.observe_session()?;
        let request = EnableTracingRequest { attach_notification_only: Some(true), ..EnableTracingRequest::default() };
        this.enabled = Some(this.client.send_message::<method::EnableTracing>(&request, None).map_err(lost)?);
        this.set_due(age);
        this.ask_stats()?;
        this.ask_for_programs()?;
        Ok(this)
    }

    fn new(
        client: BlockingClient,
        address: &Address,
        config: &TraceConfig,
        transfer: Transfer,
        output: Option<Output>,
    ) -> Result<Self, Failure> {
        let patience = patience(config);
        let mode = MissingTrigger::mode(config);
        let buffer_kb = config.buffers.iter().map(|buffer| u64::from(buffer.size_kb.unwrap_or(0))).sum::<u64>();
        let max_trace_bytes =
            buffer_kb.saturating_mul(1024 * MAX_BYTES_PER_BUFFER_BYTE).saturating_add(MIN_TRACE_BYTES);
        let snapshots = match (&output, mode) {
            (Some(output), Some(TriggerMode::CLONE_SNAPSHOT)) => {
                let session = config.unique_session_name.clone().filter(|name| has_delays(config) && !name.is_empty());
                let wants_problems = machine_sources::are_in(config);
                Some(Snapshots::new(address, output.name(), max_trace_bytes, session, wants_problems)?)
            }
            _ => None,
        };
        let starts_at_once = mode != Some(TriggerMode::START_TRACING);
        let mut content = Content::default();
        content.relays.are_wanted = wants_other_machines(config);
        content.wants_track_events = config.data_sources.len() > 1;
        content.wants_problems = machine_sources::are_in(config);
        let now = Instant::now();
        Ok(Self {
            awaits_sources: machine_sources::are_in(config) && starts_at_once && client.has::<method::ObserveEvents>(),
            client,
            transfer: if snapshots.is_some() { Transfer::Snapshots } else { transfer },
            config: config.encode(),
            output,
            service_file: None,
            packet: Vec::new(),
            enabled: None,
            is_prepared: false,
            reading: None,
            has_read: false,
            asked_stats: None,
            flushing: None,
            asked_state: None,
            tells_programs: true,
            last_asked_state: now,
            is_read_refused: false,
            max_trace_bytes,
            max_file_bytes: config.max_file_size_bytes.unwrap_or(0),
            left_bytes: u64::MAX,
            // Triggers have times of their own.
            limit: config.duration_ms.filter(|&ms| ms > 0 && mode.is_none()).map(|ms| Duration::from_millis(ms.into())),
            due: None,
            awaited: AwaitedPrograms::new(patience, config),
            timeouts: Timeouts::of(patience),
            programs: Programs::default(),
            content,
            snapshots,
            waits_for_trigger: mode.is_some(),
            last_drain: now,
            last_stats: now,
            stats: Stats::default(),
            first_stats: None,
            ended: None,
            is_service_gone: false,
        })
    }

    /// Asks the service to report triggers of snapshots, and the start of data sources.
    fn observe_session(&mut self) -> Result<(), Failure> {
        let observed: Vec<Type> = [
            self.snapshots.is_some().then_some(Type::TYPE_CLONE_TRIGGER_HIT),
            self.awaits_sources.then_some(Type::TYPE_ALL_DATA_SOURCES_STARTED),
        ]
        .into_iter()
        .flatten()
        .collect();
        if observed.is_empty() { Ok(()) } else { observe(&mut self.client, &observed).map_err(lost) }
    }

    /// Sets when the service begins to end a session by itself that began some time ago.
    fn set_due(&mut self, age: Duration) {
        let now = Instant::now();
        self.due = self.limit.filter(|_| !self.is_prepared).map(|limit| now + limit.saturating_sub(age));
    }

    /// Starts a prepared session.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        self.send::<method::StartTracing>().map_err(|e| self.lost(e))?;
        self.is_prepared = false;
        self.set_due(Duration::ZERO);
        self.output.as_mut().map_or(Ok(()), Output::started)
    }

    /// Gives up a prepared session. No file is written.
    pub(crate) fn abandon(mut self) {
        if let Some(output) = self.output.take() {
            output.give_up();
        }
    }

    /// The failure of a prepared session that the service has ended.
    pub(crate) fn ended_early(mut self) -> Failure {
        let why = self.ended.take().flatten().unwrap_or_else(|| "it has ended or was restarted".to_owned());
        self.abandon();
        Failure::new("the service ended the session before its start", why)
    }

    /// Waits until the service has handled the config.
    fn await_start(&mut self) -> Result<(), Failure> {
        let barrier = match self.send::<method::QueryCapabilities>() {
            Ok(barrier) => barrier,
            // A service older than v4. The next call waits for its turn anyway.
            Err(IpcError::NoSuchMethod(_)) => return Ok(()),
            Err(e) => return Err(self.lost(e)),
        };
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let reply = next_reply(&mut self.client, deadline).map_err(|e| self.lost(e))?;
            if reply.request_id == barrier {
                break;
            }
            self.on_reply(&reply)?;
        }
        match self.ended.take() {
            Some(Some(error)) => Err(refusal(error)),
            Some(None) => {
                // The session ended at once, for instance because its time is over.
                self.ended = Some(None);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Waits until all data sources of the machine record, or the user stops the recording. Returns
    /// false if they do not in time.
    pub(crate) fn await_sources(&mut self, stop: &mut StopSignal) -> Result<bool, Failure> {
        let deadline = Instant::now() + SOURCES_TIMEOUT;
        while self.awaits_sources && !self.has_ended() && !stop.received() {
            let now = Instant::now();
            if now >= deadline {
                return Ok(false);
            }
            self.ask()?;
            match next_reply(&mut self.client, deadline.min(now + TICK)) {
                Ok(reply) => self.on_reply(&reply)?,
                Err(IpcError::Timeout) => {}
                Err(e) => return Err(self.lost(e)),
            }
        }
        Ok(true)
    }
}

/// The failure of a recording whose config the service has refused.
pub(crate) fn refusal(error: String) -> Failure {
    let hint = if error.starts_with("the buffers have ") {
        Some("choose smaller buffers: `--ring SIZE`, or `size_kb` in a config")
    } else if error.starts_with("output_path ") && DENIALS.iter().any(|denial| error.contains(denial)) {
        Some(
            "the service creates this file, with its rights: as a unit of systemd it may write below \
             /var/lib/perfetto only. This command writes the file itself if the config has no output_path and \
             `-o FILE` or `--long FILE` names it",
        )
    } else {
        None
    };
    let failure = Failure::new("the service refused the config", error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Returns whether the config has a trigger with a delay.
fn has_delays(config: &TraceConfig) -> bool {
    let triggers = config.trigger_config.iter().flat_map(|config| &config.triggers);
    triggers.into_iter().any(|trigger| trigger.stop_delay_ms.is_some_and(|ms| ms > 0))
}

/// Names the session for clones after the id of its trace, unless it has a name.
fn name_session(config: &mut TraceConfig) {
    let (msb, lsb) = (config.trace_uuid_msb.unwrap_or(0), config.trace_uuid_lsb.unwrap_or(0));
    if config.unique_session_name.as_ref().is_none_or(|name| name.is_empty()) {
        config.unique_session_name = Some(format!("esatto-record-{msb:016x}{lsb:016x}").into());
    }
}
