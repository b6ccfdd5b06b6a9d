//! Esatto: straight into the buffer.

use std::hint::black_box;

use esatto_protozero::{HeapBuffer, SliceBuffer};

use crate::encode::{Encode, Flat, Nested, Packet};
use crate::values::{self, LEVELS};

mod chunks;

pub(crate) use chunks::Chunks;

/// Generated from `proto/`.
#[allow(warnings, clippy::all)]
pub(crate) mod proto {
    include!(concat!(env!("OUT_DIR"), "/ours.rs"));
}

use proto::{EveryFieldWriter, TraceWriter, track_event};

#[derive(Debug, Default)]
pub(crate) struct Ours {
    buffer: HeapBuffer,
}

macro_rules! encode {
    ($kind:ty, $values:ty, $write:ident) => {
        impl Encode<$kind> for Ours {
            const NAME: &'static str = "esatto";

            fn encode(&mut self, values: &$values) -> &[u8] {
                self.buffer.clear();
                $write(self.buffer.message().into(), values);
                self.buffer.as_slice()
            }

            fn encode_into(&mut self, values: &$values, slot: &mut [u8]) -> usize {
                let mut buffer = SliceBuffer::new(slot);
                $write(buffer.message().into(), values);
                assert_eq!(buffer.dropped(), 0, "the message fits");
                buffer.len()
            }
        }
    };
}

encode!(Flat, values::Flat, flat);
encode!(Nested, values::Flat, nested);
encode!(Packet, values::Packet, packet);

/// Appends a packet to the chunks.
#[inline(always)]
pub(crate) fn packet_into(chunks: &mut Chunks, values: &values::Packet) {
    chunks.write(|message| packet(message.into(), values));
}

#[inline(always)]
fn flat(mut message: EveryFieldWriter<'_>, values: &values::Flat) {
    fields(&mut message, values);
}

/// Spelled out, because all levels are also inlined in the C++ original.
#[inline(always)]
fn nested(mut first: EveryFieldWriter<'_>, values: &values::Flat) {
    const { assert!(LEVELS == 5) };
    fields(&mut first, values);
    let mut second = first.field_nested();
    fields(&mut second, values);
    let mut third = second.field_nested();
    fields(&mut third, values);
    let mut fourth = third.field_nested();
    fields(&mut fourth, values);
    let mut fifth = fourth.field_nested();
    fields(&mut fifth, values);
}

#[inline(always)]
fn fields(message: &mut EveryFieldWriter<'_>, values: &values::Flat) {
    let values = black_box(values);
    message
        .field_int32(values.int32)
        .field_uint32(values.uint32)
        .field_int64(values.int64)
        .field_uint64(values.uint64)
        .field_string(values.string);
}

#[inline(always)]
fn packet(mut trace: TraceWriter<'_>, values: &values::Packet) {
    let values = black_box(values);
    let mut packet = trace.packet();
    packet.timestamp(values.timestamp_ns).trusted_packet_sequence_id(values.sequence).sequence_flags(values.flags);
    let mut event = packet.track_event();
    event.category_iids(values.category);
    event.debug_annotations().name_iid(1).uint_value(values.number);
    event.debug_annotations().name_iid(2).string_value(values.text);
    event.r#type(track_event::Type::TYPE_SLICE_BEGIN).name_iid(values.name).track_uuid(values.track);
}
