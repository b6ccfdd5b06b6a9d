//! The decoder, and values made by it.

use esatto_protozero::{Fields, HeapBuffer, Owned, Value};
use esatto_schema::{
    CommitDataRequest, InitializeConnectionRequest, TraceConfig, TracePacketReader, TraceReader, TrackEventReader,
};

/// Levels that are looked into.
const MAX_DEPTH: u32 = 8;

/// Fields at every level, and the same written again.
pub fn protozero_fields(bytes: &[u8]) {
    walk(bytes, MAX_DEPTH);
    let mut buffer = HeapBuffer::new();
    write_again(bytes, &mut buffer);
    let again = buffer.to_vec();
    let values = |bytes| Fields::new(bytes).map(|field| (field.id, field.value)).collect::<Vec<_>>();
    assert_eq!(values(bytes), values(&again), "written again it reads the same");
    readers(bytes);
}

fn walk(bytes: &[u8], depth: u32) {
    let mut fields = Fields::new(bytes);
    let mut before = 0;
    while let Some((field, encoded)) = fields.next_with_bytes() {
        // In between may be fields that are passed over: ids and lengths that protobuf does not allow.
        let start = fields.offset() - encoded.len();
        assert!(before <= start && start < fields.offset(), "fields lie one after the other");
        assert_eq!(encoded, &bytes[start..fields.offset()]);
        before = fields.offset();
        let _ = (field.as_bool(), field.as_f32(), field.as_f64(), field.as_i32(), field.as_sint64(), field.as_sint32(), field.as_u32());
        if depth > 0 {
            walk(field.as_bytes(), depth - 1);
        }
    }
    assert_eq!(fields.is_malformed(), fields.offset() < bytes.len(), "it stops at the end or at a mistake");
    assert_eq!(fields.rest(), &bytes[fields.offset()..]);
}

fn write_again(bytes: &[u8], buffer: &mut HeapBuffer) {
    let mut message = buffer.message();
    for field in Fields::new(bytes) {
        match field.value {
            Value::Varint(v) => message.varint(field.id, v),
            Value::Fixed64(v) => message.fixed64(field.id, v),
            Value::Fixed32(v) => message.fixed32(field.id, v),
            // As a message, so that lengths are filled in afterwards.
            Value::Bytes(v) => message.begin(field.id).raw(v),
        }
    }
}

/// Generated readers, for their repeated and packed fields.
fn readers(bytes: &[u8]) {
    for packet in TraceReader::new(bytes).packet().chain([TracePacketReader::new(bytes)]) {
        let _ = (packet.timestamp(), packet.trusted_packet_sequence_id(), packet.compressed_packets());
        if let Some(event) = packet.track_event() {
            track_event(event);
        }
    }
    track_event(TrackEventReader::new(bytes));
}

fn track_event(event: TrackEventReader<'_>) {
    let sum = event.category_iids().chain(event.flow_ids()).fold(0, u64::wrapping_add);
    let texts = event.categories().map(<[u8]>::len).sum::<usize>();
    let names = event.debug_annotations().filter_map(|annotation| annotation.name()).map(<[u8]>::len).sum::<usize>();
    let _ = (sum, texts, names, event.extra_counter_values().count());
}

/// Owned messages: what is decoded and encoded again decodes to the same.
pub fn protozero_owned(bytes: &[u8]) {
    round_trip::<TraceConfig>(bytes);
    round_trip::<CommitDataRequest>(bytes);
    round_trip::<InitializeConnectionRequest>(bytes);
}

fn round_trip<M: Owned>(bytes: &[u8]) {
    if let Ok(message) = M::decode(bytes) {
        let encoded = message.encode();
        let again = M::decode(&encoded).expect("own encoding");
        // Not the messages: a NaN is not equal to itself.
        assert_eq!(again.encode(), encoded);
    }
}
