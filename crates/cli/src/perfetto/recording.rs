//! A recording: from the config to the complete trace (`docs/spec/cli.md` §8 and §9).

use core::time::Duration;
use std::fs::File;
use std::io;
use std::time::Instant;

use esatto_ipc::RequestId;
use esatto_ipc::blocking_client::Reply;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned as _;
use esatto_schema::observable_events::Type;
use esatto_schema::trace_config::trigger_config::TriggerMode;
use esatto_schema::{
    DetachRequest, EnableTracingRequest, EnableTracingResponseReader, FlushRequest, ObserveEventsRequest,
    ObserveEventsResponse, TraceConfig,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::background::Parent;
use super::config_input::{self, ConfigError};
use super::consumer::{Consumer, Event, disconnected};
use super::log_line::log_line;
use super::options::{Background, Options};
use super::outcome::{Outcome, failed};
use super::output_file::OutputFile;
use super::readiness::Readiness;
use super::sockets::Sockets;
use super::{option_rules, triggers};
use crate::missing_trigger::MissingTrigger;
use crate::snapshots::Snapshots;
use crate::stop_signal::StopSignal;
use crate::trace_config;

/// Time that a session may take beyond what its config says.
const MARGIN: Duration = Duration::from_secs(60);
/// Longest time for the answer to a flush, beyond that of the config.
const FLUSH_MARGIN: Duration = Duration::from_secs(10);
/// Longest time for an answer that needs only the service.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two looks at snapshots that other threads save.
const SNAPSHOT_PERIOD: Duration = Duration::from_millis(250);
/// Bytes that a snapshot may have for each byte of the buffers, and beyond that.
const SNAPSHOT_BYTES: (u64, u64) = (64, 256 << 20);
/// Flush flags: reason "trace stop", initiator "command line tool" (`docs/spec/wire-protocol.md`
/// §9).
const FLUSH_FLAGS: u64 = 0x22;

/// Records as the options say.
pub(crate) fn record(sockets: &Sockets, options: &Options, parent: Option<Parent>) -> Outcome {
    let mut readiness = Readiness::default();
    let outcome = run(sockets, options, parent, &mut readiness).unwrap_or_else(|outcome| outcome);
    // If the session has ended before all data sources had started.
    readiness.tell(outcome.is_success());
    outcome
}

fn run(
    sockets: &Sockets,
    options: &Options,
    parent: Option<Parent>,
    readiness: &mut Readiness,
) -> Result<Outcome, Outcome> {
    let mut config = config_input::read(options).map_err(|error| {
        if let ConfigError::Text(blocks) = &error {
            // As they are: editors find the places.
            crate::console::say!("{blocks}");
        }
        failed(error)
    })?;
    if let Some(number) = options.notify_fd {
        let fd = esatto_ipc::sys::inherited(number);
        readiness.add(fd.map_err(|error| failed(format!("Cannot use --notify-fd {number}: {error}")))?.into());
    }
    if !config.activate_triggers.is_empty() {
        leave_terminal(parent, options, readiness)?;
        return Ok(triggers::activate(&sockets.producer, &config.activate_triggers));
    }
    option_rules::check_config(options, &config).map_err(failed)?;
    config_input::complete(&mut config, options).map_err(failed)?;
    if let Err(failure) = trace_config::check_size(&config) {
        log_line!("Service error: {failure}");
        return Ok(Outcome::Refused);
    }
    let output = options.out.as_ref().map(|name| OutputFile::open(name, options.no_clobber));
    let mut output = output.transpose().map_err(failed)?;
    leave_terminal(parent, options, readiness)?;
    let result = record_config(sockets, options, config, &mut output, readiness);
    if !matches!(result, Ok(Outcome::Done)) {
        if let Some(output) = output {
            output.remove_if_empty();
        }
    }
    result
}

/// Leaves the terminal, if this is the process in the background.
pub(crate) fn leave_terminal(
    parent: Option<Parent>,
    options: &Options,
    readiness: &mut Readiness,
) -> Result<(), Outcome> {
    let Some(parent) = parent else { return Ok(()) };
    let pipe: File = parent.leave().map_err(|error| failed(format!("Could not leave the terminal: {error}")))?;
    if options.background == Some(Background::WhenStarted) {
        readiness.add(pipe);
    }
    Ok(())
}

fn record_config(
    sockets: &Sockets,
    options: &Options,
    config: TraceConfig,
    output: &mut Option<OutputFile>,
    readiness: &mut Readiness,
) -> Result<Outcome, Outcome> {
    let stop = StopSignal::install().map_err(|error| failed(format!("Could not handle signals: {error}")))?;
    if !start_delay(&config, &stop)? {
        log_line!("SIGINT/SIGTERM received before the start: nothing is recorded");
        return Ok(Outcome::Failed);
    }
    let consumer = Consumer::connect(&sockets.consumer, Some(stop))?;
    let snapshots = match (MissingTrigger::mode(&config), output.as_ref()) {
        (Some(TriggerMode::CLONE_SNAPSHOT), Some(output)) => Some(snapshots(sockets, &config, output)?),
        _ => None,
    };
    let mut run = Run {
        consumer,
        snapshots,
        writes_file: config.write_into_file.unwrap_or(false) || option_rules::path_of(&config).is_some(),
        timeouts: Timeouts::of(&config),
        waits_for_trigger: MissingTrigger::mode(&config).is_some(),
        enabled: None,
        end: None,
        readiness,
    };
    let outcome = run.record(options, config, output.as_mut());
    run.finish_snapshots();
    outcome
}

/// Waits as `cmd_trace_start_delay` says. Returns false if a signal comes before that.
fn start_delay(config: &TraceConfig, stop: &StopSignal) -> Result<bool, Outcome> {
    let Some(delay) = &config.cmd_trace_start_delay else { return Ok(true) };
    let (min, max) = (delay.min_delay_ms.unwrap_or(0), delay.max_delay_ms.unwrap_or(0));
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| failed(io::Error::from(error)))?;
    let span = u64::from(max.saturating_sub(min)) + 1;
    let wait_ms = u64::from(min) + u64::from_ne_bytes(random) % span;
    let timeout = Timespec {
        tv_sec: i64::try_from(wait_ms / 1000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(wait_ms % 1000).unwrap_or(0) * 1_000_000,
    };
    match poll(&mut [PollFd::new(stop, PollFlags::IN)], Some(&timeout)) {
        Ok(0) => Ok(true),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(failed(io::Error::from(error))),
    }
}

fn snapshots(sockets: &Sockets, config: &TraceConfig, output: &OutputFile) -> Result<Snapshots, Outcome> {
    let kb: u64 = config.buffers.iter().map(|buffer| u64::from(buffer.size_kb.unwrap_or(0))).sum();
    let (factor, extra) = SNAPSHOT_BYTES;
    let max_bytes = kb.saturating_mul(1024 * factor).saturating_add(extra);
    Snapshots::new(&sockets.consumer, output.path(), max_bytes, None, false).map_err(failed)
}

/// Times that a config implies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// Time until the session ends by itself, if it does.
    expected: Option<Duration>,
    flush: Duration,
    stop: Duration,
}

