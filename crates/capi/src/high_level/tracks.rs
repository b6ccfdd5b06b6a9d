//! The track of an event, described by the program (`docs/spec/c-abi.md` §11, step 5).

use esatto::Track;
use esatto::raw::{self, Sequence};
use esatto_protozero::Message;
use esatto_schema::{trace_packet, track_descriptor};

use super::fields::write_fields;
use crate::abi::{self, MAX_CHILD_ORDERING, MERGE_BY_KEY, nested};
use crate::text;

/// Deeper nesting of tracks is left out: readers refuse it.
const MAX_DEPTH: usize = 100;
/// As of fields of events.
const MAX_FIELD_DEPTH: u32 = 100;

/// Where an event belongs.
pub(super) enum Tracks<'a> {
    /// To its thread.
    None,
    Registered(&'a abi::ExtraRegisteredTrack),
    Named(&'a abi::ExtraNamedTrack),
    Proto(&'a abi::ExtraProtoTrack),
    Nested(&'a abi::ExtraNestedTracks),
}

impl Tracks<'_> {
    /// The track of the event, to be named by it; `None`: that of its thread.
    ///
    /// # Safety
    ///
    /// The tracks are as the program handed them over, and valid.
    pub(super) unsafe fn track(&self) -> Option<Track> {
        // SAFETY: the caller's promise.
        (!matches!(self, Tracks::None)).then(|| Track::global(unsafe { self.uuid() }))
    }

    /// # Safety
    ///
    /// As [`track`](Self::track).
    unsafe fn uuid(&self) -> u64 {
        match self {
            Tracks::None => 0,
            // SAFETY: the caller's promise.
            Tracks::Registered(extra) => unsafe { extra.track.as_ref() }.map_or(0, |track| track.uuid),
            // SAFETY: as above.
            Tracks::Named(track) => unsafe { named_uuid(track.parent_uuid, track.name, track.id) },
            Tracks::Proto(track) => track.uuid,
            Tracks::Nested(extra) => {
                let mut uuid = 0;
                // SAFETY: as above.
                for track in unsafe { text::pointers(extra.tracks) }.take(MAX_DEPTH) {
                    // SAFETY: as above.
                    uuid = unsafe { nested_uuid(uuid, track) };
                }
                uuid
            }
        }
    }

    /// Describes the track, and those it is in, as far as the sequence does not know them.
    ///
    /// # Safety
    ///
    /// As [`track`](Self::track).
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn describe(&self, sequence: &mut Sequence) {
        match self {
            Tracks::None => {}
            Tracks::Registered(extra) => {
                // SAFETY: the caller's promise.
                unsafe { describe_registered(sequence, extra.track) };
            }
            Tracks::Named(track) => {
                // SAFETY: the caller's promise.
                let uuid = unsafe { named_uuid(track.parent_uuid, track.name, track.id) };
                describe(sequence, uuid, |out| {
                    // SAFETY: as above.
                    unsafe { write_named(out, track.parent_uuid, track.name, track.is_name_static == 1) };
                });
            }
            Tracks::Proto(track) => describe(sequence, track.uuid, |out| {
                // SAFETY: as above.
                unsafe { write_fields(out, track.fields, MAX_FIELD_DEPTH, &mut core::iter::empty()) };
            }),
            Tracks::Nested(extra) => {
                let mut parent = 0;
                // SAFETY: as above.
                for track in unsafe { text::pointers(extra.tracks) }.take(MAX_DEPTH) {
                    // SAFETY: as above.
                    let uuid = unsafe { nested_uuid(parent, track) };
                    // SAFETY: as above.
                    unsafe { describe_nested(sequence, uuid, parent, track) };
                    parent = uuid;
                }
            }
        }
    }
}

/// # Safety
///
/// The name is null or a string that ends with NUL.
unsafe fn named_uuid(parent: u64, name: *const core::ffi::c_char, id: u64) -> u64 {
    // SAFETY: the caller's promise.
    parent ^ raw::fnv(unsafe { text::bytes(name) }.unwrap_or_default()) ^ id
}

/// # Safety
///
/// The track begins one of the struct that its type says.
unsafe fn nested_uuid(parent: u64, track: *const abi::NestedTrack) -> u64 {
    // SAFETY: the caller's promise.
    match unsafe { (*track).kind } {
        nested::NAMED => {
            // SAFETY: the type says that it is one.
            let track = unsafe { &*track.cast::<abi::NestedTrackNamed>() };
            // SAFETY: the caller's promise.
            unsafe { named_uuid(parent, track.name, track.id) }
        }
        // SAFETY: the type says that it is one.
        nested::PROTO => parent ^ unsafe { (*track.cast::<abi::NestedTrackProto>()).id },
        nested::REGISTERED => {
            // SAFETY: the type says that it is one.
            let track = unsafe { (*track.cast::<abi::NestedTrackRegistered>()).track };
            // SAFETY: the caller's promise.
            unsafe { track.as_ref() }.map_or(parent, |track| track.uuid)
        }
        nested::THREAD => raw::process_uuid() ^ u64::from(raw::tid()),
        nested::PROCESS => raw::process_uuid(),
        _ => parent,
    }
}

/// Describes a track that the sequence does not know.
fn describe(sequence: &mut Sequence, uuid: u64, write: impl FnOnce(&mut Message<'_>)) {
    if !sequence.track_seen(uuid) {
        let mut packet = sequence.packets().new_packet();
        let mut message = packet.message();
        let mut out = message.begin(trace_packet::field::TRACK_DESCRIPTOR);
        out.varint(track_descriptor::field::UUID, uuid);
        write(&mut out);
    }
}

/// # Safety
///
/// Null, or valid, with as many bytes as it says.
unsafe fn describe_registered(sequence: &mut Sequence, track: *const abi::RegisteredTrack) {
    // SAFETY: the caller's promise.
    let Some(track) = (unsafe { track.as_ref() }) else { return };
    if !sequence.track_seen(track.uuid) {
        // SAFETY: as above.
        let descriptor = unsafe { text::block(track.descriptor, track.descriptor_size) };
        if descriptor.is_empty() {
            return;
        }
        let mut packet = sequence.packets().new_packet();
        packet.message().bytes(trace_packet::field::TRACK_DESCRIPTOR, descriptor);
    }
}

/// # Safety
///
/// The name is null or a string that ends with NUL.
unsafe fn write_named(out: &mut Message<'_>, parent: u64, name: *const core::ffi::c_char, is_static: bool) {
    use track_descriptor::field;
    if parent != 0 {
        out.varint(field::PARENT_UUID, parent);
    }
    // SAFETY: the caller's promise.
    if let Some(name) = unsafe { text::bytes(name) } {
        out.bytes(if is_static { field::STATIC_NAME } else { field::NAME }, name);
    }
}

/// # Safety
///
/// The track begins one of the struct that its type says.
unsafe fn describe_nested(sequence: &mut Sequence, uuid: u64, parent: u64, track: *const abi::NestedTrack) {
    use track_descriptor::field;
    // SAFETY: the caller's promise.
    match unsafe { (*track).kind } {
        nested::NAMED => {
            // SAFETY: the type says that it is one.
            let track = unsafe { &*track.cast::<abi::NestedTrackNamed>() };
            describe(sequence, uuid, |out| {
                // SAFETY: the caller's promise.
                unsafe { write_named(out, parent, track.name, track.is_name_static == 1) };
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
                    // SAFETY: the caller's promise.
                    match unsafe { text::bytes(track.sibling_merge_key_str) } {
                        Some(key) => out.bytes(field::SIBLING_MERGE_KEY, key),
                        None => out.varint(field::SIBLING_MERGE_KEY_INT, track.sibling_merge_key_int),
                    }
                }
            });
        }
        nested::PROTO => {
            // SAFETY: the type says that it is one.
            let track = unsafe { &*track.cast::<abi::NestedTrackProto>() };
            describe(sequence, uuid, |out| {
                out.varint(field::PARENT_UUID, parent);
                // SAFETY: the caller's promise.
                unsafe { write_fields(out, track.fields, MAX_FIELD_DEPTH, &mut core::iter::empty()) };
            });
        }
        nested::REGISTERED => {
            // SAFETY: the type says that it is one.
            let track = unsafe { (*track.cast::<abi::NestedTrackRegistered>()).track };
            // SAFETY: the caller's promise.
            unsafe { describe_registered(sequence, track) };
        }
        // Every sequence begins with its thread and its process.
        _ => {}
    }
}
