//! The track of an event, as the program describes it (`docs/spec/c-abi.md` §11, step 5).

use esatto::Track;
use esatto::raw::{self, Sequence};
use esatto_protozero::Message;
use esatto_schema::{trace_packet, track_descriptor};

use super::proto_fields::write_fields;
use crate::abi::numbers::{MAX_CHILD_ORDERING, MERGE_BY_KEY};
use crate::abi::{self, NestedTrack, NestedTrackVariant, RegisteredTrack};
use crate::ffi::{Ref, Str};

/// Deeper nesting of tracks is left out, because readers refuse it.
const MAX_DEPTH: usize = 100;

/// The track that an event is on.
pub(super) enum Tracks<'a> {
    /// The track of its thread.
    None,
    Registered(&'a abi::ExtraRegisteredTrack<'a>),
    Named(&'a abi::ExtraNamedTrack<'a>),
    Proto(&'a abi::ExtraProtoTrack<'a>),
    Nested(&'a abi::ExtraNestedTracks<'a>),
}

impl Tracks<'_> {
    /// Returns the track that the event has to name; `None` for the track of its thread.
    pub(super) fn track(&self) -> Option<Track> {
        (!matches!(self, Tracks::None)).then(|| Track::global(self.uuid()))
    }

    fn uuid(&self) -> u64 {
        match self {
            Tracks::None => 0,
            Tracks::Registered(extra) => extra.track.get().map_or(0, |track| track.uuid),
            Tracks::Named(track) => named_uuid(track.parent_uuid, track.name, track.id),
            Tracks::Proto(track) => track.uuid,
            Tracks::Nested(extra) => extra.tracks.iter().take(MAX_DEPTH).fold(0, nested_uuid),
        }
    }

    /// Describes the track and its parents, unless the sequence knows them.
    #[cold]
    #[inline(never)]
    pub(super) fn describe(&self, sequence: &mut Sequence) {
        match self {
            Tracks::None => {}
            Tracks::Registered(extra) => describe_registered(sequence, extra.track),
            Tracks::Named(track) => {
                let uuid = named_uuid(track.parent_uuid, track.name, track.id);
                describe(sequence, uuid, |out| {
                    write_named(out, track.parent_uuid, track.name, track.is_name_static == 1);
                });
            }
            Tracks::Proto(track) => describe(sequence, track.uuid, |out| {
                write_fields(out, track.fields, &mut core::iter::empty());
            }),
            Tracks::Nested(extra) => {
                let mut parent = 0;
                for track in extra.tracks.iter().take(MAX_DEPTH) {
                    let uuid = nested_uuid(parent, track);
                    describe_nested(sequence, uuid, parent, track);
                    parent = uuid;
                }
            }
        }
    }
}

fn named_uuid(parent: u64, name: Str<'_>, id: u64) -> u64 {
    parent ^ raw::fnv(name.bytes().unwrap_or_default()) ^ id
}

fn nested_uuid(parent: u64, track: Ref<'_, NestedTrack>) -> u64 {
    match track.variant() {
        NestedTrackVariant::Named(track) => named_uuid(parent, track.name, track.id),
        NestedTrackVariant::Proto(track) => parent ^ track.id,
        NestedTrackVariant::Registered(nested) => nested.track.get().map_or(parent, |track| track.uuid),
        NestedTrackVariant::Thread => raw::process_uuid() ^ u64::from(raw::tid()),
        NestedTrackVariant::Process => raw::process_uuid(),
        NestedTrackVariant::Unknown => parent,
    }
}

/// Describes a track, unless the sequence knows it.
fn describe(sequence: &mut Sequence, uuid: u64, write: impl FnOnce(&mut Message<'_>)) {
    if !sequence.track_seen(uuid) {
        let mut packet = sequence.packets().new_packet();
        let mut message = packet.message();
        let mut out = message.begin(trace_packet::field::TRACK_DESCRIPTOR);
        out.varint(track_descriptor::field::UUID, uuid);
        write(&mut out);
    }
}

fn describe_registered(sequence: &mut Sequence, track: Ref<'_, RegisteredTrack<'_>>) {
    let Some(track) = track.get() else { return };
    if !sequence.track_seen(track.uuid) {
        let descriptor = track.descriptor.get();
        if descriptor.is_empty() {
            return;
        }
        let mut packet = sequence.packets().new_packet();
        packet.message().bytes(trace_packet::field::TRACK_DESCRIPTOR, descriptor);
    }
}

fn write_named(out: &mut Message<'_>, parent: u64, name: Str<'_>, is_static: bool) {
    use track_descriptor::field;
    if parent != 0 {
        out.varint(field::PARENT_UUID, parent);
    }
    if let Some(name) = name.bytes() {
        out.bytes(if is_static { field::STATIC_NAME } else { field::NAME }, name);
    }
}

fn describe_nested(sequence: &mut Sequence, uuid: u64, parent: u64, track: Ref<'_, NestedTrack>) {
    use track_descriptor::field;
    match track.variant() {
        NestedTrackVariant::Named(track) => describe(sequence, uuid, |out| {
            write_named(out, parent, track.name, track.is_name_static == 1);
            if track.sibling_order_rank != 0 {
                out.int(field::SIBLING_ORDER_RANK, track.sibling_order_rank.into());
            }
            if (1..=MAX_CHILD_ORDERING).contains(&track.child_ordering) {
                out.varint(field::CHILD_ORDERING, track.child_ordering.into());
            }
            if (1..=MERGE_BY_KEY).contains(&track.sibling_merge_behavior) {
                out.varint(field::SIBLING_MERGE_BEHAVIOR, track.sibling_merge_behavior.into());
            }
            if track.sibling_merge_behavior == MERGE_BY_KEY {
                match track.sibling_merge_key_str.bytes() {
                    Some(key) => out.bytes(field::SIBLING_MERGE_KEY, key),
                    None => out.varint(field::SIBLING_MERGE_KEY_INT, track.sibling_merge_key_int),
                }
            }
        }),
        NestedTrackVariant::Proto(track) => describe(sequence, uuid, |out| {
            out.varint(field::PARENT_UUID, parent);
            write_fields(out, track.fields, &mut core::iter::empty());
        }),
        NestedTrackVariant::Registered(nested) => describe_registered(sequence, nested.track),
        // Every sequence begins with its thread and its process.
        _ => {}
    }
}
