//! Probes in a process of their own, with a service, and sessions.

use std::time::{Duration, Instant};

use esatto_ipc::{BlockingClient, RequestId};
use esatto_protozero::Owned as _;
use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{
    DataSourceConfig, DisableTracingRequest, EnableTracingRequest, FlushRequest, FreeBuffersRequest, FtraceConfig,
    ProcessStatsConfig, QueryServiceStateRequest, QueryServiceStateResponse, ReadBuffersRequest,
    ReadBuffersResponseReader, SysStatsConfig, TraceConfig,
};

use super::Bench;
use super::recorded::Recorded;
use crate::service::participants::{DEADLINE, Kind, Service};
use crate::service::process;
use crate::traced::Running;

/// The data source that the probes register last.
const LAST_SOURCE: &str = "linux.system_info";
/// Buffer of the service for a session. Nothing is overwritten.
const BUFFER_KB: u32 = 256 << 10;
/// After the start of a session, until what it costs is over.
const SETTLE: Duration = Duration::from_millis(300);

/// Running probes, connected to a service of their own.
#[derive(Debug)]
pub(super) struct Probes {
    process: Running,
    service: Service,
}

impl Probes {
    /// Starts probes, and measures something of them. An error also tells what they and the service
    /// have logged.
    pub(super) fn measure<T>(
        bench: &Bench,
        kind: &Kind,
        measure: impl FnOnce(&Self) -> Result<T, String>,
    ) -> Result<T, String> {
        let probes = Self::start(bench, kind)?;
        measure(&probes).map_err(|error| {
            let log = |name| std::fs::read_to_string(probes.service.folder().join(name)).unwrap_or_default();
            format!("{}: {error}\n{}{}", kind.name, log("service.log"), log("probes.log"))
        })
    }

    fn start(bench: &Bench, kind: &Kind) -> Result<Self, String> {
        let service = Service::start(&bench.service)?;
        let mut command = service.command(&kind.program);
        let mut process = Running::start(&mut command, service.folder().join("probes.log"))?;
        let mut consumer = service.consumer()?;
        let mut failure = None;
        process.wait("the probes have registered their data sources", || match is_registered(&mut consumer) {
            Ok(is_registered) => is_registered,
            Err(error) => {
                failure = Some(error);
                true
            }
        })?;
        match failure {
            Some(error) => Err(error),
            None => Ok(Self { process, service }),
        }
    }

    /// Process of the probes.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// CPU time of the probes so far.
    pub(super) fn cpu_time(&self) -> Result<Duration, String> {
        process::cpu_time(self.id())
    }

    /// Connects a consumer, without a session.
    pub(super) fn consumer(&self) -> Result<BlockingClient, String> {
        self.service.consumer()
    }

    /// Starts a session, and waits until its start is over.
    pub(super) fn record(&self, sources: Vec<DataSourceConfig>) -> Result<Session, String> {
        let session = Session::enable(self.consumer()?, sources)?;
        std::thread::sleep(SETTLE);
        Ok(session)
    }
}

fn is_registered(consumer: &mut BlockingClient) -> Result<bool, String> {
    let request = QueryServiceStateRequest::default().encode();
    let first = consumer.send("QueryServiceState", &request, None).map_err(text)?;
    let mut found = false;
    loop {
        let reply = consumer.wait_reply(first, Some(DEADLINE)).map_err(text)?;
        let response: QueryServiceStateResponse = reply.decode().map_err(text)?;
        let sources = response.service_state.map(|state| state.data_sources).unwrap_or_default();
        let mut names = sources.into_iter().filter_map(|source| source.ds_descriptor?.name);
        found |= names.any(|name| name.as_ref() == LAST_SOURCE.as_bytes());
        if !reply.has_more {
            return Ok(found);
        }
    }
}

/// A session that is being recorded.
#[derive(Debug)]
pub(super) struct Session {
    consumer: BlockingClient,
    enabled: RequestId,
}

