//! A connected producer, and the calls that it makes.

use esatto_ports::Rpc as _;
use esatto_ports::producer_port;
use esatto_protozero::Owned;
use esatto_schema::{
    CommitDataRequest, DataSourceDescriptor, GetAsyncCommandResponse, InitializeConnectionRequest,
    RegisterDataSourceRequest, RegisterTraceWriterRequest, commit_data_request,
};
use esatto_service::{Attachment, CallId, ChunkHeader, ClientId, Input, MemoryKind, Peer, ProducerCall, Reply};

use super::World;

/// A connected producer.
#[derive(Clone, Debug)]
pub(crate) struct FakeProducer {
    pub(crate) client: ClientId,
    pub(crate) commands: CallId,
    pub(crate) next_page: u32,
}

impl FakeProducer {
    /// A producer whose connection was made by hand.
    pub(crate) fn at(client: ClientId, commands: CallId) -> Self {
        Self { client, commands, next_page: 0 }
    }
}

impl World {
    pub(crate) fn producer(&mut self, name: &str) -> FakeProducer {
        let request =
            InitializeConnectionRequest { producer_name: Some(name.into()), ..InitializeConnectionRequest::default() };
        self.producer_with(&request, MemoryKind::Shared)
    }

    pub(crate) fn scraped_producer(&mut self, name: &str) -> FakeProducer {
        let request = InitializeConnectionRequest {
            producer_name: Some(name.into()),
            smb_scraping_mode: Some(esatto_schema::initialize_connection_request::ProducerSMBScrapingMode(1)),
            ..InitializeConnectionRequest::default()
        };
        self.producer_with(&request, MemoryKind::Shared)
    }

    pub(crate) fn producer_with(&mut self, request: &InitializeConnectionRequest, memory: MemoryKind) -> FakeProducer {
        let client = ClientId(self.id());
        let peer = Peer { uid: 1000, pid: Some(42), machine_id: 0 };
        self.feed(Input::ProducerConnected { client, peer, memory });
        self.producer_call(client, producer_port::method::InitializeConnection::METHOD, &request.encode());
        let commands = self.producer_call(client, producer_port::method::GetAsyncCommand::METHOD, &[]);
        FakeProducer { client, commands, next_page: 0 }
    }

    pub(crate) fn producer_call(&mut self, client: ClientId, method: u32, request: &[u8]) -> CallId {
        let call = CallId { client, request: self.id() };
        let method = ProducerCall::read(method, request).unwrap();
        self.feed(Input::ProducerCall { call, method, offered: None });
        call
    }

    pub(crate) fn register(&mut self, producer: &FakeProducer, name: &str) {
        self.register_as(producer, DataSourceDescriptor { name: Some(name.into()), ..Default::default() });
    }

    pub(crate) fn register_as(&mut self, producer: &FakeProducer, descriptor: DataSourceDescriptor) {
        let request =
            RegisterDataSourceRequest { data_source_descriptor: Some(Box::new(descriptor)), ..Default::default() }
                .encode();
        self.producer_call(producer.client, producer_port::method::RegisterDataSource::METHOD, &request);
    }

    pub(crate) fn register_writer(&mut self, producer: &FakeProducer, writer: u32, buffer: u32) {
        let request = RegisterTraceWriterRequest {
            trace_writer_id: Some(writer),
            target_buffer: Some(buffer),
            ..Default::default()
        };
        self.producer_call(producer.client, producer_port::method::RegisterTraceWriter::METHOD, &request.encode());
    }

    /// The commands a producer received since it was asked last.
    pub(crate) fn commands(&mut self, producer: &FakeProducer) -> Vec<GetAsyncCommandResponse> {
        let Some(replies) = self.replies.get_mut(&producer.commands) else { return Vec::new() };
        let taken: Vec<Reply> = replies.drain(..).collect();
        taken
            .iter()
            .map(|reply| {
                assert!(reply.has_more);
                let command = GetAsyncCommandResponse::decode(reply.body.as_bytes()).unwrap();
                let has_memory = reply.attachment == Attachment::SharedBuffer;
                assert!(!has_memory || command.setup_tracing.is_some());
                command
            })
            .collect()
    }

    /// Puts a chunk with these packets into shared memory and commits it.
    pub(crate) fn commit(
        &mut self,
        producer: &mut FakeProducer,
        target_buffer: u32,
        writer_id: u16,
        chunk_id: u32,
        packets: &[&[u8]],
    ) {
        let payload = chunk_payload(packets);
        let header = ChunkHeader { writer_id, chunk_id, count: packets.len() as u16, flags: 0 };
        let page = producer.next_page;
        producer.next_page += 1;
        self.memories[&producer.client].put(page, header, true, &payload);
        let chunk = commit_data_request::ChunksToMove {
            page: Some(page),
            chunk: Some(0),
            target_buffer: Some(target_buffer),
            ..Default::default()
        };
        self.commit_request(producer, &CommitDataRequest { chunks_to_move: vec![chunk], ..Default::default() });
    }

    /// Commits one packet in chunks of so many bytes.
    #[cfg(all(feature = "deflate", feature = "zstd"))]
    pub(crate) fn commit_fragments(
        &mut self,
        producer: &mut FakeProducer,
        target_buffer: u32,
        writer_id: u16,
        packet: &[u8],
        fragment: usize,
    ) {
        let fragments = packet.chunks(fragment);
        let last = fragments.len() - 1;
        for (id, fragment) in fragments.enumerate() {
            let flags = u8::from(id > 0) | u8::from(id < last) << 1;
            let header = ChunkHeader { writer_id, chunk_id: id as u32, count: 1, flags };
            let page = producer.next_page;
            producer.next_page += 1;
            self.memories[&producer.client].put(page, header, true, &chunk_payload(&[fragment]));
            let chunk = commit_data_request::ChunksToMove {
                page: Some(page),
                chunk: Some(0),
                target_buffer: Some(target_buffer),
                ..Default::default()
            };
            self.commit_request(producer, &CommitDataRequest { chunks_to_move: vec![chunk], ..Default::default() });
        }
    }

    pub(crate) fn commit_request(&mut self, producer: &FakeProducer, request: &CommitDataRequest) -> CallId {
        self.producer_call(producer.client, producer_port::method::CommitData::METHOD, &request.encode())
    }

    pub(crate) fn acknowledge_flush(&mut self, producer: &FakeProducer, id: u64) {
        let request = CommitDataRequest { flush_request_id: Some(id), ..Default::default() };
        self.commit_request(producer, &request);
    }
}

/// Packets with their sizes, as in a chunk.
pub(crate) fn chunk_payload(packets: &[&[u8]]) -> Vec<u8> {
    let mut payload = Vec::new();
    for packet in packets {
        let mut size = packet.len();
        while size >= 0x80 {
            payload.push(size as u8 | 0x80);
            size >>= 7;
        }
        payload.push(size as u8);
        payload.extend_from_slice(packet);
    }
    payload
}
