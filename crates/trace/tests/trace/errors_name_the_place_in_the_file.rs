use std::io::Write as _;

use esatto_trace::{Error, MAX_COMPRESSED_NESTING, MAX_PACKET_BYTES, Summary, packets};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::common::official;

fn errors(bytes: &[u8]) -> Vec<Error> {
    Summary::read(bytes).errors
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn frame(packet: &[u8]) -> Vec<u8> {
    let mut buffer = esatto_protozero::HeapBuffer::new();
    buffer.message().bytes(1, packet);
    buffer.to_vec()
}

/// Returns a packet with compressed packets.
fn compressed(content: &[u8]) -> Vec<u8> {
    let mut buffer = esatto_protozero::HeapBuffer::new();
    buffer.message().bytes(50, content);
    frame(&buffer.to_vec())
}

#[test]
fn a_file_cut_anywhere_gives_the_packets_before_the_cut() {
    let bytes = official("process-and-sys-stats");
    let ends: Vec<u64> = packets(&bytes)
        .map(|packet| packet.expect("the file is whole").place.offset)
        .chain([bytes.len() as u64])
        .collect();
    for cut in 1..bytes.len() {
        let (whole, start) = match ends.binary_search(&(cut as u64)) {
            Ok(index) => (index, None),
            Err(index) => (index - 1, Some(ends[index - 1])),
        };
        let (read, errors): (Vec<_>, Vec<_>) = packets(&bytes[..cut]).partition(Result::is_ok);
        assert_eq!(read.len(), whole, "cut at {cut}");
        let errors: Vec<Error> = errors.into_iter().filter_map(Result::err).collect();
        match (&errors[..], start) {
            ([], None) => {}
            ([error @ (Error::Torn { .. } | Error::TornHeader { .. })], Some(start)) => {
                assert_eq!(error.offset(), start, "cut at {cut}");
            }
            other => panic!("cut at {cut}: {other:?}"),
        }
    }
}

#[test]
fn a_torn_end_reports_the_bytes_that_are_there() {
    let bytes = official("track-events");
    let found = errors(&bytes[..bytes.len() - 10]);
    assert_eq!(found.len(), 1);
    let Error::Torn { place: at, announced, there } = &found[0] else { panic!("{found:?}") };
    assert_eq!((*announced - *there, at.inside), (10, None));
    assert!(found[0].to_string().starts_with(&format!("torn: the packet at byte {} is ", at.offset)));
}

#[test]
fn foreign_files_are_named() {
    for (bytes, what) in [
        (&b"{\"traceEvents\":[]}"[..], "JSON"),
        (b"[\n{\"name\":\"x\"}]", "JSON"),
        (b"[package]\nname = \"x\"\n", "it looks like a text"),
        (b"\x7fELF\x02\x01", "ELF"),
        (b"PK\x03\x04aaaa", "zip"),
        (b"hello world", "text"),
        (b"\xff\xff", "unknown"),
        (b"# tracer: nop", "ftrace"),
    ] {
        let found = errors(bytes);
        assert!(matches!(found[..], [Error::Foreign { .. }]), "{found:?}");
        assert!(found[0].to_string().contains(what), "{}", found[0]);
    }
    assert!(matches!(errors(b"")[..], [Error::Empty]));
}

#[test]
fn garbage_after_packets_is_reported_with_its_place() {
    let mut bytes = official("process-and-sys-stats");
    let end = bytes.len() as u64;
    bytes.extend(b"\x12\x34garbage");
    let summary = Summary::read(&bytes[..]);
    assert_eq!(summary.packets, 33);
    assert!(matches!(summary.errors[..], [Error::Garbage { byte: 0x12, .. }]));
    assert_eq!(summary.errors[0].offset(), end);
}

#[test]
fn large_lengths_allocate_nothing() {
    let found = errors(b"\x0a\xff\xff\xff\xff\x7f");
    assert!(matches!(found[..], [Error::TooLarge { limit: MAX_PACKET_BYTES, .. }]), "{found:?}");
    assert!(matches!(errors(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")[..], [Error::TooLarge { .. }]));
    assert!(matches!(errors(b"\x0a\xff\xff\xff\x7f")[..], [Error::Torn { there: 0, .. }]));
}

#[test]
fn a_malformed_packet_does_not_end_the_reading() {
    let mut bytes = frame(b"\x40\x05\x08");
    bytes.extend(frame(b"\x40\x06"));
    let summary = Summary::read(&bytes[..]);
    assert_eq!(summary.packets, 2);
    assert!(matches!(summary.errors[..], [Error::Malformed { at: 2, .. }]), "{:?}", summary.errors);
}

#[test]
fn gzipped_files_are_read() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&official("deflate")).expect("memory takes everything");
    let bytes = encoder.finish().expect("memory takes everything");
    let summary = Summary::read(&bytes[..]);
    assert!(summary.errors.is_empty() && summary.gzipped);
    assert_eq!((summary.packets, summary.slices.count), (10_027, 5002));
    let torn = Summary::read(&bytes[..bytes.len() / 2]);
    assert!(matches!(torn.errors[..], [Error::Inflate { .. }]), "{:?}", torn.errors);
    assert!(torn.packets > 1000);
}

#[test]
fn damage_inside_of_a_compressed_packet_costs_only_that_packet() {
    let good = official("process-and-sys-stats");
    let mut damaged = zlib(&good);
    let middle = damaged.len() / 2;
    damaged.truncate(middle);
    let mut bytes = compressed(&damaged);
    let second = bytes.len() as u64;
    bytes.extend(compressed(&zlib(b"\x0a\x02\x40\x05\x0a\x05\x01")));
    bytes.extend(frame(b"\x40\x06"));
    let summary = Summary::read(&bytes[..]);
    assert!(summary.packets > 5, "what could be inflated is read");
    assert!(matches!(summary.errors[..], [_, Error::Torn { .. }]), "{:?}", summary.errors);
    assert_eq!(summary.errors[0].offset(), 0);
    assert_eq!(summary.errors[1].offset(), second);
    assert!(summary.errors[1].to_string().contains("byte 4 inside of the compressed packet at byte"));
    assert_eq!(summary.packets_by_type["(empty)"].packets, 2, "the packets behind are read");
}

#[test]
fn compression_in_compression_is_bounded() {
    let mut bytes = frame(b"\x40\x05");
    for _ in 0..MAX_COMPRESSED_NESTING {
        bytes = compressed(&zlib(&bytes));
    }
    assert_eq!(Summary::read(&bytes[..]).packets, 1);
    let found = errors(&compressed(&zlib(&bytes)));
    assert!(matches!(found[..], [Error::NestedTooDeep { .. }]), "{found:?}");
}

#[test]
fn a_broken_zstd_frame_is_an_error() {
    let mut buffer = esatto_protozero::HeapBuffer::new();
    buffer.message().bytes(133, b"\x28\xb5\x2f\xfd");
    let mut bytes = frame(&buffer.to_vec());
    bytes.extend(frame(b"\x40\x05"));
    let summary = Summary::read(&bytes[..]);
    assert!(matches!(summary.errors[..], [Error::Inflate { .. }]), "{:?}", summary.errors);
    assert_eq!(summary.packets, 1);
}