impl Session {
    /// Enables a session with these data sources.
    pub(super) fn enable(mut consumer: BlockingClient, sources: Vec<DataSourceConfig>) -> Result<Self, String> {
        let source = |config: DataSourceConfig| DataSource { config: Some(config.into()), ..DataSource::default() };
        let config = TraceConfig {
            buffers: vec![BufferConfig { size_kb: Some(BUFFER_KB), ..BufferConfig::default() }],
            data_sources: sources.into_iter().map(source).collect(),
            ..TraceConfig::default()
        };
        let request = EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() };
        // Its reply comes with the end of the session.
        let enabled = consumer.send("EnableTracing", &request.encode(), None).map_err(text)?;
        Ok(Self { consumer, enabled })
    }

    /// Waits until all data sources have sent what they have.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        let timeout = u32::try_from(DEADLINE.as_millis()).unwrap_or(u32::MAX);
        self.call("Flush", &FlushRequest { timeout_ms: Some(timeout), ..FlushRequest::default() }.encode())
    }

    /// Flushes, ends and reads the session. Also returns the time that it took.
    pub(super) fn stop(mut self) -> Result<(Recorded, Duration), String> {
        let begin = Instant::now();
        self.flush()?;
        self.call("DisableTracing", &DisableTracingRequest::default().encode())?;
        self.consumer.wait_reply(self.enabled, Some(DEADLINE)).map_err(text)?;
        let mut packets = Vec::new();
        self.read(&mut packets)?;
        let elapsed = begin.elapsed();
        self.call("FreeBuffers", &FreeBuffersRequest::default().encode())?;
        let mut recorded = Recorded::default();
        packets.iter().for_each(|packet| recorded.add(packet));
        Ok((recorded, elapsed))
    }

    fn read(&mut self, packets: &mut Vec<Vec<u8>>) -> Result<(), String> {
        let request = ReadBuffersRequest::default().encode();
        let reading = self.consumer.send("ReadBuffers", &request, None).map_err(text)?;
        let mut packet = Vec::new();
        loop {
            let reply = self.consumer.wait_reply(reading, Some(DEADLINE)).map_err(text)?;
            for slice in ReadBuffersResponseReader::new(&reply.body).slices() {
                packet.extend_from_slice(slice.data().unwrap_or_default());
                if slice.last_slice_for_packet() == Some(true) {
                    packets.push(std::mem::take(&mut packet));
                }
            }
            if !reply.has_more {
                return Ok(());
            }
        }
    }

    fn call(&mut self, method: &'static str, request: &[u8]) -> Result<(), String> {
        let reply = self.consumer.call(method, request, Some(DEADLINE)).map_err(text)?;
        if reply.success {
            return Ok(());
        }
        // The session may have ended early.
        let ended = self.consumer.wait_reply(self.enabled, Some(Duration::from_millis(1)));
        Err(format!("{method} was rejected; the reply to EnableTracing: {ended:?}"))
    }
}

/// A config of `linux.ftrace` with one event.
pub(super) fn ftrace(instance: &str, event: &str, buffer_kb: u32) -> FtraceConfig {
    FtraceConfig {
        ftrace_events: vec![event.into()],
        buffer_size_kb: Some(buffer_kb),
        instance_name: Some(instance.into()),
        ..FtraceConfig::default()
    }
}

/// A data source with such a config.
pub(super) fn ftrace_source(config: FtraceConfig) -> DataSourceConfig {
    DataSourceConfig {
        name: Some("linux.ftrace".into()),
        ftrace_config: Some(config.into()),
        ..DataSourceConfig::default()
    }
}

/// A data source of processes.
pub(super) fn process_source(config: ProcessStatsConfig) -> DataSourceConfig {
    DataSourceConfig {
        name: Some("linux.process_stats".into()),
        process_stats_config: Some(config),
        ..DataSourceConfig::default()
    }
}

/// A data source of counters of the system.
pub(super) fn system_source(config: SysStatsConfig) -> DataSourceConfig {
    DataSourceConfig {
        name: Some("linux.sys_stats".into()),
        sys_stats_config: Some(config.into()),
        ..DataSourceConfig::default()
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
