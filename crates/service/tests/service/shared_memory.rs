//! Chunks from real shared memory, in every shape that the protocol has: page sizes, layouts,
//! memory of the service or of the producer, or none. Lengths come by patches or in place
//! (`docs/spec/shared-memory.md §10-§19`).

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_ports::producer_port;
use std::sync::Arc;
use std::time::Duration;

use esatto_protozero::{HeapBuffer, Owned};
use esatto_schema::initialize_connection_request::ProducerSMBScrapingMode;
use esatto_schema::{
    GetTraceStatsResponse, InitializeConnectionRequest, RegisterTraceWriterRequest, TracePacketWriter,
    UnregisterTraceWriterRequest, trace_config,
};
use esatto_service::{CallId, ClientId, Input, MemoryKind, Peer, ProducerCall};
use esatto_shm::abi::{ChunkFlags, ChunkHeader, ChunkState, Packets, PageLayout, PageSize, PageWord};
use esatto_shm::{Arbiter, ExhaustedPolicy, Memory, Options, Outgoing, PrivateRegion, ServiceRegion, Smb, TraceWriter};

use crate::world::{FakeProducer, World, buffer, config};

const PAGES: usize = 16;
const PAGE_SIZES: [usize; 4] = [4096, 8192, 16384, 32768];

/// The side that creates the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Services,
    Producers,
    /// Chunks come inside the commits.
    Nobodys,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    whose: Whose,
    page_size: usize,
    layout: PageLayout,
    direct_patching: bool,
}

impl Shape {
    const PLAIN: Self =
        Self { whose: Whose::Services, page_size: 4096, layout: PageLayout::Div1, direct_patching: false };

    fn all() -> impl Iterator<Item = Self> {
        let layouts = PAGE_SIZES.into_iter().flat_map(|page_size| PageLayout::ALL.map(|layout| (page_size, layout)));
        layouts.flat_map(|(page_size, layout)| {
            [Whose::Services, Whose::Producers, Whose::Nobodys].into_iter().flat_map(move |whose| {
                [false, true].map(|direct_patching| Self { whose, page_size, layout, direct_patching })
            })
        })
    }

    /// Those with memory that the service can look into.
    fn shared() -> impl Iterator<Item = Self> {
        Self::all().filter(|shape| shape.whose != Whose::Nobodys)
    }

    fn options(self) -> Options {
        let mut options = Options::default();
        options.layout = self.layout;
        options.direct_patching = self.direct_patching;
        options.emulation = self.whose == Whose::Nobodys;
        options.self_scraping = options.emulation;
        if self.direct_patching {
            options.batch_delay = Duration::from_secs(1);
        }
        options
    }
}

/// A producer as the SDK is one, on the connection of a fake.
struct RealProducer {
    fake: FakeProducer,
    region: Arc<dyn Memory>,
    page_size: PageSize,
    arbiter: Arc<Arbiter>,
    writer: TraceWriter,
}

/// A world with a session and one producer that writes into buffer 1, scraped by the service or by
/// itself.
fn start(shape: Shape, buffer_kb: u32) -> (World, ClientId, RealProducer) {
    start_with(shape, buffer_kb, Arc::new(PrivateRegion::new(PAGES * shape.page_size)))
}

fn start_with(shape: Shape, buffer_kb: u32, region: Arc<dyn Memory>) -> (World, ClientId, RealProducer) {
    let mut world = World::new();
    let page_size = PageSize::new(shape.page_size).unwrap();
    let size = region.size();
    let view = Box::new(ServiceRegion::new(Arc::clone(&region), page_size).unwrap());
    let request = InitializeConnectionRequest {
        producer_name: Some("real".into()),
        shared_memory_size_hint_bytes: Some(size as u32),
        shared_memory_page_size_hint_bytes: Some(shape.page_size as u32),
        producer_provided_shmem: Some(shape.whose == Whose::Producers),
        smb_scraping_mode: Some(ProducerSMBScrapingMode(1)),
        ..InitializeConnectionRequest::default()
    };
    let fake = match shape.whose {
        Whose::Services => {
            world.prepared = Some(view);
            world.producer_with(&request, MemoryKind::Shared)
        }
        Whose::Nobodys => world.producer_with(&request, MemoryKind::Emulated),
        Whose::Producers => {
            let client = ClientId(world.id());
            let peer = Peer { uid: 1000, pid: Some(42), machine_id: 0 };
            world.feed(Input::ProducerConnected { client, peer, memory: MemoryKind::Shared });
            let encoded = request.encode();
            let call = CallId { client, request: world.id() };
            let method = ProducerCall::read(producer_port::method::InitializeConnection::METHOD, &encoded).unwrap();
            world.feed(Input::ProducerCall { call, method, offered: Some(view) });
            let commands = world.producer_call(client, producer_port::method::GetAsyncCommand::METHOD, &[]);
            FakeProducer::at(client, commands)
        }
    };
    world.register(&fake, "ds");
    let consumer = world.consumer();
    let mut session = config(&["ds"]);
    session.buffers = vec![trace_config::BufferConfig { ..buffer(buffer_kb) }];
    world.enable(consumer, &session);
    let arbiter = Arbiter::with_options(Arc::clone(&region), page_size, Arc::new(()), shape.options()).unwrap();
    let writer = arbiter.create_writer(1, ExhaustedPolicy::Drop);
    let mut producer = RealProducer { fake, region, page_size, arbiter, writer };
    producer.deliver(&mut world);
    (world, consumer, producer)
}

