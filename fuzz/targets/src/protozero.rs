//! The decoder, and values made by it.

use esatto_protozero::framing::{FrameReader, FramingError};
use esatto_protozero::{Fields, HeapBuffer, Owned, Value};
use esatto_schema::{
    CommitDataRequest, DataSourceDescriptor, InitializeConnectionRequest, TraceConfig, TracePacketReader, TraceReader,
    TrackDescriptorReader, TrackEventReader, trace_packet, track_event,
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
        // In between may be fields that are passed over: ids and lengths that protobuf does not
        // allow.
        let start = fields.offset() - encoded.len();
        assert!(before <= start && start < fields.offset(), "fields lie one after the other");
        assert_eq!(encoded, &bytes[start..fields.offset()]);
        before = fields.offset();
        let _ = (
            field.as_bool(),
            field.as_f32(),
            field.as_f64(),
            field.as_i32(),
            field.as_sint64(),
            field.as_sint32(),
            field.as_u32(),
        );
        if depth > 0 {
            walk(field.as_bytes(), depth - 1);
        }
    }
    assert_eq!(fields.is_malformed(), fields.offset() < bytes.len(), "it stops at the end or at a mistake");
    assert_eq!(fields.rest(), &bytes[fields.offset()..]);
    assert_eq!(Fields::new(bytes).check().is_err(), fields.is_malformed());
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

/// Owned messages: bytes that are decoded and encoded again decode to the same value.
pub fn protozero_owned(bytes: &[u8]) {
    round_trip::<TraceConfig>(bytes);
    round_trip::<CommitDataRequest>(bytes);
    round_trip::<DataSourceDescriptor>(bytes);
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

/// The two forms of generated readers, and the fields themselves, agree.
pub fn protozero_index(bytes: &[u8]) {
    for packet in TraceReader::new(bytes).packet().chain([TracePacketReader::new(bytes)]) {
        indexed_packet(packet);
        packet.track_event().into_iter().for_each(indexed_event);
        packet.track_descriptor().into_iter().for_each(indexed_descriptor);
    }
    indexed_event(TrackEventReader::new(bytes));
    indexed_descriptor(TrackDescriptorReader::new(bytes));
}

/// Asserts that getters return the same, scanned and indexed; iterators are walked.
macro_rules! assert_same {
    ($reader:ident, $decoder:ident: $($getter:ident)*; each $($repeated:ident)*; nested $($message:ident)*) => {
        assert_eq!($reader.check(), $decoder.check());
        $(assert_eq!($reader.$getter(), $decoder.$getter());)*
        $(
            let (mut scanned, mut indexed) = ($reader.$repeated(), $decoder.$repeated());
            assert!(scanned.by_ref().eq(indexed.by_ref()));
            assert_eq!(scanned.rest_of_packed(), indexed.rest_of_packed());
        )*
        $(
            let (scanned, indexed) = ($reader.$message().into_iter(), $decoder.$message().into_iter());
            assert!(scanned.map(|message| message.as_bytes()).eq(indexed.map(|message| message.as_bytes())));
        )*
    };
}

fn indexed_packet(packet: TracePacketReader<'_>) {
    let decoder = packet.decoder();
    assert_same! {
        packet, decoder:
        timestamp timestamp_clock_id trusted_uid trusted_packet_sequence_id trusted_pid sequence_flags
        previous_packet_dropped compressed_packets synchronization_marker machine_id data;
        each;
        nested track_event track_descriptor interned_data trace_packet_defaults for_testing clock_snapshot trace_config
    };
    let known = |id: u32| packet.fields().filter(|field| field.id == id).last();
    let timestamp = known(trace_packet::field::TIMESTAMP).filter(|field| !matches!(field.value, Value::Bytes(_)));
    if let Some(field) = timestamp {
        assert_eq!(decoder.timestamp(), Some(field.as_u64()));
    }
    assert_eq!(decoder.fields().count(), packet.fields().count());
    assert!(decoder.unknown_fields().all(|field| field.id != trace_packet::field::TIMESTAMP));
}

fn indexed_event(event: TrackEventReader<'_>) {
    let decoder = event.decoder();
    assert_same! {
        event, decoder:
        r#type name name_iid track_uuid timestamp_absolute_us timestamp_delta_us counter_value name_field timestamp;
        each category_iids categories flow_ids flow_ids_old terminating_flow_ids extra_counter_values
             extra_counter_track_uuids;
        nested debug_annotations task_execution log_message source_location
    };
    let categories = event.fields().filter(|field| field.id == track_event::field::CATEGORIES);
    let categories = categories.filter(|field| matches!(field.value, Value::Bytes(_)));
    assert!(decoder.categories().eq(categories.map(|field| field.as_bytes())));
}

fn indexed_descriptor(descriptor: TrackDescriptorReader<'_>) {
    let decoder = descriptor.decoder();
    assert_same! {
        descriptor, decoder:
        uuid parent_uuid name static_name static_or_dynamic_name;
        each;
        nested process thread counter
    };
}

/// A stream of messages in one piece and in several: the first byte says in how many, and a byte
/// each says where to cut.
pub fn protozero_framing(bytes: &[u8]) {
    let Some((&cuts, rest)) = bytes.split_first() else { return };
    let (cuts, stream) = rest.split_at(usize::from(cuts).min(rest.len()));
    let whole = frames(&[stream]);
    let mut pieces = Vec::new();
    let mut left = stream;
    for &cut in cuts {
        let (piece, rest) = left.split_at(usize::from(cut).min(left.len()));
        pieces.push(piece);
        left = rest;
    }
    pieces.push(left);
    assert_eq!(frames(&pieces), whole);

    // A frame is the same if it is read in parts.
    let mut reader = FrameReader::new();
    pieces.iter().for_each(|piece| drop(reader.feed(piece)));
    assert_eq!(drain(&mut reader, &[]), whole.0);
    assert_eq!((reader.unread(), reader.error()), (whole.1, whole.2));

    let fields = Fields::new(stream).take(whole.0.len());
    if whole.0.iter().all(|(id, _)| *id <= esatto_protozero::wire::MAX_FIELD_ID) {
        assert!(fields.map(|field| (field.id, field.as_bytes().to_vec())).eq(whole.0));
    }
}

type Frames = Vec<(u32, Vec<u8>)>;

fn frames(pieces: &[&[u8]]) -> (Frames, usize, Option<FramingError>) {
    let mut reader = FrameReader::new();
    let frames = pieces.iter().flat_map(|piece| drain(&mut reader, piece)).collect();
    (frames, reader.unread(), reader.error())
}

fn drain(reader: &mut FrameReader, piece: &[u8]) -> Frames {
    let mut frames = reader.feed(piece);
    let mut out = Vec::new();
    while let Ok(Some(frame)) = frames.next_frame() {
        out.push((frame.id, frame.bytes.to_vec()));
    }
    out
}
