//! A service in a separate process, and the clients that keep it busy.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use esatto_ipc::{Address, BlockingClient};
use esatto_protozero::Owned as _;
use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{
    DataSourceConfig, EnableTracingRequest, FreeBuffersRequest, GetTraceStatsRequest, GetTraceStatsResponse,
    TraceConfig, TraceStats,
};

use super::process;
use crate::traced::{Running, command};

/// Until anything that never takes long is called hanging.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// One of the services that are compared.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
}

/// A running service on private sockets.
#[derive(Debug)]
pub(crate) struct Service {
    process: Running,
    folder: tempfile::TempDir,
}

impl Service {
    pub(crate) fn start(kind: &Kind) -> Result<Self, String> {
        let folder =
            tempfile::Builder::new().prefix("bench").tempdir().map_err(|error| format!("temporary folder: {error}"))?;
        let mut process =
            Running::start(&mut command(&kind.program, folder.path()), folder.path().join("service.log"))?;
        for socket in ["p.sock", "c.sock"] {
            let socket = folder.path().join(socket);
            process
                .wait(&format!("{} takes connections", socket.display()), || UnixStream::connect(&socket).is_ok())?;
        }
        Ok(Self { process, folder })
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// CPU time of the service so far.
    pub(crate) fn cpu_time(&self) -> Result<Duration, String> {
        process::cpu_time(self.process.id())
    }

    /// The same with that of threads that ended, less exactly.
    pub(crate) fn cpu_time_of_all(&self) -> Result<Duration, String> {
        process::cpu_time_of_all(self.process.id())
    }

    /// Its memory now.
    pub(crate) fn memory(&self) -> Result<process::Memory, String> {
        process::memory(self.process.id())
    }

    /// Where files of a measurement may lie.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command with the sockets of this service in its environment.
    pub(crate) fn command(&self, program: &Path) -> Command {
        command(program, self.folder())
    }

    /// A connection to the consumer port.
    pub(crate) fn consumer(&self) -> Result<BlockingClient, String> {
        let address = Address::parse(self.folder().join("c.sock")).map_err(|error| error.to_string())?;
        BlockingClient::connect(&address, "ConsumerPort", DEADLINE).map_err(|error| error.to_string())
    }

    /// Starts a session.
    pub(crate) fn record(&self, config: TraceConfig) -> Result<Session, String> {
        let mut consumer = self.consumer()?;
        let request = EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() };
        // Its reply comes with the end of the session.
        consumer.send("EnableTracing", &request.encode(), None).map_err(|error| error.to_string())?;
        Ok(Session { consumer })
    }
}

/// A config that records a data source into one ring buffer.
pub(crate) fn config(source: &str, buffer_kb: u32) -> TraceConfig {
    TraceConfig {
        buffers: vec![BufferConfig { size_kb: Some(buffer_kb), ..BufferConfig::default() }],
        data_sources: vec![DataSource {
            config: Some(DataSourceConfig { name: Some(source.into()), ..DataSourceConfig::default() }.into()),
            ..DataSource::default()
        }],
        ..TraceConfig::default()
    }
}

/// A session that is being recorded.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) consumer: BlockingClient,
}

impl Session {
    pub(crate) fn stats(&mut self) -> Result<TraceStats, String> {
        let request = GetTraceStatsRequest::default().encode();
        let reply = self.consumer.call("GetTraceStats", &request, Some(DEADLINE)).map_err(|error| error.to_string())?;
        let response: GetTraceStatsResponse = reply.decode().map_err(|error| error.to_string())?;
        response.trace_stats.map(|stats| *stats).ok_or_else(|| "a reply without stats".to_owned())
    }

    /// Ends the session, read or not.
    pub(crate) fn free(mut self) -> Result<(), String> {
        let request = FreeBuffersRequest::default().encode();
        self.consumer.call("FreeBuffers", &request, Some(DEADLINE)).map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// The program `bench-producer`, waiting for its turn. Ends with its owner.
#[derive(Debug)]
pub(crate) struct Producer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Producer {
    pub(crate) fn start(service: &Service, program: &Path, args: &[&str]) -> Result<Self, String> {
        let mut child = service
            .command(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("asked for"));
        Ok(Self { child, stdin, stdout })
    }

    /// Its next line, as JSON.
    pub(crate) fn line<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).map_err(|error| format!("bench-producer: {error}"))?;
        serde_json::from_str(&line).map_err(|error| format!("bench-producer said '{}': {error}", line.trim_end()))
    }

    /// Waits until all of its data sources are started.
    pub(crate) fn await_start(&mut self) -> Result<(), String> {
        self.line::<serde_json::Value>().map(drop)
    }

    /// Lets it work.
    pub(crate) fn go(&mut self) -> Result<(), String> {
        let stdin = self.stdin.as_mut().ok_or("bench-producer has no stdin")?;
        stdin.write_all(b"go\n").map_err(|error| format!("bench-producer: {error}"))
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
