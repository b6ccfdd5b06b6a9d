//! prost: values into a message that is kept, then `encode_raw`.

use std::hint::black_box;

use prost::Message as _;

use crate::encode::{Encode, Flat, Nested, Packet, Prebuilt};
use crate::values::{self, LEVELS};

/// Generated from `proto/`.
#[allow(dead_code, missing_docs, unreachable_pub)]
pub(crate) mod proto {
    include!(concat!(env!("OUT_DIR"), "/bench.rs"));
}

use proto::{DebugAnnotation, EveryField, Trace, TracePacket, TrackEvent, track_event};

/// Keeps the messages, and with them the strings and vectors that they have allocated.
#[derive(Debug, Default)]
pub(crate) struct Prost {
    every: EveryField,
    trace: Trace,
    out: Vec<u8>,
}

macro_rules! encode {
    ($kind:ty, $values:ty, $message:ident, $fill:ident) => {
        impl Encode<$kind> for Prost {
            const NAME: &'static str = "prost";

            fn encode(&mut self, values: &$values) -> &[u8] {
                $fill(&mut self.$message, values);
                self.out.clear();
                self.$message.encode_raw(&mut self.out);
                &self.out
            }

            fn encode_into(&mut self, values: &$values, slot: &mut [u8]) -> usize {
                $fill(&mut self.$message, values);
                let len = slot.len();
                let mut rest = slot;
                self.$message.encode_raw(&mut rest);
                len - rest.len()
            }
        }

        impl Prebuilt<$kind> for Prost {
            fn build(&mut self, values: &$values) {
                $fill(&mut self.$message, values);
            }

            fn encode_built(&mut self) -> &[u8] {
                self.out.clear();
                self.$message.encode_raw(&mut self.out);
                &self.out
            }
        }
    };
}

encode!(Flat, values::Flat, every, flat);
encode!(Nested, values::Flat, every, nested);
encode!(Packet, values::Packet, trace, packet);

#[inline(always)]
fn flat(message: &mut EveryField, values: &values::Flat) {
    let values = black_box(values);
    message.field_int32 = Some(values.int32);
    message.field_uint32 = Some(values.uint32);
    message.field_int64 = Some(values.int64);
    message.field_uint64 = Some(values.uint64);
    set(&mut message.field_string, values.string);
}

#[inline(always)]
fn nested(root: &mut EveryField, values: &values::Flat) {
    let mut message = root;
    flat(message, values);
    for _ in 1..LEVELS {
        message.field_nested.resize_with(1, EveryField::default);
        message = &mut message.field_nested[0];
        flat(message, values);
    }
}

#[inline(always)]
fn packet(trace: &mut Trace, values: &values::Packet) {
    let values = black_box(values);
    trace.packet.resize_with(1, TracePacket::default);
    let packet = &mut trace.packet[0];
    packet.timestamp = Some(values.timestamp_ns);
    packet.trusted_packet_sequence_id = Some(values.sequence);
    packet.sequence_flags = Some(values.flags);
    let event = packet.track_event.get_or_insert_with(TrackEvent::default);
    event.category_iids.clear();
    event.category_iids.push(values.category);
    event.debug_annotations.resize_with(2, DebugAnnotation::default);
    let [number, text] = &mut event.debug_annotations[..] else { unreachable!("two annotations") };
    number.name_iid = Some(1);
    number.uint_value = Some(values.number);
    text.name_iid = Some(2);
    set(&mut text.string_value, values.text);
    event.r#type = Some(track_event::Type::SliceBegin.into());
    event.name_iid = Some(values.name);
    event.track_uuid = Some(values.track);
}

/// Into the memory of the string that is there.
#[inline(always)]
fn set(field: &mut Option<String>, value: &str) {
    let string = field.get_or_insert_default();
    string.clear();
    string.push_str(value);
}
