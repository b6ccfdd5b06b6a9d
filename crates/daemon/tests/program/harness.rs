//! `traced` as a child process, with sockets in a temporary folder.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use esatto_ipc::{Address, BlockingClient, RequestId};
use esatto_protozero::Owned as _;
use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{
    DataSourceConfig, DataSourceDescriptor, EnableTracingRequest, InitializeConnectionRequest,
    RegisterDataSourceRequest, TraceConfig,
};
use rustix::process::{Pid, Signal};

/// Longer than any step of a test takes, unless it hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A temporary folder, removed when dropped.
pub(crate) struct Harness(PathBuf);

impl Harness {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("esatto-t{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new("/tmp").join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn producer(&self) -> Address {
        Address::Path(self.path("p"))
    }

    pub(crate) fn consumer(&self) -> Address {
        Address::Path(self.path("c"))
    }

    /// Returns a command that runs in the folder, with the addresses of its sockets in the
    /// environment.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.0).stdin(Stdio::null());
        command.env("PERFETTO_PRODUCER_SOCK_NAME", self.path("p")).env("PERFETTO_CONSUMER_SOCK_NAME", self.path("c"));
        for variable in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "JOURNAL_STREAM"] {
            command.env_remove(variable);
        }
        command
    }

    pub(crate) fn traced(&self) -> Command {
        self.command(env!("CARGO_BIN_EXE_traced"))
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running program. It is killed when dropped.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    pub(crate) fn start(harness: &Harness, command: &mut Command) -> Self {
        let log = harness.path("log");
        let file = std::fs::File::create(&log).unwrap();
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Self { child, log }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap()).into_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        wait_until("the end of the program", || self.child.try_wait().unwrap())
    }

    /// Ends the program as an operator does.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::TERM);
        let status = self.wait();
        assert!(status.success(), "{status}\n{}", self.log());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("---- traced\n{}----", self.log());
        }
    }
}

/// Runs a command that ends by itself. Returns status, stdout and stderr.
pub(crate) fn output(command: &mut Command) -> (ExitStatus, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status, text(output.stdout), text(output.stderr))
}

/// Calls `check` until it returns a value.
pub(crate) fn wait_until<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = check() {
            return answer;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a port is served at this address.
pub(crate) fn client(address: &Address, port: &str) -> BlockingClient {
    wait_until(&format!("{port} at {address}"), || BlockingClient::connect(address, port, DEADLINE).ok())
}

/// Registers a data source of a producer that answers nothing by itself.
pub(crate) fn offer(producer: &mut BlockingClient, name: &str, descriptor: DataSourceDescriptor) {
    let hello = InitializeConnectionRequest { producer_name: Some(name.into()), ..Default::default() };
    assert!(producer.call("InitializeConnection", &hello.encode(), Some(DEADLINE)).unwrap().success);
    let request = RegisterDataSourceRequest { data_source_descriptor: Some(descriptor.into()), ..Default::default() };
    assert!(producer.call("RegisterDataSource", &request.encode(), Some(DEADLINE)).unwrap().success);
}

/// Name of the data source that [`offer_silent`] registers.
const SILENT: &str = "test.silent";

/// Connects a producer whose data source acknowledges neither a flush nor its stop.
pub(crate) fn offer_silent(harness: &Harness) -> BlockingClient {
    let mut producer = client(&harness.producer(), "ProducerPort");
    let descriptor = DataSourceDescriptor {
        name: Some(SILENT.into()),
        will_notify_on_stop: Some(true),
        ..DataSourceDescriptor::default()
    };
    offer(&mut producer, "hangs", descriptor);
    producer
}

/// Returns a config that records this data source into one small buffer.
pub(crate) fn record_silent() -> TraceConfig {
    let source = DataSourceConfig { name: Some(SILENT.into()), ..DataSourceConfig::default() };
    TraceConfig {
        buffers: vec![buffer(64)],
        data_sources: vec![DataSource { config: Some(source.into()), ..DataSource::default() }],
        data_source_stop_timeout_ms: Some(100),
        ..TraceConfig::default()
    }
}

/// Returns how the log names the data source.
pub(crate) fn silent_in_words() -> String {
    let uid = rustix::process::getuid().as_raw();
    format!("by producer \"hangs\" (uid {uid}, pid {}): \"{SILENT}\"", std::process::id())
}

pub(crate) fn buffer(size_kb: u32) -> BufferConfig {
    BufferConfig { size_kb: Some(size_kb), ..BufferConfig::default() }
}

/// Begins a session. The reply tells its end.
pub(crate) fn enable(consumer: &mut BlockingClient, config: TraceConfig) -> RequestId {
    enable_with(consumer, config, None)
}

/// Begins a session that may stream into this file.
pub(crate) fn enable_with(consumer: &mut BlockingClient, config: TraceConfig, file: Option<OwnedFd>) -> RequestId {
    let request = EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() };
    consumer.send("EnableTracing", &request.encode(), file).unwrap()
}

/// Checks that producers and consumers are served.
pub(crate) fn assert_serves(producer: &Address, consumer: &Address) {
    let mut consumer = client(consumer, "ConsumerPort");
    assert!(consumer.call("QueryCapabilities", &[], Some(DEADLINE)).unwrap().success);
    client(producer, "ProducerPort");
}

/// Reads to the end.
pub(crate) fn read_all(from: impl Into<std::fs::File>) -> String {
    let mut text = String::new();
    from.into().read_to_string(&mut text).unwrap();
    text
}
