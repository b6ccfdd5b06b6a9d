//! Values in a packet that are told later: the four bytes are reserved, and filled in when they are known
//! (`docs/spec/protozero.md` §3, `docs/spec/shared-memory.md` §11).
//!
//! ```text
//!  reserve_deferred ──► in place ─── chunk returned ──► patch ─── fill_deferred ──► sent, in order
//!                      └ fill_deferred: written into the chunk
//! ```
//!
//! This is about the list of those that are open; where they stand is the business of `writer/chunk`.

use esatto_protozero::wire;

use crate::{
    abi::PATCH_SIZE,
    sync::{AtomicUsize, Ordering},
};

/// Open reservations of one writer. A packet that asks for more is dropped, and the older ones are given up.
pub(crate) const MAX_OPEN_DEFERRED: usize = 1024;

/// A reservation of four bytes, to be filled by [`TraceWriter::fill_deferred`](crate::TraceWriter::fill_deferred).
///
/// It names the place, and keeps nothing alive. If it is never used the service waits for the packet, and for those behind it,
/// until the writer is dropped or gives it up.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the service waits for the value"]
pub struct Deferred {
    /// Of whom.
    writer: usize,
    number: u64,
}

/// Four bytes, the first of them not zero: a patch that begins with zero counts as not told yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeferredValue([u8; PATCH_SIZE]);

impl DeferredValue {
    /// The length of an empty message.
    pub const EMPTY: Self = Self(wire::redundant_varint4(0));

    /// These bytes; `None` if the first one is zero.
    #[must_use]
    pub const fn new(bytes: [u8; PATCH_SIZE]) -> Option<Self> {
        if bytes[0] != 0 { Some(Self(bytes)) } else { None }
    }

    /// A length, as a varint of four bytes; `None` above 2^28 − 1.
    #[must_use]
    pub const fn length(len: usize) -> Option<Self> {
        if len <= wire::MAX_MESSAGE_LENGTH { Some(Self(wire::redundant_varint4(len as u32))) } else { None }
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; PATCH_SIZE] {
        self.0
    }
}

/// Where the value of an open reservation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Into the writer's chunk, at this offset in the payload.
    Chunk(u16),
    /// Into this record of the patch list.
    Patch(u32),
}

/// The open reservations of one writer.
#[derive(Debug)]
pub(crate) struct DeferredList {
    writer: usize,
    next: u64,
    /// Those from this number on were made in the packet being written, if any was.
    packet: u64,
    open: Vec<(u64, Place)>,
    /// How many of `open` are in the chunk.
    in_place: usize,
}

impl DeferredList {
    /// None. Does not allocate.
    pub(crate) fn new() -> Self {
        static WRITERS: AtomicUsize = AtomicUsize::new(0);
        let writer = WRITERS.fetch_add(1, Ordering::Relaxed);
        Self { writer, next: 0, packet: 0, open: Vec::new(), in_place: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.open.len() >= MAX_OPEN_DEFERRED
    }

    pub(crate) fn any_in_place(&self) -> bool {
        self.in_place != 0
    }

    /// The next reservation is the first of its packet.
    pub(crate) fn begin_packet(&mut self) {
        self.packet = self.next;
    }

    /// Adds one at this offset in the chunk.
    pub(crate) fn push(&mut self, offset: u16) -> Deferred {
        let number = self.next;
        self.next += 1;
        self.open.push((number, Place::Chunk(offset)));
        self.in_place += 1;
        Deferred { writer: self.writer, number }
    }

    /// Removes one that is told now, and says where it stands; `None` if it is not open, or another writer's.
    pub(crate) fn take(&mut self, deferred: &Deferred) -> Option<Place> {
        if deferred.writer != self.writer {
            return None;
        }
        let index = self.open.iter().rposition(|(number, _)| *number == deferred.number)?;
        let (_, place) = self.open.remove(index);
        self.in_place -= usize::from(matches!(place, Place::Chunk(_)));
        Some(place)
    }

    /// The chunk is given away: makes patches of those in it, by ascending offset.
    pub(crate) fn part(&mut self, mut patch: impl FnMut(u16) -> u32) {
        sort_by_place(&mut self.open);
        for (_, place) in &mut self.open {
            if let Place::Chunk(offset) = *place {
                *place = Place::Patch(patch(offset));
            }
        }
        self.in_place = 0;
    }

    /// Removes those of the packet being written, and says where each stood.
    pub(crate) fn abandon_packet(&mut self, abandoned: impl FnMut(Place)) {
        let packet = self.packet;
        self.remove(|number, _| number >= packet, abandoned);
    }

    /// Removes those that became patches, and says where each stood.
    pub(crate) fn give_up_patches(&mut self, given_up: impl FnMut(Place)) {
        self.remove(|_, place| matches!(place, Place::Patch(_)), given_up);
    }

    /// Removes all, and says where each stood.
    pub(crate) fn give_up(&mut self, given_up: impl FnMut(Place)) {
        self.remove(|_, _| true, given_up);
    }

    fn remove(&mut self, which: impl Fn(u64, Place) -> bool, mut removed: impl FnMut(Place)) {
        self.open.retain(|(number, place)| {
            let remove = which(*number, *place);
            if remove {
                removed(*place);
            }
            !remove
        });
        self.in_place = self.open.iter().filter(|(_, place)| matches!(place, Place::Chunk(_))).count();
    }
}

/// Those in patches first, then those in the chunk, by their offsets. There are few, and mostly they are in order.
fn sort_by_place(open: &mut [(u64, Place)]) {
    let rank = |place: &Place| match place {
        Place::Patch(_) => (0, 0),
        Place::Chunk(offset) => (1, *offset),
    };
    for end in 1..open.len() {
        for at in (0..end).rev() {
            if rank(&open[at].1) <= rank(&open[at + 1].1) {
                break;
            }
            open.swap(at, at + 1);
        }
    }
}
