//! A daemon on its own sockets, and clients that make raw calls.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use esatto_daemon::{Daemon, DaemonHandle};
use esatto_ipc::{Address, BlockingClient, RequestId};
use esatto_ports::consumer_port::method::ReadBuffers;
use esatto_protozero::{HeapBuffer, Owned as _};
use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{
    DataSourceConfig, EnableTracingRequest, GetAsyncCommandResponse, InitializeConnectionRequest, ReadBuffersRequest,
    ReadBuffersResponseReader, RegisterDataSourceRequest, TraceConfig,
};
use esatto_shm::abi::PageSize;
use esatto_shm::{Arbiter, ExhaustedPolicy, MappedRegion, Memory, Options, Outgoing, PrivateRegion, TraceWriter};

/// Longer than any step of a test takes, unless it hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Tells `cargo xtask test` that the test of this thread cannot run here. The run fails unless
/// `tests/allowed-skips.txt` has a line for it.
pub(crate) fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    eprintln!("SKIP {name}: {reason}");
    if let Some(file) = std::env::var_os("ESATTO_SKIPS") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
        file.and_then(|mut file| writeln!(file, "{name}\t{reason}")).expect("the skip is noted");
    }
}

/// A daemon and its folder.
pub(crate) struct Harness {
    pub(crate) daemon: DaemonHandle,
    pub(crate) folder: Folder,
}

impl Harness {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub(crate) fn start_with(change: impl FnOnce(&mut esatto_daemon::Options)) -> Self {
        let folder = Folder::create();
        let mut options = esatto_daemon::Options::new(Address::Path(folder.path("p")), Address::Path(folder.path("c")));
        change(&mut options);
        let daemon = Daemon::bind(options).unwrap().spawn_thread().unwrap();
        Self { daemon, folder }
    }

    pub(crate) fn consumer(&self) -> BlockingClient {
        BlockingClient::connect(self.daemon.consumer(), "ConsumerPort", DEADLINE).unwrap()
    }

    /// Connects a producer that has registered `spec.test`.
    pub(crate) fn producer(&self) -> Producer {
        Producer::connect(&self.daemon.producers()[0])
    }
}

/// A temporary folder, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn create() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("esatto-d{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new("/tmp").join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns an address with a free port. The kernel's choice cannot be requested through an address,
/// so this is a port that was free a moment ago.
pub(crate) fn tcp_address() -> Address {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("127.0.0.1:{port}").parse().unwrap()
}

