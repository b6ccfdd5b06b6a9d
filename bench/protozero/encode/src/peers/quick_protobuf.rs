//! quick-protobuf: strings are borrowed, and the message is written without its length in front.

use std::borrow::Cow;
use std::hint::black_box;

use quick_protobuf::{MessageWrite, Writer};

use crate::peers::{Peer, Wire};
use crate::values::{self, LEVELS};

/// Generated from `proto/`.
#[allow(warnings, clippy::all)]
pub(crate) mod proto {
    pub(crate) mod every_field {
        include!(concat!(env!("OUT_DIR"), "/quick_every_field.rs"));
    }
    pub(crate) mod packet {
        include!(concat!(env!("OUT_DIR"), "/quick_packet.rs"));
    }
}

use proto::every_field::EveryField;
use proto::packet::{DebugAnnotation, Trace, TracePacket, TrackEvent, mod_TrackEvent};

#[derive(Debug)]
pub(crate) struct QuickProtobuf;

impl<M: MessageWrite> Wire<QuickProtobuf> for M {
    #[inline(always)]
    fn to_vec(&self, out: &mut Vec<u8>, (): &mut ()) {
        self.write_message(&mut Writer::new(out)).expect("a vector grows");
    }

    #[inline(always)]
    fn to_slot(&self, slot: &mut [u8], (): &mut ()) -> usize {
        let len = self.get_size();
        self.write_message(&mut Writer::new(quick_protobuf::BytesWriter::new(slot))).expect("the slot is long enough");
        len
    }
}

impl Peer for QuickProtobuf {
    const NAME: &'static str = "quick-protobuf";
    type EveryField = EveryField<'static>;
    type Trace = Trace<'static>;
    type Keep = ();

    #[inline(always)]
    fn flat(message: &mut EveryField<'static>, values: &values::Flat) {
        let values = black_box(values);
        message.field_int32 = Some(values.int32);
        message.field_uint32 = Some(values.uint32);
        message.field_int64 = Some(values.int64);
        message.field_uint64 = Some(values.uint64);
        message.field_string = Some(Cow::Borrowed(values.string));
    }

    #[inline(always)]
    fn nested(root: &mut EveryField<'static>, values: &values::Flat) {
        let mut message = root;
        Self::flat(message, values);
        for _ in 1..LEVELS {
            message.field_nested.resize_with(1, EveryField::default);
            message = &mut message.field_nested[0];
            Self::flat(message, values);
        }
    }

    #[inline(always)]
    fn packet(trace: &mut Trace<'static>, values: &values::Packet) {
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
        text.string_value = Some(Cow::Borrowed(values.text));
        event.type_pb = Some(mod_TrackEvent::Type::TYPE_SLICE_BEGIN);
        event.name_iid = Some(values.name);
        event.track_uuid = Some(values.track);
    }
}
