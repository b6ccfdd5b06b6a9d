//! The same config, the same producer byte by byte, and the same program that records. Perfetto's
//! service and ours give the same packets in the same order, except for [`DIFFERENCES`]. Here the
//! way out counts: the socket, a file, compression; the tests of `parity` look at what happens
//! before.

use esatto_tests::wire::{self, Proto};
use esatto_tests::{Implementation, Peer, Skip, by_hand, skip};
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage as _, Value};

const SOURCE: &str = "esatto.same";

/// Fields of `perfetto.protos` that are not compared.
const DIFFERENCES: [&str; 11] = [
    // Times and ids.
    "TracePacket.timestamp",
    "ClockSnapshot.Clock.timestamp",
    "TraceConfig.trace_uuid_msb",
    "TraceConfig.trace_uuid_lsb",
    "TraceUuid.msb",
    "TraceUuid.lsb",
    "SystemInfo.tracing_service_version",
    // Their first kind of buffer knows of no sequence before it is read.
    "TraceProvenance.Buffer.sequences",
    // The same, in records of other sizes.
    "TraceStats.BufferStats.bytes_written",
    "TraceStats.BufferStats.bytes_read",
    "TraceStats.BufferStats.padding_bytes_written",
];

const SOURCES: &str = "data_sources { config { name: \"esatto.same\" } }\n";

#[test]
fn an_ordinary_recording() {
    skip(|| same("buffers { size_kb: 1024 }", 500));
}

#[test]
fn into_a_file() {
    skip(|| same("buffers { size_kb: 1024 } write_into_file: true file_write_period_ms: 60000", 500));
}

#[test]
fn compressed() {
    skip(|| same("buffers { size_kb: 1024 } compression_type: COMPRESSION_TYPE_DEFLATE", 500));
}

fn same(config: &str, packets: u64) -> Result<(), Skip> {
    Peer::Official.require()?;
    let packets: Vec<Vec<u8>> = (0..packets).map(packet).collect();
    let config = format!("{config}\n{SOURCES}");
    let record = |service| by_hand::record(service, Implementation::Theirs, &config, SOURCE, &packets);
    let (theirs, ours) = (outline(&record(Implementation::Theirs)), outline(&record(Implementation::Ours)));
    assert!(ours.len() > 20, "{ours:#?}");
    for (at, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        assert_eq!(theirs, ours, "packet {at}");
    }
    assert_eq!(theirs.len(), ours.len());
    Ok(())
}

/// Of different sizes.
fn packet(number: u64) -> Vec<u8> {
    let text = "x".repeat((number * 37 % 300) as usize);
    Proto::new().int(8, 1_000_000 + number).message(900, &Proto::new().bytes(1, text)).0
}

/// Every packet as text, without what may differ. Of snapshots in a row, the first: how many there
/// are depends on the time.
fn outline(trace: &[u8]) -> Vec<String> {
    let pool = DescriptorPool::decode(esatto_schema::FILE_DESCRIPTOR_SET).expect("our own schema");
    let message = pool.get_message_by_name("perfetto.protos.TracePacket").expect("a message of it");
    let mut packets = packets_of(trace).iter().map(|packet| text(&message, packet)).collect::<Vec<_>>();
    packets.dedup_by(|one, other| one == other && one.contains("clock_snapshot"));
    packets
}

/// Packets, also those in compressed ones.
fn packets_of(trace: &[u8]) -> Vec<Vec<u8>> {
    let open = |packet: &[u8]| match wire::last(packet, 50) {
        Some(compressed) => {
            let mut inflated = Vec::new();
            let mut decoder = flate2::read::ZlibDecoder::new(compressed);
            std::io::Read::read_to_end(&mut decoder, &mut inflated).expect("a zlib stream");
            wire::all(&inflated, 1).into_iter().map(<[u8]>::to_vec).collect()
        }
        None => vec![packet.to_vec()],
    };
    wire::all(trace, 1).into_iter().flat_map(open).collect()
}

fn text(message: &MessageDescriptor, packet: &[u8]) -> String {
    let mut packet = DynamicMessage::decode(message.clone(), packet).expect("a packet");
    strip(&mut packet);
    esatto_text_format::to_text(message, &packet.encode_to_vec())
}

/// Removes what may differ, and numbers that say what their absence says.
fn strip(message: &mut DynamicMessage) {
    let package = "perfetto.protos.";
    let names: Vec<_> = message.fields().map(|(field, _)| field).collect();
    for field in names {
        let name = field.full_name().strip_prefix(package).unwrap_or_default().to_owned();
        let is_default = !field.is_list() && *message.get_field(&field) == field.default_value();
        if DIFFERENCES.contains(&&*name) || is_default {
            message.clear_field(&field);
            continue;
        }
        match message.get_field_mut(&field) {
            Value::Message(inner) => strip(inner),
            Value::List(list) => list.iter_mut().for_each(|value| {
                if let Value::Message(inner) = value {
                    strip(inner);
                }
            }),
            _ => {}
        }
    }
    debug_assert!(message.descriptor().full_name().starts_with(package));
}