impl RealProducer {
    /// Sends the pending commits.
    fn deliver(&mut self, world: &mut World) {
        send(&self.arbiter, self.fake.client, world);
    }

    fn write(&mut self, text: &str) {
        write(&mut self.writer, text);
    }

    /// Answers a flush of the service, without flushing the writer.
    fn acknowledge_flushes(&mut self, world: &mut World) {
        for command in world.commands(&self.fake) {
            if let Some(id) = command.flush.and_then(|flush| flush.request_id) {
                self.arbiter.acknowledge_flush(id);
                send(&self.arbiter, self.fake.client, world);
            }
        }
    }

    /// Chunks in use, by the writer or the service.
    fn chunks_in_use(&self) -> usize {
        let smb = Smb::new(Arc::clone(&self.region), self.page_size).unwrap();
        let in_use =
            |word: PageWord| (0..word.chunks()).filter(|&chunk| word.state(chunk) != Some(ChunkState::Free)).count();
        (0..smb.pages()).map(|page| in_use(smb.page_word(page))).sum()
    }
}

/// Writes a packet with a nested message. If the message spans chunks, a patch carries its length.
fn write(writer: &mut TraceWriter, text: &str) {
    let mut packet = writer.new_packet();
    TracePacketWriter::from(packet.message()).for_testing().str(text);
}

fn send(arbiter: &Arc<Arbiter>, client: ClientId, world: &mut World) {
    while let Some(outgoing) = arbiter.poll_outgoing() {
        match outgoing {
            Outgoing::RegisterWriter { writer_id, target_buffer } => {
                let request = RegisterTraceWriterRequest {
                    trace_writer_id: Some(writer_id.into()),
                    target_buffer: Some(target_buffer.into()),
                    ..Default::default()
                };
                world.producer_call(client, producer_port::method::RegisterTraceWriter::METHOD, &request.encode());
            }
            Outgoing::UnregisterWriter { writer_id } => {
                let request =
                    UnregisterTraceWriterRequest { trace_writer_id: Some(writer_id.into()), ..Default::default() };
                world.producer_call(client, producer_port::method::UnregisterTraceWriter::METHOD, &request.encode());
            }
            Outgoing::Commit(request) => {
                let mut encoded = HeapBuffer::new();
                request.write_to(&mut encoded.message());
                let call = world.producer_call(client, producer_port::method::CommitData::METHOD, &encoded.to_vec());
                assert!(!world.rejected.contains(&call));
                request.callbacks.into_iter().for_each(|callback| callback());
            }
        }
    }
}

/// Texts of all lengths up to more than two chunks, each telling its number.
fn texts(shape: Shape) -> Vec<String> {
    let chunk = shape.layout.chunk_size(PageSize::new(shape.page_size).unwrap());
    let lengths = [0, 1, 100, chunk / 2, chunk - 40, chunk, chunk + 7, 2 * chunk + 100, 3, chunk / 3, 1, chunk * 2];
    lengths.iter().enumerate().map(|(number, &len)| format!("{number} {}", "x".repeat(len))).collect()
}

fn buffer_stats(world: &mut World, consumer: ClientId) -> esatto_schema::trace_stats::BufferStats {
    let call = world.consumer_call(consumer, method::GetTraceStats::METHOD, &[]);
    let reply = GetTraceStatsResponse::decode(world.replies[&call][0].body.as_bytes()).unwrap();
    reply.trace_stats.unwrap().buffer_stats.remove(0)
}

#[test]
fn packets_arrive_whole_and_in_order_in_every_shape() {
    for shape in Shape::all() {
        let (mut world, consumer, mut producer) = start(shape, 4096);
        let texts = texts(shape);
        for text in &texts {
            producer.write(text);
            producer.deliver(&mut world);
        }
        producer.writer.flush();
        producer.deliver(&mut world);
        assert_eq!(world.read_texts(consumer), texts, "{shape:?}");
        assert_eq!(producer.chunks_in_use(), 0, "{shape:?}: all chunks are free again");
        let stats = buffer_stats(&mut world, consumer);
        assert_eq!((stats.abi_violations, stats.chunks_discarded, stats.patches_failed), (Some(0), Some(0), Some(0)));
        assert!(stats.chunks_written.unwrap() > 4, "{shape:?}");
        assert_eq!(world.warnings, Vec::<String>::new());
    }
}

