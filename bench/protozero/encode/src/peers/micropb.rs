//! micropb: with containers of the standard library.

use std::hint::black_box;

use micropb::{MessageEncode, PbEncoder};

use crate::peers::{Peer, Wire};
use crate::values::{self, LEVELS};

/// Generated from `proto/`.
#[allow(warnings, clippy::all)]
pub(crate) mod proto {
    include!(concat!(env!("OUT_DIR"), "/micropb.rs"));
}

use proto::bench_::{DebugAnnotation, EveryField, Trace, TracePacket, TrackEvent_};

#[derive(Debug)]
pub(crate) struct Micropb;

impl<M: MessageEncode> Wire<Micropb> for M {
    #[inline(always)]
    fn to_vec(&self, out: &mut Vec<u8>, (): &mut ()) {
        self.encode(&mut PbEncoder::new(out)).expect("a vector grows");
    }

    #[inline(always)]
    fn to_slot(&self, slot: &mut [u8], (): &mut ()) -> usize {
        let len = slot.len();
        let mut rest = slot;
        self.encode(&mut PbEncoder::new(&mut rest)).expect("the slot is long enough");
        len - rest.len()
    }
}

impl Peer for Micropb {
    const NAME: &'static str = "micropb";
    type EveryField = EveryField;
    type Trace = Trace;
    type Keep = ();

    #[inline(always)]
    fn flat(message: &mut EveryField, values: &values::Flat) {
        let values = black_box(values);
        message.set_field_int32(values.int32);
        message.set_field_uint32(values.uint32);
        message.set_field_int64(values.int64);
        message.set_field_uint64(values.uint64);
        message._has.set_field_string();
        set(&mut message.field_string, values.string);
    }

    #[inline(always)]
    fn nested(root: &mut EveryField, values: &values::Flat) {
        let mut message = root;
        Self::flat(message, values);
        for _ in 1..LEVELS {
            message.field_nested.resize_with(1, EveryField::default);
            message = &mut message.field_nested[0];
            Self::flat(message, values);
        }
    }

    #[inline(always)]
    fn packet(trace: &mut Trace, values: &values::Packet) {
        let values = black_box(values);
        trace.packet.resize_with(1, TracePacket::default);
        let packet = &mut trace.packet[0];
        packet.set_timestamp(values.timestamp_ns);
        packet.set_trusted_packet_sequence_id(values.sequence);
        packet.set_sequence_flags(values.flags);
        packet._has.set_track_event();
        let event = &mut packet.track_event;
        event.category_iids.clear();
        event.category_iids.push(values.category);
        event.debug_annotations.resize_with(2, DebugAnnotation::default);
        let [number, text] = &mut event.debug_annotations[..] else { unreachable!("two annotations") };
        number.set_name_iid(1);
        number.set_uint_value(values.number);
        text.set_name_iid(2);
        text._has.set_string_value();
        set(&mut text.string_value, values.text);
        event.set_type(TrackEvent_::Type::SliceBegin);
        event.set_name_iid(values.name);
        event.set_track_uuid(values.track);
    }
}

/// Into the memory of the string that is there.
#[inline(always)]
fn set(string: &mut String, value: &str) {
    string.clear();
    string.push_str(value);
}