/// Reads the trace of a session, and returns its packets.
pub(crate) fn read(consumer: &mut BlockingClient) -> Vec<Vec<u8>> {
    let mut packets = vec![Vec::new()];
    consumer
        .call_stream::<ReadBuffers, esatto_ipc::Error>(&ReadBuffersRequest::default(), Some(DEADLINE), |body| {
            for slice in ReadBuffersResponseReader::new(body).slices() {
                packets.last_mut().expect("never empty").extend_from_slice(slice.data().unwrap_or_default());
                if slice.last_slice_for_packet() == Some(true) {
                    packets.push(Vec::new());
                }
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(packets.pop(), Some(Vec::new()), "the last packet is whole");
    packets
}

/// Returns a config that records `spec.test` into one buffer.
pub(crate) fn config() -> TraceConfig {
    TraceConfig {
        buffers: vec![BufferConfig { size_kb: Some(16 << 10), ..BufferConfig::default() }],
        data_sources: vec![DataSource {
            config: Some(DataSourceConfig { name: Some("spec.test".into()), ..DataSourceConfig::default() }.into()),
            ..DataSource::default()
        }],
        ..TraceConfig::default()
    }
}

/// Returns the arguments of EnableTracing.
pub(crate) fn enable(config: TraceConfig) -> Vec<u8> {
    EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() }.encode()
}

/// Waits until the service has handled all earlier calls of the connection.
pub(crate) fn barrier(consumer: &mut BlockingClient) {
    assert!(consumer.call("QueryCapabilities", &[], Some(DEADLINE)).unwrap().success);
}

/// Returns the packets in a reply to ReadBuffers, each assumed to be whole.
pub(crate) fn slices(body: &[u8]) -> Vec<Vec<u8>> {
    ReadBuffersResponseReader::new(body).slices().map(|slice| slice.data().unwrap_or_default().to_vec()).collect()
}

/// A producer made of raw calls.
pub(crate) struct Producer {
    pub(crate) client: BlockingClient,
    commands: RequestId,
    pub(crate) emulated: bool,
    arbiter: Option<Arc<Arbiter>>,
    writer: TraceWriter,
}

impl Producer {
    pub(crate) fn connect(address: &Address) -> Self {
        let mut client = BlockingClient::connect(address, "ProducerPort", DEADLINE).unwrap();
        let request = InitializeConnectionRequest {
            producer_name: Some("test".into()),
            ..InitializeConnectionRequest::default()
        };
        let reply = client.call("InitializeConnection", &request.encode(), Some(DEADLINE)).unwrap();
        assert!(reply.success);
        let emulated = esatto_schema::InitializeConnectionResponseReader::new(&reply.body).use_shmem_emulation();
        let commands = client.send("GetAsyncCommand", &[], None).unwrap();
        let mut request = RegisterDataSourceRequest::default();
        request.data_source_descriptor.get_or_insert_default().name = Some("spec.test".into());
        client.call("RegisterDataSource", &request.encode(), Some(DEADLINE)).unwrap();
        let writer = TraceWriter::null();
        Self { client, commands, emulated: emulated == Some(true), arbiter: None, writer }
    }

    /// Returns whether it shares memory with the service.
    pub(crate) fn shares_memory(&self) -> bool {
        self.arbiter.is_some() && !self.emulated
    }

    /// Returns the next command of the service.
    pub(crate) fn command(&mut self) -> GetAsyncCommandResponse {
        let reply = self.client.wait_reply(self.commands, Some(DEADLINE)).unwrap();
        assert!(reply.success && reply.has_more);
        GetAsyncCommandResponse::decode(&reply.body).unwrap()
    }

    /// Follows the commands until the data source has started.
    pub(crate) fn await_start(&mut self) {
        loop {
            let command = self.command();
            if let Some(setup) = &command.setup_tracing {
                assert_eq!(setup.shared_buffer_page_size_kb, Some(4));
                let region: Arc<dyn Memory> = match self.client.take_fd() {
                    Some(fd) => Arc::new(MappedRegion::from_service(fd).unwrap()),
                    None => Arc::new(PrivateRegion::new(64 << 10)),
                };
                let mut options = Options::default();
                options.emulation = self.emulated;
                self.arbiter = Some(Arbiter::with_options(region, PageSize::DEFAULT, Arc::new(()), options).unwrap());
            }
            if let Some(start) = &command.start_data_source {
                let buffer = start.config.as_ref().unwrap().target_buffer.unwrap();
                let arbiter = self.arbiter.as_ref().expect("set up before started");
                self.writer = arbiter.create_writer(buffer.try_into().unwrap(), ExhaustedPolicy::Drop);
                return;
            }
        }
    }

    /// Writes a packet, and waits until the service has it.
    pub(crate) fn commit(&mut self, packet: &[u8]) {
        for request in self.send(packet) {
            assert!(self.client.wait_reply(request, Some(DEADLINE)).unwrap().success);
        }
    }

    /// Writes a packet, and sends the commit.
    pub(crate) fn send(&mut self, packet: &[u8]) -> Vec<RequestId> {
        self.writer.new_packet().message().raw(packet);
        self.writer.flush();
        let arbiter = self.arbiter.as_ref().expect("started");
        let mut sent = Vec::new();
        while let Some(outgoing) = arbiter.poll_outgoing() {
            let Outgoing::Commit(request) = outgoing else { continue };
            let mut buffer = HeapBuffer::new();
            request.write_to(&mut buffer.message());
            sent.push(self.client.send("CommitData", &buffer.to_vec(), None).unwrap());
        }
        sent
    }
}

/// Returns a packet with `for_testing.str` of this length.
pub(crate) fn packet(len: usize) -> Vec<u8> {
    let mut buffer = HeapBuffer::new();
    let mut packet = esatto_schema::TracePacketWriter::from(buffer.message());
    packet.for_testing().str("x".repeat(len));
    drop(packet);
    buffer.to_vec()
}