impl Timeouts {
    pub(crate) fn of(config: &TraceConfig) -> Self {
        let ms = |ms: Option<u32>| Duration::from_millis(ms.unwrap_or(0).into());
        let expected = match (MissingTrigger::mode(config), &config.trigger_config) {
            (Some(_), Some(triggers)) => {
                let longest = triggers.triggers.iter().filter_map(|trigger| trigger.stop_delay_ms).max();
                Some(ms(triggers.trigger_timeout_ms) + ms(longest))
            }
            _ => Some(ms(config.duration_ms)).filter(|duration| !duration.is_zero()),
        };
        Self { expected, flush: ms(config.flush_timeout_ms), stop: ms(config.data_source_stop_timeout_ms) }
    }

    /// Time after which the service is given up.
    fn patience(self) -> Option<Duration> {
        self.expected.map(|expected| expected + MARGIN + self.flush + self.stop)
    }
}

/// A running recording.
pub(crate) struct Run<'a> {
    pub(crate) consumer: Consumer,
    pub(crate) snapshots: Option<Snapshots>,
    /// The service writes the file.
    pub(crate) writes_file: bool,
    pub(crate) timeouts: Timeouts,
    pub(crate) waits_for_trigger: bool,
    pub(crate) enabled: Option<RequestId>,
    /// The end of the session, with its error.
    pub(crate) end: Option<Option<String>>,
    pub(crate) readiness: &'a mut Readiness,
}

