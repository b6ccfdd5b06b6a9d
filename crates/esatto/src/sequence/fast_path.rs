//! The fast path: events that are written with plain stores. The constants here contain the encoded
//! field numbers.

use esatto_protozero::cursor::{Nested, varint_word};
use esatto_schema::{debug_annotation, trace_packet, track_event};
use esatto_shm::SmallPacket;

use crate::event::{Arg, CounterValue};
use crate::name::Name;

/// The space that an event without arguments may need. With less, the fast path is not tried.
pub(super) const MIN: usize = 32;

/// The space in which every event of the fast path fits.
pub(super) const MAX: usize = 160;

/// `sequence_flags` (the event needs the state of the sequence), the tag of the event, and its
/// length.
const HEAD: u64 = 0x5a_0268;
const HEAD_LEN: usize = 4;

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

/// The shortest time between two events that takes more than two bytes.
pub(super) const LONG_NS: u64 = 1 << 14;

/// Returns the begin of an event as the first bytes of a word, at most 7: the time since the last
/// event of the sequence, the flags, and the length of the rest. `None`: so much time has passed
/// that there are more bytes.
#[inline(always)]
pub(super) fn head(delta: u64, len: usize) -> Option<(u64, usize)> {
    let end = HEAD | (len as u64 & 0x7f) << (8 * (HEAD_LEN - 1));
    if delta < 1 << 7 {
        Some((TIMESTAMP | delta << 8 | end << 16, 2 + HEAD_LEN))
    } else if delta < LONG_NS {
        Some((TIMESTAMP | two_bytes(delta) << 8 | end << 24, 3 + HEAD_LEN))
    } else {
        None
    }
}

/// As [`head`], after any time, for an event whose length is not known yet.
#[inline(always)]
pub(super) fn begin(packet: &mut SmallPacket<'_>, delta: u64) -> Nested {
    if let Some((word, len)) = head(delta, 0) {
        packet.open_in_word(word, len, len - 1)
    } else {
        packet.word(TIMESTAMP, 1);
        packet.varint(delta);
        packet.open_in_word(HEAD, HEAD_LEN, HEAD_LEN - 1)
    }
}

/// Returns the varint of a number below 2^14, in two bytes.
#[inline(always)]
const fn two_bytes(v: u64) -> u64 {
    v & 0x7f | 0x80 | (v >> 7) << 8
}

/// Writes all arguments of an event. Returns false if one of them needs more than stores.
///
/// Inlined into its only caller, so that the position of the packet is in a register.
#[inline(always)]
pub(super) fn arguments(
    packet: &mut SmallPacket<'_>,
    names: &'static [Name],
    args: &[Arg<'_>],
    mut is_described: impl FnMut(u64) -> bool,
) -> bool {
    let mut names = names.iter();
    for arg in args {
        let (field, v) = match arg {
            Arg::U64(v) => (debug_annotation::field::UINT_VALUE, *v),
            Arg::I64(v) => (debug_annotation::field::INT_VALUE, *v as u64),
            Arg::Bool(v) => (debug_annotation::field::BOOL_VALUE, u64::from(*v)),
            Arg::Pointer(v) => (debug_annotation::field::POINTER_VALUE, *v),
            Arg::F64(v) => {
                let Some(name) = names.next() else { continue };
                if !annotation(packet, name, tag(debug_annotation::field::DOUBLE_VALUE, FIXED64), 1, 8) {
                    return false;
                }
                packet.word(v.to_bits(), 8);
                continue;
            }
            Arg::Str(v) => {
                let Some(name) = names.next() else { continue };
                let len = text_len(v);
                let begin = tag(debug_annotation::field::STRING_VALUE, BYTES) | len << 8;
                if !annotation(packet, name, begin, 2, len) {
                    return false;
                }
                packet.bytes(v.as_bytes());
                continue;
            }
            Arg::Track(track) => {
                let uuid = track.uuid();
                if !is_described(uuid) {
                    return false;
                }
                packet.word(TRACK_UUID, 1);
                packet.varint(uuid);
                continue;
            }
            Arg::Name(name) => {
                packet.word(NAME | text_len(name) << 16, 3);
                packet.bytes(name.as_bytes());
                continue;
            }
            Arg::Counter(CounterValue::Int(v)) => {
                packet.word(COUNTER_VALUE, 2);
                packet.varint(*v as u64);
                continue;
            }
            Arg::Counter(CounterValue::Double(v)) => {
                packet.word(DOUBLE_COUNTER_VALUE, 2);
                packet.word(v.to_bits(), 8);
                continue;
            }
            Arg::Flow(id) => {
                packet.word(FLOW, 2);
                packet.word(*id, 8);
                continue;
            }
            Arg::EndFlow(id) => {
                packet.word(END_FLOW, 2);
                packet.word(*id, 8);
                continue;
            }
            Arg::Value(_) | Arg::With(_) | Arg::Extra(_) | Arg::At(_) | Arg::Category(_) => return false,
        };
        let Some(name) = names.next() else { continue };
        // Below 16, like the fields of all values.
        let begin = u64::from(field << 3 | VARINT);
        if v < 0x80 {
            if !annotation(packet, name, begin | v << 8, 2, 0) {
                return false;
            }
        } else if let Some((word, len)) = varint_word(v) {
            if !annotation(packet, name, begin, 1, len as u64) {
                return false;
            }
            packet.word(word, len);
        } else {
            let len = if v >> 63 == 0 { 9 } else { 10 };
            if !annotation(packet, name, begin, 1, len) {
                return false;
            }
            packet.varint(v);
        }
    }
    true
}

/// Begins an annotation. Its value begins with the first `len` bytes, at most two, of `begin`, and
/// continues for `rest` bytes. Returns false if the name's number is so large that this does not
/// fit into a word.
#[inline(always)]
fn annotation(packet: &mut SmallPacket<'_>, name: &'static Name, begin: u64, len: usize, rest: u64) -> bool {
    // The first length is that of the annotation after that byte: of the name and the value.
    let mut put = |iid: u64, iid_len: usize| {
        let size = (1 + iid_len + len) as u64 + rest;
        let word = ANNOTATION | size << 8 | NAME_IID << 16 | iid << 24 | begin << (24 + 8 * iid_len);
        packet.word(word, 3 + iid_len + len);
    };
    let iid = u64::from(name.iid());
    if iid < 1 << 7 {
        put(iid, 1);
    } else if iid < 1 << 14 {
        put(two_bytes(iid), 2);
    } else if iid < 1 << 21 {
        put(iid & 0x7f | 0x80 | two_bytes(iid >> 7) << 8, 3);
    } else {
        return false;
    }
    true
}

/// Returns the length of a text, as the only byte in front of it. A longer text, whose length needs
/// more bytes, does not fit into the packet.
#[inline(always)]
fn text_len(text: &str) -> u64 {
    text.len() as u64 & 0x7f
}
