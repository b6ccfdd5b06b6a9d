//! A read pass of a compressed session is one packet (`docs/spec/service.md §22`).

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use std::io::Read as _;

use esatto_schema::trace_config::compression_config::{Deflate, Zstd};
use esatto_schema::trace_config::{CompressionConfig, CompressionType};
use esatto_schema::{ReadBuffersResponse, TraceConfig, TracePacketReader, TraceReader};
use esatto_service::FileId;

use crate::world::{World, buffer, config, packet, source, text_of};

fn deflate() -> TraceConfig {
    TraceConfig { compression_type: Some(CompressionType::COMPRESSION_TYPE_DEFLATE), ..config(&["ds"]) }
}

fn zstd(level: Option<i32>) -> TraceConfig {
    let zstd = Some(Zstd { level, ..Zstd::default() });
    let deflate = Some(Deflate::default());
    let compression = Some(CompressionConfig { deflate, zstd, ..CompressionConfig::default() });
    TraceConfig { compression, ..config(&["ds"]) }
}

/// Returns the content of a packet that contains only compressed ones.
fn inflated(packet: &[u8]) -> Vec<u8> {
    let reader = TracePacketReader::new(packet);
    let mut trace = Vec::new();
    let compressed = match (reader.compressed_packets(), reader.zstd_compressed_packets()) {
        (Some(compressed), None) => {
            flate2::read::ZlibDecoder::new(compressed).read_to_end(&mut trace).unwrap();
            compressed
        }
        (None, Some(compressed)) => {
            trace = zstd::stream::decode_all(compressed).unwrap();
            compressed
        }
        other => panic!("{other:?}"),
    };
    let size = 1 + esatto_protozero::wire::varint_size(compressed.len() as u64);
    assert!(packet.len() - compressed.len() <= size + 1, "a single field, without what the service adds to others");
    trace
}

fn texts(trace: &[u8]) -> Vec<String> {
    let packets = TraceReader::parse(trace).unwrap().packet();
    packets.filter_map(|packet| text_of(packet.as_bytes())).collect()
}

fn recording(config: &TraceConfig, packets: u32) -> (World, esatto_service::ClientId, Vec<String>) {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let call = world.enable_with(consumer, config, config.write_into_file == Some(true));
    assert_eq!(world.ended(call), None);
    let texts: Vec<String> = (0..packets).map(|id| format!("{id} {}", "x".repeat(2000))).collect();
    for (id, text) in texts.iter().enumerate() {
        world.commit(&mut producer, 1, 1, id as u32, &[&packet(text)]);
    }
    (world, consumer, texts)
}

#[test]
fn a_pass_becomes_one_packet() {
    for config in [deflate(), zstd(None), zstd(Some(-7)), zstd(Some(1000))] {
        let config = TraceConfig { buffers: vec![buffer(1024)], ..config };
        let (mut world, consumer, expected) = recording(&config, 100);
        let packets = world.read(consumer);
        assert!((2..100).contains(&packets.len()), "{} packets for 200 KB", packets.len());
        assert!(packets.iter().map(Vec::len).sum::<usize>() < 20_000);
        let trace: Vec<u8> = packets.iter().flat_map(|packet| inflated(packet)).collect();
        assert_eq!(texts(&trace), expected);
        let last = TraceReader::new(&trace).packet().last().unwrap();
        assert!(last.trace_stats().is_some(), "statistics are inside, too");
        assert!(TraceReader::new(&trace).packet().any(|packet| packet.synchronization_marker().is_some()));
    }
}

#[test]
fn a_file_gets_one_packet_for_each_batch() {
    let config = TraceConfig { write_into_file: Some(true), buffers: vec![buffer(4096)], ..zstd(Some(1)) };
    let (mut world, consumer, expected) = recording(&config, 900);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    let file = TraceReader::parse(&world.files[&FileId(1)]).unwrap();
    let packets: Vec<&[u8]> = file.packet().map(|packet| packet.as_bytes()).collect();
    assert_eq!(packets.len(), 2, "of 1.8 MB");
    let trace: Vec<u8> = packets.into_iter().flat_map(inflated).collect();
    assert_eq!(texts(&trace), expected);
}

#[test]
fn a_file_that_is_full_ends_before_a_compressed_packet() {
    let config = TraceConfig { max_file_size_bytes: Some(100), write_into_file: Some(true), ..deflate() };
    let (mut world, consumer, _) = recording(&config, 10);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert_eq!(world.files[&FileId(1)], b"", "a batch is written as a whole or not at all");
    assert_eq!(world.closed_files, [FileId(1)]);
}

#[test]
fn a_long_packet_is_cut_after_compression() {
    // Text that can hardly be compressed.
    let mut state = 1u64;
    let mut text = || -> String {
        let mut letter = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(0x30 + (state >> 58) as u8)
        };
        (0..3000).map(|_| letter()).collect()
    };
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let config = TraceConfig { buffers: vec![buffer(1024)], data_sources: vec![source("ds")], ..deflate() };
    world.enable(consumer, &config);
    // One packet in 100 chunks.
    let long = packet(&(0..100).map(|_| text()).collect::<String>());
    world.commit_fragments(&mut producer, 1, 1, &long, 3000);
    let call = world.consumer_call(consumer, method::ReadBuffers::METHOD, &[]);
    use esatto_protozero::Owned as _;
    let slices: Vec<_> = world.replies[&call]
        .iter()
        .flat_map(|reply| ReadBuffersResponse::decode(reply.body.as_bytes()).unwrap().slices)
        .map(|slice| (slice.data.unwrap(), slice.last_slice_for_packet.unwrap()))
        .collect();
    let cut: Vec<usize> = slices.iter().filter(|slice| !slice.1).map(|slice| slice.0.len()).collect();
    assert_eq!(cut, [130_560], "of a packet of about 225 KB");
}

#[test]
fn an_empty_pass_is_no_packet() {
    let (mut world, consumer, _) = recording(&deflate(), 1);
    world.read(consumer);
    world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
    let builtin = esatto_schema::trace_config::BuiltinDataSource {
        disable_clock_snapshotting: Some(true),
        disable_service_events: Some(true),
        ..Default::default()
    };
    let config = TraceConfig { builtin_data_sources: Some(builtin), ..deflate() };
    world.enable(consumer, &config);
    assert_eq!(world.read(consumer).len(), 1);
    assert_eq!(world.read(consumer).len(), 0);
}