impl Run<'_> {
    fn record(
        &mut self,
        options: &Options,
        config: TraceConfig,
        mut output: Option<&mut OutputFile>,
    ) -> Result<Outcome, Outcome> {
        self.observe()?;
        if let Some(output) = &mut output {
            output.empty().map_err(|error| failed(format!("Failed to empty {}: {error}", output.display())))?;
        }
        self.enable(config, output.as_deref())?;
        match self.timeouts.expected {
            Some(expected) => {
                log_line!("Connected to the Perfetto traced service, TTL: {}s", expected.as_secs_f64().ceil());
            }
            None => log_line!("Connected to the Perfetto traced service, starting tracing"),
        }
        if let Some(key) = &options.detach {
            return self.detach(key);
        }
        self.wait_for_end()?;
        self.complete(output)
    }

    fn observe(&mut self) -> Result<(), Outcome> {
        let mut types = Vec::new();
        if self.snapshots.is_some() {
            types.push(Type::TYPE_CLONE_TRIGGER_HIT);
        }
        if self.readiness.is_awaited() {
            types.push(Type::TYPE_ALL_DATA_SOURCES_STARTED);
        }
        if types.is_empty() {
            return Ok(());
        }
        let request = ObserveEventsRequest { events_to_observe: types, ..ObserveEventsRequest::default() };
        self.consumer.send_message::<method::ObserveEvents>(&request).map(drop)
    }

    fn enable(&mut self, config: TraceConfig, output: Option<&OutputFile>) -> Result<(), Outcome> {
        let file = output.filter(|_| self.writes_file).map(OutputFile::descriptor).transpose();
        let file = file.map_err(|error| failed(format!("Cannot hand the file to the service: {error}")))?;
        let request = EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() };
        let sent = self.consumer.client.send_message::<method::EnableTracing>(&request, file);
        self.enabled = Some(sent.map_err(disconnected)?);
        Ok(())
    }

    /// Detaches the session, which goes on.
    fn detach(&mut self, key: &str) -> Result<Outcome, Outcome> {
        let request = DetachRequest { key: Some(key.into()), ..DetachRequest::default() };
        let detaching = self.consumer.send_message::<method::Detach>(&request)?;
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            match self.consumer.next(Some(deadline))? {
                Event::Reply(reply) if reply.request_id == detaching => {
                    if reply.success {
                        return Ok(Outcome::Done);
                    }
                    break;
                }
                Event::Reply(reply) => {
                    self.on_reply(&reply);
                    if let Some(Some(error)) = &self.end {
                        log_line!("Service error: {error}");
                        break;
                    }
                }
                Event::Stop | Event::Timeout => break,
            }
        }
        Err(failed("Session detach failed"))
    }

    fn on_reply(&mut self, reply: &Reply) {
        if Some(reply.request_id) == self.enabled {
            self.end = Some(end_of(reply));
        } else if reply.is_of::<method::ObserveEvents>() {
            let events = ObserveEventsResponse::decode(&reply.body).ok().and_then(|response| response.events);
            let events = events.unwrap_or_default();
            if events.all_data_sources_started.unwrap_or(false) {
                self.readiness.tell(true);
            }
            if let Some((hit, snapshots)) = events.clone_trigger_hit.zip(self.snapshots.as_mut()) {
                snapshots.request(*hit);
            }
        }
    }

    /// Waits until the session has ended by itself, by a signal, or because the service refuses it.
    pub(crate) fn wait_for_end(&mut self) -> Result<(), Outcome> {
        let deadline = self.timeouts.patience().map(|patience| Instant::now() + patience);
        while self.end.is_none() {
            match self.next(deadline)? {
                Some(Event::Reply(reply)) => self.on_reply(&reply),
                Some(Event::Stop) => {
                    log_line!("SIGINT/SIGTERM received: disabling tracing.");
                    self.stop()?;
                }
                Some(Event::Timeout) => {
                    return Err(failed("Timed out while waiting for trace from the service, aborting"));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Waits for the next event. Returns `None` now and then while snapshots may come.
    fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Event>, Outcome> {
        let Some(snapshots) = &mut self.snapshots else { return self.consumer.next(deadline).map(Some) };
        report(snapshots);
        let turn = Instant::now() + SNAPSHOT_PERIOD;
        let ends_first = deadline.is_some_and(|deadline| deadline <= turn);
        match self.consumer.next(if ends_first { deadline } else { Some(turn) })? {
            Event::Timeout if !ends_first => Ok(None),
            event => Ok(Some(event)),
        }
    }

    /// Ends the session, with the last events of all programs.
    pub(crate) fn stop(&mut self) -> Result<(), Outcome> {
        let request = FlushRequest { flags: Some(FLUSH_FLAGS), ..FlushRequest::default() };
        let flushing = self.consumer.send_message::<method::Flush>(&request)?;
        let deadline = Instant::now() + self.timeouts.flush + FLUSH_MARGIN;
        while self.end.is_none() {
            match self.consumer.next(Some(deadline))? {
                Event::Reply(reply) if reply.request_id == flushing => {
                    if !reply.success {
                        log_line!("Some programs did not deliver their last events in time");
                    }
                    break;
                }
                Event::Reply(reply) => self.on_reply(&reply),
                Event::Timeout => {
                    log_line!("The service did not answer in time whether all programs delivered their last events");
                    break;
                }
                Event::Stop => {}
            }
        }
        self.consumer.send::<method::DisableTracing>()?;
        // The end of the session is awaited as before, but not for as long.
        self.timeouts.expected = Some(Duration::ZERO);
        self.wait_for_end()
    }

    /// Brings the trace into the file after the end of the session.
    pub(crate) fn complete(&mut self, output: Option<&mut OutputFile>) -> Result<Outcome, Outcome> {
        if let Some(Some(error)) = &self.end {
            log_line!("Service error: {error}");
            return Ok(Outcome::Refused);
        }
        if self.writes_file {
            log_line!("Trace written into the output file");
            return Ok(Outcome::Done);
        }
        let Some(output) = output else { return Ok(Outcome::Done) };
        let outcome = self.consumer.read_buffers(output);
        if self.waits_for_trigger && self.snapshots.is_none() && output.written() == 0 {
            log_line!("No trigger of the config came, so the service kept the trace back");
        }
        Ok(outcome)
    }

    fn finish_snapshots(&mut self) {
        let Some(mut snapshots) = self.snapshots.take() else { return };
        for result in snapshots.finish(false) {
            report_one(result);
        }
        if snapshots.missed > 0 {
            log_line!("{} triggers got no snapshot, because too many came", snapshots.missed);
        }
    }
}

fn report(snapshots: &mut Snapshots) {
    snapshots.results().into_iter().for_each(report_one);
}

fn report_one(result: Result<crate::snapshots::Snapshot, crate::failure::Failure>) {
    match result {
        Ok(snapshot) => log_line!(
            "Wrote {} bytes into {} (trigger {:?})",
            snapshot.bytes,
            snapshot.path.display(),
            snapshot.trigger
        ),
        Err(failure) => log_line!("{failure}"),
    }
}

/// Returns the error of an ended session.
pub(crate) fn end_of(reply: &Reply) -> Option<String> {
    let error = EnableTracingResponseReader::new(&reply.body).error().filter(|error| !error.is_empty());
    let error = error.map(|error| String::from_utf8_lossy(error).into_owned());
    if reply.success { error } else { Some(error.unwrap_or_else(|| "it gave no reason".to_owned())) }
}
