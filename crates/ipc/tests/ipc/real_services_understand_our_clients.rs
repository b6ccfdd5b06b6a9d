//! The client of this crate with Perfetto's own service (`cargo xtask peers official`). Without it
//! these tests are skipped, and fail in CI.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use esatto_ipc::frame::{MAX_FRAME, encode};
use esatto_ipc::{Address, BlockingClient, CallError, Channel, Code, Connection, Error, FrameBody, Limits, Stream};
use esatto_ports::{consumer_port, producer_port};
use esatto_protozero::Owned;
use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{
    CommitDataRequest, DataSourceConfig, DataSourceDescriptor, EnableTracingRequest, EnableTracingResponse,
    FlushRequest, GetAsyncCommandRequest, GetAsyncCommandResponse, GetTraceStatsRequest, InitializeConnectionRequest,
    InitializeConnectionResponse, QueryServiceStateRequest, ReadBuffersRequest, RegisterDataSourceRequest, SyncRequest,
    TraceConfig,
};

use crate::listeners_do_not_steal_sockets::Scratch;
use crate::skip::{Skip, skip};

const LIMIT: Duration = Duration::from_secs(10);
const SOON: Option<Duration> = Some(LIMIT);

/// Perfetto's `traced` on private sockets.
struct Service {
    process: Child,
    producer: Address,
    consumer: Address,
    _scratch: Scratch,
}

