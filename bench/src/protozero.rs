//! Group `protozero`: one packet with a track event and two annotations, encoded into a reused buffer and read again.

use std::hint::black_box;
use std::time::Instant;

use esatto_protozero::HeapBuffer;
use esatto_schema::{TraceWriter, TrackEventReader, trace, trace_packet, track_event};
use prost::Message as _;

use crate::options::Options;
use crate::row::Row;
use crate::stats;

const GROUP: &str = "protozero";
const PEER: &str = "prost 0.14";

const TIMESTAMP_NS: u64 = 1_234_567_890_123_456;
const SEQUENCE: u32 = 7;
const FLAGS: u32 = 2;
const CATEGORY: u64 = 1;
const NAME: u64 = 2;
const TRACK: u64 = 0x9e37_79b9_7f4a_7c15;
const NUMBER: u64 = 123_456;
const TEXT: &str = "fifteen bytes !";

/// Operations per batch.
const OPS: u32 = 1000;
/// Batches per round.
const BATCHES: usize = 50;

/// The same messages for prost.
mod peer {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Trace {
        #[prost(message, repeated, tag = "1")]
        pub(super) packet: Vec<TracePacket>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TracePacket {
        #[prost(uint64, optional, tag = "8")]
        pub(super) timestamp: Option<u64>,
        #[prost(uint32, optional, tag = "10")]
        pub(super) trusted_packet_sequence_id: Option<u32>,
        #[prost(message, optional, tag = "11")]
        pub(super) track_event: Option<TrackEvent>,
        #[prost(uint32, optional, tag = "13")]
        pub(super) sequence_flags: Option<u32>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TrackEvent {
        #[prost(uint64, repeated, packed = "false", tag = "3")]
        pub(super) category_iids: Vec<u64>,
        #[prost(message, repeated, tag = "4")]
        pub(super) debug_annotations: Vec<DebugAnnotation>,
        #[prost(int32, optional, tag = "9")]
        pub(super) r#type: Option<i32>,
        #[prost(uint64, optional, tag = "10")]
        pub(super) name_iid: Option<u64>,
        #[prost(uint64, optional, tag = "11")]
        pub(super) track_uuid: Option<u64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct DebugAnnotation {
        #[prost(uint64, optional, tag = "1")]
        pub(super) name_iid: Option<u64>,
        #[prost(uint64, optional, tag = "3")]
        pub(super) uint_value: Option<u64>,
        #[prost(string, optional, tag = "6")]
        pub(super) string_value: Option<String>,
    }
}

pub(crate) fn run(options: &Options) -> Vec<Row> {
    let mut ours = HeapBuffer::new();
    write_ours(&mut ours, NUMBER, TEXT);
    let message = build_theirs(NUMBER, TEXT);
    let mut theirs = message.encode_to_vec();
    // Both write the same, or comparing them says nothing.
    let read_back = peer::Trace::decode(ours.as_slice()).expect("what we wrote is well formed");
    assert_eq!(read_back, message, "both sides write the same message");
    let bytes = ours.to_vec();
    assert_eq!(read_ours(&bytes), read_theirs(&bytes), "both sides read the same");

    let mut flat = [0; 128];
    let len = write_by_hand(&mut flat, NUMBER, TEXT);
    assert_eq!(flat[..len], bytes, "by hand the bytes are the same");
    let (mut encode, mut prebuilt, mut decode, mut hand) = (Pair::default(), Vec::new(), Pair::default(), Vec::new());
    for _ in 0..options.rounds {
        for _ in 0..BATCHES {
            encode.ours.push(batch(|| {
                ours.clear();
                write_ours(&mut ours, black_box(NUMBER), black_box(TEXT));
                black_box(ours.len());
            }));
            encode.theirs.push(batch(|| {
                theirs.clear();
                let built = build_theirs(black_box(NUMBER), black_box(TEXT));
                built.encode(&mut theirs).expect("a Vec grows");
                black_box(&theirs);
            }));
            prebuilt.push(batch(|| {
                theirs.clear();
                black_box(&message).encode(&mut theirs).expect("a Vec grows");
                black_box(&theirs);
            }));
            decode.ours.push(batch(|| {
                black_box(read_ours(black_box(&bytes)));
            }));
            decode.theirs.push(batch(|| {
                black_box(read_theirs(black_box(&bytes)));
            }));
            hand.push(batch(|| {
                black_box(write_by_hand(&mut flat, black_box(NUMBER), black_box(TEXT)));
                black_box(&flat);
            }));
        }
    }
    let mut rows = Vec::new();
    for (statistic, of) in [("median", stats::median as fn(&[f64]) -> f64), ("min", stats::min)] {
        let mut row = |case: &str, ours: &[f64], theirs: &[f64]| {
            rows.push(
                Row::new(GROUP, format!("{case}, {statistic}"), "ns/op", of(ours)).beside(PEER, Some(of(theirs))),
            );
        };
        row("track event packet: build and encode", &encode.ours, &encode.theirs);
        row("track event packet: encode, the peer's message is built before", &encode.ours, &prebuilt);
        row("track event packet: read every field", &decode.ours, &decode.theirs);
    }
    rows.push(
        Row::new(GROUP, "track event packet: encoded", "bytes", bytes.len() as f64)
            .beside(PEER, Some(message.encoded_len() as f64)),
    );
    rows.push(Row::new(GROUP, "floor: written by hand into an array, median", "ns/op", stats::median(&hand)));
    rows.push(Row::new(GROUP, "floor: written by hand into an array, min", "ns/op", stats::min(&hand)));
    rows
}

#[derive(Default)]
struct Pair {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

fn batch(mut operation: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..OPS {
        operation();
    }
    start.elapsed().as_nanos() as f64 / f64::from(OPS)
}

fn write_ours(buffer: &mut HeapBuffer, number: u64, text: &str) {
    let mut trace = TraceWriter::from(buffer.message());
    let mut packet = trace.packet();
    packet.timestamp(TIMESTAMP_NS).trusted_packet_sequence_id(SEQUENCE).sequence_flags(FLAGS);
    let mut event = packet.track_event();
    event.category_iids(CATEGORY);
    event.debug_annotations().name_iid(1).uint_value(number);
    event.debug_annotations().name_iid(2).string_value(text);
    event.r#type(track_event::Type::TYPE_SLICE_BEGIN).name_iid(NAME).track_uuid(TRACK);
}

fn build_theirs(number: u64, text: &str) -> peer::Trace {
    let number = peer::DebugAnnotation { name_iid: Some(1), uint_value: Some(number), string_value: None };
    let text = peer::DebugAnnotation { name_iid: Some(2), uint_value: None, string_value: Some(text.to_owned()) };
    peer::Trace {
        packet: vec![peer::TracePacket {
            timestamp: Some(TIMESTAMP_NS),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(FLAGS),
            track_event: Some(peer::TrackEvent {
                category_iids: vec![CATEGORY],
                debug_annotations: vec![number, text],
                r#type: Some(track_event::Type::TYPE_SLICE_BEGIN.0),
                name_iid: Some(NAME),
                track_uuid: Some(TRACK),
            }),
        }],
    }
}

/// The values that both readers look at: numbers summed up, bytes of text.
fn read_ours(bytes: &[u8]) -> (u64, usize) {
    use esatto_protozero::Fields;
    let (mut sum, mut text) = (0_u64, 0);
    let mut add = |v: u64| sum = sum.wrapping_add(v);
    for packet in Fields::new(bytes).filter(|field| field.id == trace::field::PACKET) {
        for field in Fields::new(packet.as_bytes()) {
            if field.id != trace_packet::field::TRACK_EVENT {
                add(field.as_u64());
                continue;
            }
            let event = TrackEventReader::new(field.as_bytes());
            for field in event.fields() {
                if field.id != track_event::field::DEBUG_ANNOTATIONS {
                    add(field.as_u64());
                    continue;
                }
                for field in Fields::new(field.as_bytes()) {
                    add(field.as_u64());
                    text += field.as_bytes().len();
                }
            }
        }
    }
    (sum, text)
}

fn read_theirs(bytes: &[u8]) -> (u64, usize) {
    let trace = peer::Trace::decode(bytes).unwrap_or_default();
    let (mut sum, mut text) = (0_u64, 0);
    let mut add = |v: Option<u64>| sum = sum.wrapping_add(v.unwrap_or(0));
    for packet in &trace.packet {
        add(packet.timestamp);
        add(packet.trusted_packet_sequence_id.map(u64::from));
        add(packet.sequence_flags.map(u64::from));
        let Some(event) = &packet.track_event else { continue };
        event.category_iids.iter().for_each(|&iid| add(Some(iid)));
        add(event.r#type.map(|v| v as u64));
        add(event.name_iid);
        add(event.track_uuid);
        for annotation in &event.debug_annotations {
            add(annotation.name_iid);
            add(annotation.uint_value);
            text += annotation.string_value.as_deref().map_or(0, str::len);
        }
    }
    (sum, text)
}

/// The same bytes, by hand: nothing is checked but the end of the array, lengths are filled in afterwards.
#[inline(never)]
fn write_by_hand(out: &mut [u8; 128], number: u64, text: &str) -> usize {
    struct Hand<'a>(&'a mut [u8; 128], usize);
    impl Hand<'_> {
        fn byte(&mut self, byte: u8) {
            self.0[self.1] = byte;
            self.1 += 1;
        }

        fn varint(&mut self, tag: u8, mut v: u64) {
            self.byte(tag);
            while v >= 0x80 {
                self.byte(v as u8 | 0x80);
                v >>= 7;
            }
            self.byte(v as u8);
        }

        fn begin(&mut self, tag: u8) -> usize {
            self.byte(tag);
            self.byte(0);
            self.1
        }

        fn end(&mut self, start: usize) {
            self.0[start - 1] = (self.1 - start) as u8;
        }
    }
    let mut hand = Hand(out, 0);
    let packet = hand.begin(0x0a);
    hand.varint(0x40, TIMESTAMP_NS);
    hand.varint(0x50, SEQUENCE.into());
    hand.varint(0x68, FLAGS.into());
    let event = hand.begin(0x5a);
    hand.varint(0x18, CATEGORY);
    let annotation = hand.begin(0x22);
    hand.varint(0x08, 1);
    hand.varint(0x18, number);
    hand.end(annotation);
    let annotation = hand.begin(0x22);
    hand.varint(0x08, 2);
    let string = hand.begin(0x32);
    hand.0[string..string + text.len()].copy_from_slice(text.as_bytes());
    hand.1 += text.len();
    hand.end(string);
    hand.end(annotation);
    hand.varint(0x48, 1);
    hand.varint(0x50, NAME);
    hand.varint(0x58, TRACK);
    hand.end(event);
    hand.end(packet);
    hand.1
}
