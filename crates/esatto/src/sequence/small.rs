//! Events that are written with plain stores: the numbers of fields are part of the constants here.

use std::slice::Iter;

use esatto_schema::{debug_annotation, trace_packet, track_event};
use esatto_shm::SmallPacket;

use crate::arg::Arg;
use crate::name::Name;
use crate::value::CounterValue;

/// Room that an event without arguments may take, so that it is not tried in vain.
pub(super) const MIN: usize = 32;

/// Room in which every event fits that can be written this way.
pub(super) const MAX: usize = 160;

/// `sequence_flags`: the state of the sequence is needed; and the tag of the event.
pub(super) const HEAD: u64 = 0x5a_0268;
pub(super) const HEAD_LEN: usize = 3;

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

/// Encoded tags of one and of two bytes.
const fn tag(field: u32, wire_type: u32) -> u64 {
    assert!(field < 16);
    (field << 3 | wire_type) as u64
}

const fn long_tag(field: u32, wire_type: u32) -> u64 {
    assert!(field >= 16 && field < 2048);
    let tag = field << 3 | wire_type;
    (tag & 0x7f | 0x80 | (tag >> 7) << 8) as u64
}

const TIMESTAMP: u64 = tag(trace_packet::field::TIMESTAMP, VARINT);
const TRACK_UUID: u64 = tag(track_event::field::TRACK_UUID, VARINT);
const NAME: u64 = long_tag(track_event::field::NAME, BYTES);
const COUNTER_VALUE: u64 = long_tag(track_event::field::COUNTER_VALUE, VARINT);
const DOUBLE_COUNTER_VALUE: u64 = long_tag(track_event::field::DOUBLE_COUNTER_VALUE, FIXED64);
const FLOW: u64 = long_tag(track_event::field::FLOW_IDS, FIXED64);
const END_FLOW: u64 = long_tag(track_event::field::TERMINATING_FLOW_IDS, FIXED64);
const ANNOTATION: u64 = tag(track_event::field::DEBUG_ANNOTATIONS, BYTES);
const NAME_IID: u64 = tag(debug_annotation::field::NAME_IID, VARINT);

const _: () = assert!(
    HEAD == tag(trace_packet::field::SEQUENCE_FLAGS, VARINT)
        | (super::FLAG_NEEDS_STATE as u64) << 8
        | tag(trace_packet::field::TRACK_EVENT, BYTES) << 16
);

/// The time since the last event of the sequence.
#[inline(always)]
pub(super) fn timestamp(packet: &mut SmallPacket<'_>, delta: u64) {
    if delta < 1 << 7 {
        packet.word(TIMESTAMP | delta << 8, 2);
    } else if delta < 1 << 14 {
        packet.word(TIMESTAMP | (delta & 0x7f | 0x80) << 8 | (delta >> 7) << 16, 3);
    } else {
        packet.word(TIMESTAMP, 1);
        packet.varint(delta);
    }
}

/// All arguments of an event. `false`: one of them needs more than stores.
#[inline]
pub(super) fn arguments(
    packet: &mut SmallPacket<'_>,
    names: &'static [Name],
    args: &[Arg<'_>],
    is_described: &mut impl FnMut(u64) -> bool,
) -> bool {
    let mut names = names.iter();
    for arg in args {
        match arg {
            Arg::U64(v) => number(packet, &mut names, debug_annotation::field::UINT_VALUE, *v),
            Arg::I64(v) => number(packet, &mut names, debug_annotation::field::INT_VALUE, *v as u64),
            Arg::Bool(v) => number(packet, &mut names, debug_annotation::field::BOOL_VALUE, u64::from(*v)),
            Arg::Pointer(v) => number(packet, &mut names, debug_annotation::field::POINTER_VALUE, *v),
            Arg::F64(v) => annotation(packet, &mut names, debug_annotation::field::DOUBLE_VALUE, FIXED64, |packet| {
                packet.word(v.to_bits(), 8);
            }),
            Arg::Str(v) => annotation(packet, &mut names, debug_annotation::field::STRING_VALUE, BYTES, |packet| {
                text(packet, v);
            }),
            Arg::Track(track) => {
                let uuid = track.uuid();
                if !is_described(uuid) {
                    return false;
                }
                packet.word(TRACK_UUID, 1);
                packet.varint(uuid);
            }
            Arg::Name(name) => {
                packet.word(NAME, 2);
                text(packet, name);
            }
            Arg::Counter(CounterValue::Int(v)) => {
                packet.word(COUNTER_VALUE, 2);
                packet.varint(*v as u64);
            }
            Arg::Counter(CounterValue::Double(v)) => {
                packet.word(DOUBLE_COUNTER_VALUE, 2);
                packet.word(v.to_bits(), 8);
            }
            Arg::Flow(id) => {
                packet.word(FLOW, 2);
                packet.word(*id, 8);
            }
            Arg::EndFlow(id) => {
                packet.word(END_FLOW, 2);
                packet.word(*id, 8);
            }
            Arg::Value(_) | Arg::With(_) | Arg::Extra(_) | Arg::At(_) | Arg::Category(_) => return false,
        }
    }
    true
}

#[inline(always)]
fn number(packet: &mut SmallPacket<'_>, names: &mut Iter<'static, Name>, field: u32, v: u64) {
    annotation(packet, names, field, VARINT, |packet| packet.varint(v));
}

/// An annotation with the next name; none if there is no name left.
#[inline(always)]
fn annotation(
    packet: &mut SmallPacket<'_>,
    names: &mut Iter<'static, Name>,
    field: u32,
    wire_type: u32,
    value: impl FnOnce(&mut SmallPacket<'_>),
) {
    let Some(name) = names.next() else { return };
    packet.word(ANNOTATION, 1);
    let open = packet.open();
    let iid = u64::from(name.iid());
    if iid < 0x80 {
        packet.word(NAME_IID | iid << 8 | tag(field, wire_type) << 16, 3);
    } else {
        packet.word(NAME_IID, 1);
        packet.varint(iid);
        packet.word(tag(field, wire_type), 1);
    }
    value(packet);
    packet.close(open);
}

/// A length and as many bytes. Whatever has a length of two bytes does not fit.
#[inline(always)]
fn text(packet: &mut SmallPacket<'_>, text: &str) {
    packet.varint(text.len() as u64);
    packet.bytes(text.as_bytes());
}
