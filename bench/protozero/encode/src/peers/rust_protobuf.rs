//! rust-protobuf: sizes are computed and cached in the messages, which are then written without the
//! checks of `write_to`.

use std::hint::black_box;

use protobuf::{CodedOutputStream, Message};

use crate::peers::{Peer, Wire, set};
use crate::values::{self, LEVELS};

/// Generated from `proto/`.
#[allow(warnings, clippy::all)]
pub(crate) mod proto {
    include!(concat!(env!("OUT_DIR"), "/rust-protobuf/mod.rs"));
}

use proto::every_field::EveryField;
use proto::packet::{DebugAnnotation, Trace, TracePacket, track_event};

#[derive(Debug)]
pub(crate) struct RustProtobuf;

impl<M: Message> Wire<RustProtobuf> for M {
    #[inline(always)]
    fn to_vec(&self, out: &mut Vec<u8>, (): &mut ()) {
        let len = self.compute_size() as usize;
        // The stream writes into reserved capacity, and buffers otherwise.
        out.reserve(len);
        let mut stream = CodedOutputStream::vec(out);
        self.write_to_with_cached_sizes(&mut stream).expect("a vector grows");
        stream.flush().expect("a vector grows");
    }

    #[inline(always)]
    fn to_slot(&self, slot: &mut [u8], (): &mut ()) -> usize {
        let len = self.compute_size() as usize;
        let mut stream = CodedOutputStream::bytes(&mut slot[..len]);
        self.write_to_with_cached_sizes(&mut stream).expect("the slot is long enough");
        stream.flush().expect("the slot is long enough");
        len
    }
}

impl Peer for RustProtobuf {
    const NAME: &'static str = "rust-protobuf";
    type EveryField = EveryField;
    type Trace = Trace;
    type Keep = ();

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
        packet.timestamp = Some(values.timestamp_ns);
        packet.trusted_packet_sequence_id = Some(values.sequence);
        packet.sequence_flags = Some(values.flags);
        let event = packet.track_event.mut_or_insert_default();
        event.category_iids.clear();
        event.category_iids.push(values.category);
        event.debug_annotations.resize_with(2, DebugAnnotation::default);
        let [number, text] = &mut event.debug_annotations[..] else { unreachable!("two annotations") };
        number.name_iid = Some(1);
        number.uint_value = Some(values.number);
        text.name_iid = Some(2);
        set(&mut text.string_value, values.text);
        event.type_ = Some(track_event::Type::TYPE_SLICE_BEGIN.into());
        event.name_iid = Some(values.name);
        event.track_uuid = Some(values.track);
    }
}