#[test]
fn a_packet_waits_for_lengths_that_come_after_its_chunks() {
    for shape in Shape::all() {
        let (mut world, consumer, mut producer) = start(shape, 4096);
        let chunk = shape.layout.chunk_size(PageSize::new(shape.page_size).unwrap());
        producer.write("first");
        let RealProducer { writer, arbiter, fake, .. } = &mut producer;
        {
            let mut packet = writer.new_packet();
            let mut message = packet.message();
            let mut event = message.begin(900);
            event.bytes(1, "y".repeat(chunk + 100).as_bytes());
            // The chunks in front leave, and the length of the event is not known yet.
            send(arbiter, fake.client, &mut world);
            assert_eq!(world.read_texts(consumer), ["first"], "{shape:?}");
            event.varint(2, 5);
        }
        writer.flush();
        producer.deliver(&mut world);
        assert_eq!(world.read_texts(consumer), ["y".repeat(chunk + 100)], "{shape:?}");
        let stats = buffer_stats(&mut world, consumer);
        assert_eq!((stats.patches_failed, stats.abi_violations), (Some(0), Some(0)));
        assert_eq!(stats.patches_succeeded, Some(1), "{shape:?}: it was sent before it was known");
    }
}

#[test]
fn lengths_known_before_the_commit_need_no_patches_if_they_may_be_written_in_place() {
    for shape in Shape::all().filter(|shape| shape.direct_patching && shape.whose != Whose::Nobodys) {
        let (mut world, consumer, mut producer) = start(shape, 4096);
        let texts = texts(shape);
        for text in &texts {
            producer.write(text);
            producer.writer.flush();
            producer.deliver(&mut world);
        }
        assert_eq!(world.read_texts(consumer), texts);
        assert_eq!(buffer_stats(&mut world, consumer).patches_succeeded, Some(0), "{shape:?}");
    }
}

#[test]
fn uncommitted_chunks_are_scraped_after_a_flush_and_read_once() {
    for shape in Shape::all() {
        let (mut world, consumer, mut producer) = start(shape, 4096);
        producer.write("a");
        producer.write("b");
        let flush = world.consumer_call(consumer, method::Flush::METHOD, &[]);
        producer.acknowledge_flushes(&mut world);
        assert!(world.is_answered(flush), "{shape:?}");
        assert_eq!(world.read_texts(consumer), ["a", "b"], "{shape:?}: the chunk is still being written");
        // The same again, and more of it, and then its commit.
        world.consumer_call(consumer, method::Flush::METHOD, &[]);
        producer.acknowledge_flushes(&mut world);
        assert_eq!(world.read_texts(consumer), Vec::<String>::new(), "{shape:?}");
        producer.write("c");
        world.consumer_call(consumer, method::Flush::METHOD, &[]);
        producer.acknowledge_flushes(&mut world);
        producer.write("d");
        producer.writer.flush();
        producer.deliver(&mut world);
        producer.write("e");
        producer.writer.flush();
        producer.deliver(&mut world);
        assert_eq!(world.read_texts(consumer), ["c", "d", "e"], "{shape:?}");
        let stats = buffer_stats(&mut world, consumer);
        assert_eq!((stats.abi_violations, stats.chunks_discarded), (Some(0), Some(0)), "{shape:?}");
    }
}

#[test]
fn a_producer_that_dies_leaves_its_finished_packets() {
    for shape in Shape::shared() {
        let (mut world, consumer, mut producer) = start(shape, 4096);
        let chunk = shape.layout.chunk_size(PageSize::new(shape.page_size).unwrap());
        let full = "f".repeat(chunk);
        producer.write("a");
        producer.write(&full);
        producer.write("b");
        // Nothing was committed. One more packet, which never ends.
        let client = producer.fake.client;
        {
            let mut packet = producer.writer.new_packet();
            packet.message().begin(900).bytes(1, b"never finished");
            world.feed(Input::ProducerDisconnected(client));
        }
        let expected = if shape.direct_patching {
            // The chunk in front was kept back for its length, which is in place now.
            vec!["a".to_owned(), full, "b".to_owned()]
        } else {
            // Its length was on the way as a patch.
            vec!["a".to_owned()]
        };
        assert_eq!(world.read_texts(consumer), expected, "{shape:?}");
    }
}