impl Service {
    fn start(name: &str) -> Result<Self, Skip> {
        let folder = std::env::var_os("PEERS_DIR").map_or_else(
            || Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".cache/perfetto-peers"),
            PathBuf::from,
        );
        let program = folder.join("bin/traced");
        if !program.exists() {
            assert!(std::env::var_os("CI").is_none(), "peer 'official' is not installed: cargo xtask peers official");
            return Err(Skip("no peers: cargo xtask peers official".into()));
        }
        let scratch = Scratch::new(name);
        let (producer, consumer) = (scratch.address("producer"), scratch.address("consumer"));
        let process = Command::new(program)
            .env("PERFETTO_PRODUCER_SOCK_NAME", producer.to_os_string())
            .env("PERFETTO_CONSUMER_SOCK_NAME", consumer.to_os_string())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Ok(Self { process, producer, consumer, _scratch: scratch })
    }

    /// Connects as soon as the service listens.
    fn connect(&self, address: &Address, service: &str) -> BlockingClient {
        BlockingClient::bind(self.stream(address), service, LIMIT).unwrap()
    }

    fn stream(&self, address: &Address) -> Stream {
        let deadline = Instant::now() + LIMIT;
        loop {
            match Stream::connect(address, LIMIT) {
                Ok(stream) => return stream,
                Err(e) => assert!(Instant::now() < deadline, "{e}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn as_a_consumer() {
    skip(|| as_a_consumer_with(&Service::start("real-consumer")?));
}

fn as_a_consumer_with(service: &Service) -> Result<(), Skip> {
    let mut client = service.connect(&service.consumer, "ConsumerPort");
    let state = client
        .call_message::<consumer_port::method::QueryServiceState>(&QueryServiceStateRequest::default(), SOON)
        .unwrap();
    let state = state.service_state.unwrap();
    assert_eq!(state.num_sessions, Some(0));
    assert!(state.tracing_service_version.unwrap().starts_with(b"Perfetto v"));
    assert!(!client.call("GetTraceStats", b"", SOON).unwrap().success, "rejected without a session");
    assert!(!client.call("EnableTracing", b"\xff\xff\xff", SOON).unwrap().success, "does not parse");
    // This call is never answered, but later calls are.
    assert!(matches!(client.call("Flush", b"", Some(Duration::from_millis(20))), Err(Error::Timeout)));
    assert!(client.call("FreeBuffers", b"", SOON).unwrap().success);
    let wrong = BlockingClient::bind(service.stream(&service.consumer), "ProducerPort", LIMIT);
    assert!(matches!(wrong, Err(Error::NoSuchService(_))));
    Ok(())
}

#[test]
fn by_the_generated_bindings() {
    skip(|| by_the_generated_bindings_with(&Service::start("real-bindings")?));
}

/// The service knows none of the extensions, so calls fail without a status.
fn by_the_generated_bindings_with(service: &Service) -> Result<(), Skip> {
    let channel = Channel::new(service.stream(&service.consumer));
    let consumer = consumer_port::Client::new(&channel);
    let mut states = consumer.query_service_state(&QueryServiceStateRequest::default()).timeout(LIMIT);
    let state = states.next_reply().unwrap().unwrap();
    assert!(state.service_state.unwrap().tracing_service_version.unwrap().starts_with(b"Perfetto v"));
    let rejected = consumer.get_trace_stats(&GetTraceStatsRequest::default()).timeout(LIMIT).wait().unwrap_err();
    assert_eq!((rejected.method(), rejected.code()), ("ConsumerPort.GetTraceStats", Code::Unknown));
    let soon = Duration::from_millis(20);
    let unanswered = consumer.flush(&FlushRequest::default()).timeout(soon).wait().unwrap_err();
    assert_eq!(unanswered, CallError::Timeout("ConsumerPort.Flush"));
    // The packets of a stream: none without a session, but an end.
    let packets = consumer.read_buffers(&ReadBuffersRequest::default()).timeout(LIMIT).count();
    assert!(packets <= 1, "{packets}");
    let producer = producer_port::Client::new(&channel);
    let nowhere = producer.sync(&SyncRequest::default()).timeout(LIMIT).wait().unwrap_err();
    assert_eq!(nowhere, CallError::NoSuchService("ProducerPort.Sync"));
    Ok(())
}

#[test]
fn as_a_producer_that_gets_its_shared_memory_and_a_consumer_that_passes_a_file() {
    skip(|| {
        as_a_producer_that_gets_its_shared_memory_and_a_consumer_that_passes_a_file_with(&Service::start(
            "real-producer",
        )?)
    });
}

fn as_a_producer_that_gets_its_shared_memory_and_a_consumer_that_passes_a_file_with(
    service: &Service,
) -> Result<(), Skip> {
    let mut producer = service.connect(&service.producer, "ProducerPort");
    let init = InitializeConnectionRequest {
        producer_name: Some("esatto.test".into()),
        shared_memory_size_hint_bytes: Some(65536),
        shared_memory_page_size_hint_bytes: Some(4096),
        ..Default::default()
    };
    // Back to back, as upstream does.
    let init = producer.send("InitializeConnection", &init.encode(), None).unwrap();
    let commands = producer.send("GetAsyncCommand", &GetAsyncCommandRequest::default().encode(), None).unwrap();
    let reply: InitializeConnectionResponse = producer.wait_reply(init, SOON).unwrap().decode().unwrap();
    assert_eq!(reply.direct_smb_patching_supported, Some(true));
    let descriptor = DataSourceDescriptor { name: Some("esatto.test".into()), ..Default::default() };
    let register = RegisterDataSourceRequest { data_source_descriptor: Some(descriptor.into()), ..Default::default() };
    producer.call_message::<producer_port::method::RegisterDataSource>(&register, SOON).unwrap();
    producer.call_message::<producer_port::method::Sync>(&SyncRequest::default(), SOON).unwrap();

    let mut consumer = service.connect(&service.consumer, "ConsumerPort");
    let config = DataSourceConfig { name: Some("esatto.test".into()), ..Default::default() };
    let config = TraceConfig {
        buffers: vec![BufferConfig { size_kb: Some(64), ..Default::default() }],
        data_sources: vec![DataSource { config: Some(config.into()), ..Default::default() }],
        duration_ms: Some(100),
        write_into_file: Some(true),
        ..Default::default()
    };
    let request = EnableTracingRequest { trace_config: Some(config.into()), ..Default::default() };
    let file = rustix::fs::memfd_create("trace", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(file);
    let enable = consumer.send("EnableTracing", &request.encode(), Some(file.try_clone().unwrap().into())).unwrap();

    let setup = producer.wait_reply(commands, SOON).unwrap();
    assert!(setup.has_more);
    let setup: GetAsyncCommandResponse = setup.decode().unwrap();
    assert_eq!(setup.setup_tracing.unwrap().shared_buffer_page_size_kb, Some(4));
    let memory = File::from(producer.take_fd().expect("shared memory came along"));
    assert_eq!(memory.metadata().unwrap().len(), 65536);
    let setup: GetAsyncCommandResponse = producer.wait_reply(commands, SOON).unwrap().decode().unwrap();
    let instance = setup.setup_data_source.unwrap();
    assert_eq!(instance.config.unwrap().name.unwrap().as_bytes(), b"esatto.test");
    let start: GetAsyncCommandResponse = producer.wait_reply(commands, SOON).unwrap().decode().unwrap();
    assert!(start.start_data_source.is_some());
    // At least one flush. There is another one if the machine is so slow that the service writes
    // the file meanwhile.
    let mut flushes = 0;
    loop {
        let command: GetAsyncCommandResponse = producer.wait_reply(commands, SOON).unwrap().decode().unwrap();
        if command.stop_data_source.is_some() {
            break;
        }
        flushes += 1;
        let done = CommitDataRequest { flush_request_id: command.flush.unwrap().request_id, ..Default::default() };
        producer.send_one_way("CommitData", &done.encode()).unwrap();
    }
    assert!(flushes > 0);

    let end: EnableTracingResponse = consumer.wait_reply(enable, SOON).unwrap().decode().unwrap();
    assert_eq!((end.disabled, end.error), (Some(true), None));
    let mut tag = [0];
    file.read_exact_at(&mut tag, 0).unwrap();
    assert_eq!(tag, [0x0a], "the file that was passed holds a trace");
    Ok(())
}

#[test]
fn about_the_largest_frame() {
    skip(|| about_the_largest_frame_with(&Service::start("real-limits")?));
}

fn about_the_largest_frame_with(service: &Service) -> Result<(), Skip> {
    let mut client = Connection::new(service.stream(&service.consumer), Limits::CLIENT);
    let bind_reply_of = |client: &mut Connection, id: u64| loop {
        client.flush_writes().unwrap();
        client.wait(Some(Instant::now() + LIMIT)).unwrap();
        if client.is_closed() {
            return false;
        }
        if let Some((frame, _)) = client.next_frame().unwrap() {
            assert!(matches!(frame.body, FrameBody::BindServiceReply { .. }) && frame.request_id == id, "{frame:?}");
            return true;
        }
    };
    let name = "x".repeat(MAX_FRAME - 14);
    encode::bind_service(client.out().buffer(), 1, &name).unwrap();
    assert_eq!(client.queued(), MAX_FRAME);
    assert!(bind_reply_of(&mut client, 1), "the largest frame is accepted");
    let too_large = encode::bind_service(client.out().buffer(), 2, &format!("{name}x"));
    assert!(matches!(too_large, Err(Error::MessageTooLarge { len }) if len == MAX_FRAME + 1));
    client.out().buffer().extend_from_slice(&((MAX_FRAME - 3) as u32).to_le_bytes());
    assert!(!bind_reply_of(&mut client, 2), "a header that announces more ends the connection");
    Ok(())
}
