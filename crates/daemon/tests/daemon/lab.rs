//! A daemon on sockets of its own, and hand-made clients.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use esatto_daemon::{Daemon, DaemonHandle, Options};
use esatto_ipc::{Address, BlockingClient};
use esatto_protozero::{HeapBuffer, Owned as _};
use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{
    CommitDataRequestWriter, DataSourceConfig, EnableTracingRequest, GetAsyncCommandResponse,
    InitializeConnectionRequest, ReadBuffersResponseReader, RegisterDataSourceRequest, TraceConfig,
};
use esatto_shm::MappedRegion;
use esatto_shm::abi::PageSize;

/// Nothing here takes that long, unless it hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A daemon and its folder.
pub(crate) struct Lab {
    pub(crate) daemon: DaemonHandle,
    pub(crate) folder: Folder,
}

impl Lab {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub(crate) fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = Folder::create();
        let mut options = Options::new(Address::Path(folder.path("p")), Address::Path(folder.path("c")));
        change(&mut options);
        let daemon = Daemon::bind(options).unwrap().spawn_thread().unwrap();
        Self { daemon, folder }
    }

    pub(crate) fn consumer(&self) -> BlockingClient {
        BlockingClient::connect(self.daemon.consumer(), "ConsumerPort", DEADLINE).unwrap()
    }

    /// A producer that has introduced itself and offers `spec.test`.
    pub(crate) fn producer(&self) -> Producer {
        Producer::connect(&self.daemon.producers()[0])
    }
}

/// A folder that goes away.
pub(crate) struct Folder(PathBuf);

impl Folder {
    fn create() -> Self {
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

/// A config that records `spec.test` into one buffer.
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

/// The arguments of EnableTracing.
pub(crate) fn enable(config: TraceConfig) -> Vec<u8> {
    EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() }.encode()
}

/// A call whose answer says that all calls before it were handled.
pub(crate) fn barrier(consumer: &mut BlockingClient) {
    assert!(consumer.call("QueryCapabilities", &[], Some(DEADLINE)).unwrap().success);
}

/// The packets in a reply to ReadBuffers, each assumed to be whole.
pub(crate) fn slices(body: &[u8]) -> Vec<Vec<u8>> {
    ReadBuffersResponseReader::new(body).slices().map(|slice| slice.data().unwrap_or_default().to_vec()).collect()
}

/// A producer made of raw calls.
pub(crate) struct Producer {
    pub(crate) client: BlockingClient,
    commands: esatto_ipc::RequestId,
    pub(crate) region: Option<MappedRegion>,
    pub(crate) emulated: bool,
    target_buffer: u32,
    next_chunk: u32,
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
        Self { client, commands, region: None, emulated: emulated == Some(true), target_buffer: 0, next_chunk: 0 }
    }

    /// The next command of the service.
    pub(crate) fn command(&mut self) -> GetAsyncCommandResponse {
        let reply = self.client.wait_reply(self.commands, Some(DEADLINE)).unwrap();
        assert!(reply.success && reply.has_more);
        GetAsyncCommandResponse::decode(&reply.body).unwrap()
    }

    /// Follows the commands up to the start of the data source.
    pub(crate) fn await_start(&mut self) {
        loop {
            let command = self.command();
            if let Some(setup) = &command.setup_tracing {
                assert_eq!(setup.shared_buffer_page_size_kb, Some(4));
                self.region = self.client.take_fd().map(|fd| MappedRegion::from_service(fd).unwrap());
                assert_eq!(PageSize::DEFAULT.bytes(), 4096);
            }
            if let Some(start) = &command.start_data_source {
                let config = start.config.as_ref().unwrap();
                self.target_buffer = config.target_buffer.unwrap();
                return;
            }
        }
    }

    /// Commits a chunk with this packet by value, which a service takes from any producer.
    pub(crate) fn commit(&mut self, packet: &[u8]) {
        // Header: chunk id, writer 1, one fragment (docs/spec/shared-memory.md §5); then size and packet.
        let mut chunk = self.next_chunk.to_le_bytes().to_vec();
        chunk.extend([1, 0, 1, 0]);
        let mut size = packet.len();
        while size >= 0x80 {
            chunk.push((size & 0x7f) as u8 | 0x80);
            size >>= 7;
        }
        chunk.push(size as u8);
        chunk.extend(packet);
        self.next_chunk += 1;
        let mut buffer = HeapBuffer::new();
        let mut request = CommitDataRequestWriter::from(buffer.message());
        request.chunks_to_move().target_buffer(self.target_buffer).data(&chunk);
        drop(request);
        let reply = self.client.call("CommitData", &buffer.to_vec(), Some(DEADLINE)).unwrap();
        assert!(reply.success);
    }
}

/// A packet with `for_testing.str` of this length.
pub(crate) fn packet(len: usize) -> Vec<u8> {
    let mut buffer = HeapBuffer::new();
    let mut packet = esatto_schema::TracePacketWriter::from(buffer.message());
    packet.for_testing().str("x".repeat(len));
    drop(packet);
    buffer.to_vec()
}
