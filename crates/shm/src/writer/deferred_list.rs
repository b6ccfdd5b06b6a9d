//! [`Deferred`] values of packets: four bytes are reserved, and filled in when their value is known
//! (`docs/spec/protozero.md` §3, `docs/spec/shared-memory.md` §11).
//!
//! ```text
//!  reserve_deferred ──► in place ─── chunk returned ──► patch ─── fill_deferred ──► sent, in order
//!                      └ fill_deferred: written into the chunk
//! ```
//!
//! This module holds the list of open reservations. `writer/chunk` knows where they are in memory.

use esatto_protozero::wire;

use crate::{
    abi::PATCH_SIZE,
    sync::{AtomicUsize, Ordering},
};

/// Largest number of open reservations of one writer. A packet that asks for more is dropped, and
/// the open reservations are given up.
pub(crate) const MAX_OPEN_DEFERRED: usize = 1024;

/// Reservation of four bytes. [`TraceWriter::fill_deferred`](crate::TraceWriter::fill_deferred)
/// tells their value.
///
/// It names the place, and keeps nothing alive. If it is never used, the service withholds the
/// packet and the writer's later packets, until the writer is dropped or gives the reservation up.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the service waits for the value"]
pub struct Deferred {
    /// Number of the writer.
    writer: usize,
    number: u64,
}

/// Value of four bytes. The first is not zero, because a patch that begins with zero counts as not
/// known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeferredValue([u8; PATCH_SIZE]);

impl DeferredValue {
    /// The length of an empty message.
    pub const EMPTY: Self = Self(wire::redundant_varint4(0));

    /// Returns these bytes as a value; `None` if the first one is zero.
    #[must_use]
    pub const fn new(bytes: [u8; PATCH_SIZE]) -> Option<Self> {
        if bytes[0] != 0 { Some(Self(bytes)) } else { None }
    }

    /// Returns a length as a varint of four bytes; `None` above 2^28 − 1.
    #[expect(clippy::cast_possible_truncation, reason = "checked by the comparison")]
    #[must_use]
    pub const fn length(len: usize) -> Option<Self> {
        if len <= wire::MAX_MESSAGE_LENGTH { Some(Self(wire::redundant_varint4(len as u32))) } else { None }
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; PATCH_SIZE] {
        self.0
    }
}

/// Place of an open reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the writer's chunk, at this offset in the payload.
    Chunk(u16),
    /// In this record of the patch list.
    Patch(u32),
}

/// Open reservations of one writer.
#[derive(Debug)]
pub(crate) struct DeferredList {
    writer: usize,
    next: u64,
    /// Number of the first reservation of the packet being written, if it has any.
    packet: u64,
    open: Vec<(u64, Place)>,
    /// Number of reservations of `open` that are in the chunk.
    in_place: usize,
}

impl DeferredList {
    /// Makes an empty list. Does not allocate.
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

    /// Marks the next reservation as the first of its packet.
    pub(crate) fn begin_packet(&mut self) {
        self.packet = self.next;
    }

    /// Adds a reservation at this offset in the chunk.
    pub(crate) fn push(&mut self, offset: u16) -> Deferred {
        let number = self.next;
        self.next += 1;
        self.open.push((number, Place::Chunk(offset)));
        self.in_place += 1;
        Deferred { writer: self.writer, number }
    }

    /// Removes a reservation, and returns its place; `None` if it is not open, or belongs to
    /// another writer.
    pub(crate) fn take(&mut self, deferred: &Deferred) -> Option<Place> {
        if deferred.writer != self.writer {
            return None;
        }
        let index = self.open.iter().rposition(|(number, _)| *number == deferred.number)?;
        let (_, place) = self.open.remove(index);
        self.in_place -= usize::from(matches!(place, Place::Chunk(_)));
        Some(place)
    }

    /// Turns the reservations in the chunk into patches, by ascending offset, before the chunk is
    /// given away.
    pub(crate) fn part(&mut self, mut patch: impl FnMut(u16) -> u32) {
        sort_by_place(&mut self.open);
        for (_, place) in &mut self.open {
            if let Place::Chunk(offset) = *place {
                *place = Place::Patch(patch(offset));
            }
        }
        self.in_place = 0;
    }

    /// Removes the reservations of the packet being written, and reports the place of each.
    pub(crate) fn abandon_packet(&mut self, abandoned: impl FnMut(Place)) {
        let packet = self.packet;
        self.remove(|number, _| number >= packet, abandoned);
    }

    /// Removes the reservations that became patches, and reports the place of each.
    pub(crate) fn give_up_patches(&mut self, given_up: impl FnMut(Place)) {
        self.remove(|_, place| matches!(place, Place::Patch(_)), given_up);
    }

    /// Removes all reservations, and reports the place of each.
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

/// Sorts patches before the reservations in the chunk, and these by their offsets. There are few,
/// and mostly they are in order.
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