#[test]
fn chunks_for_foreign_buffers_are_freed_and_counted() {
    for shape in Shape::shared() {
        let (mut world, consumer, mut producer) = start(shape, 4096);
        let discarded = |world: &mut World| {
            let call = world.consumer_call(consumer, method::GetTraceStats::METHOD, &[]);
            let reply = GetTraceStatsResponse::decode(world.replies[&call][0].body.as_bytes()).unwrap();
            reply.trace_stats.unwrap().chunks_discarded.unwrap_or(0)
        };
        // No such buffer, and one that cannot be.
        for (count, buffer) in [(1, 2), (2, 65535)] {
            let mut writer = producer.arbiter.create_writer(buffer, ExhaustedPolicy::Drop);
            write(&mut writer, "lost");
            writer.flush();
            producer.deliver(&mut world);
            assert_eq!(discarded(&mut world), count, "{shape:?}");
        }
        producer.write("kept");
        producer.writer.flush();
        producer.deliver(&mut world);
        assert_eq!(world.read_texts(consumer), ["kept"]);
        assert_eq!(producer.chunks_in_use(), 0, "{shape:?}");
    }
}

#[test]
fn a_small_ring_keeps_the_newest_packets_and_marks_the_loss() {
    for shape in Shape::all().filter(|shape| shape.page_size == 4096) {
        let (mut world, consumer, mut producer) = start(shape, 16);
        for number in 0..400 {
            producer.write(&format!("{number} {}", "x".repeat(number % 300)));
            producer.deliver(&mut world);
        }
        producer.writer.flush();
        producer.deliver(&mut world);
        let texts = world.read_texts(consumer);
        let numbers: Vec<u32> = texts.iter().map(|text| text.split(' ').next().unwrap().parse().unwrap()).collect();
        assert!(numbers.len() > 20, "{shape:?}");
        let first = numbers[0];
        assert_eq!(numbers, (first..400).collect::<Vec<_>>(), "{shape:?}");
        let marked: Vec<bool> = texts.iter().map(|text| text.contains('=')).collect();
        assert_eq!(marked.iter().filter(|&&marked| marked).count(), 1, "{shape:?}: {texts:?}");
        assert!(marked[0], "{shape:?}");
    }
}

#[test]
fn a_writer_id_that_is_given_back_and_used_again_loses_nothing() {
    let (mut world, consumer, mut producer) = start(Shape::PLAIN, 4096);
    let client = producer.fake.client;
    let mut expected = Vec::new();
    for round in 0..3 {
        for text in ["a", "b"].map(|text| format!("{text}{round}")) {
            producer.write(&text);
            producer.writer.flush();
            expected.push(text);
        }
        producer.deliver(&mut world);
        if round == 1 {
            assert_eq!(world.read_texts(consumer), core::mem::take(&mut expected));
        }
        // The arbiter would take another id first, so a new producer takes this one again at once.
        let id = u32::from(producer.writer.writer_id());
        let request = UnregisterTraceWriterRequest { trace_writer_id: Some(id), ..Default::default() };
        world.producer_call(client, producer_port::method::UnregisterTraceWriter::METHOD, &request.encode());
        producer.arbiter = Arbiter::new(Arc::clone(&producer.region), producer.page_size, Arc::new(())).unwrap();
        producer.writer = producer.arbiter.create_writer(1, ExhaustedPolicy::Drop);
        assert_eq!(u32::from(producer.writer.writer_id()), id);
        producer.deliver(&mut world);
    }
    assert_eq!(world.read_texts(consumer), expected);
    assert_eq!(buffer_stats(&mut world, consumer).chunks_discarded, Some(0));
}

#[test]
fn an_empty_chunk_that_was_not_committed_is_no_gap() {
    let mut bytes = vec![0; PAGES * 4096];
    let word = PageWord::partitioned(PageLayout::Div1).with_state(0, ChunkState::Complete);
    let packets = [Some(crate::world::packet("a")), None, Some(crate::world::packet("b"))];
    for (id, packet) in (0u32..).zip(packets) {
        let page = &mut bytes[id as usize * 4096..][..4096];
        let payload = packet.map_or_else(Vec::new, |packet| crate::world::chunk_payload(&[&packet]));
        let header = ChunkHeader {
            chunk_id: id,
            writer_id: 1,
            packets: Packets::new(u16::from(!payload.is_empty()), ChunkFlags(0)),
        };
        page[..4].copy_from_slice(&word.0.to_le_bytes());
        page[8..16].copy_from_slice(&header.to_bytes());
        page[16..16 + payload.len()].copy_from_slice(&payload);
    }
    let region: Arc<dyn Memory> = Arc::new(PrivateRegion::from_bytes(&bytes));
    let (mut world, consumer, producer) = start_with(Shape::PLAIN, 64, region);
    // The first chunk of the writer that `start` has made is none of these.
    world.feed(Input::ProducerDisconnected(producer.fake.client));
    assert_eq!(world.read_texts(consumer), ["a", "b"]);
}
