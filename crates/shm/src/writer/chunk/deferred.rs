//! Reservations ([`Deferred`]) in the chunk that a writer fills.
//!
//! A scraper takes a finished packet of an unfinished chunk for whole, without regard to the flags
//! (§16). So as long as a value in the chunk is missing, the count is *held back*: it is written to
//! memory that no reader sees. Then the packet with the missing value is the last one that a
//! scraper sees, which it ignores.

use super::{ChunkWriter, EMPTY_LENGTH, Supply, write_size};
use crate::{
    abi::{ChunkFlags, FRAGMENT_SIZE_LEN, PATCH_SIZE},
    writer::{
        deferred_list::{Deferred, DeferredValue, Place},
        fragment_flags::FragmentFlags,
    },
};

/// Largest number of patches that wait for an earlier one. Reached only if a value is never told.
const MAX_WAITING_PATCHES: usize = 16384;

const _: () = assert!(PATCH_SIZE == FRAGMENT_SIZE_LEN);

impl ChunkWriter {
    /// Makes a reservation of the four bytes at `at`.
    ///
    /// # Safety
    /// They are in the fragment being written, in the chunk that this writer holds.
    pub(in crate::writer) unsafe fn open_deferred(&mut self, at: *mut u8) -> Deferred {
        // SAFETY: the caller's promise.
        unsafe { write_size(at, [0; PATCH_SIZE]) };
        if !self.fragment.contains(FragmentFlags::DEFERRED) {
            self.fragment = self.fragment.with(FragmentFlags::DEFERRED);
            self.deferred.begin_packet();
        }
        // The count in the chunk ends with this packet, or with an earlier one that misses a value.
        self.packets = self.scratch.as_ptr().cast();
        #[expect(clippy::cast_possible_truncation, reason = "a chunk has less than 64 KiB")]
        let offset = (at.addr() - self.payload.addr()) as u16;
        self.deferred.push(offset)
    }

    /// Stores the value of a reservation.
    pub(in crate::writer) fn fill_deferred(&mut self, deferred: &Deferred, value: DeferredValue) {
        match self.deferred.take(deferred) {
            Some(Place::Chunk(offset)) => {
                // SAFETY: reservations in place are in the chunk that this writer holds, or they
                // would be patches or forgotten.
                let at = unsafe { self.payload.add(usize::from(offset)) };
                // SAFETY: as above.
                unsafe { write_size(at, value.bytes()) };
                self.show_count();
            }
            Some(Place::Patch(number)) => self.patches.fill(number, value.bytes()),
            None => {}
        }
    }

    /// Removes the reservations of the packet being written, which is dropped.
    pub(in crate::writer) fn abandon_deferred(&mut self) {
        if self.fragment.contains(FragmentFlags::DEFERRED) {
            self.fragment = self.fragment.without(FragmentFlags::DEFERRED);
            let patches = &mut self.patches;
            self.deferred.abandon_packet(|place| {
                if let Place::Patch(number) = place {
                    patches.fill(number, EMPTY_LENGTH);
                }
            });
            self.show_count();
        }
    }

    /// Gives up all open reservations.
    #[cold]
    pub(in crate::writer) fn give_up_deferred(&mut self) {
        if self.deferred.is_empty() {
            return;
        }
        let (payload, patches) = (self.payload, &mut self.patches);
        self.deferred.give_up(|place| match place {
            Place::Chunk(offset) => {
                // SAFETY: as in `fill_deferred`.
                let at = unsafe { payload.add(usize::from(offset)) };
                // SAFETY: as above.
                unsafe { write_size(at, EMPTY_LENGTH) };
            }
            Place::Patch(number) => patches.fill(number, EMPTY_LENGTH),
        });
        self.show_count();
        self.send_patches();
    }

    /// Turns the values that the chunk misses into patches, before the chunk is given away.
    #[cold]
    #[inline(never)]
    pub(super) fn part_with_deferred(&mut self) {
        if self.deferred.any_in_place() {
            self.flags = self.flags.with(ChunkFlags::NEEDS_PATCHING);
            self.misses_deferred = true;
            let (chunk_id, patches) = (self.chunk_id, &mut self.patches);
            self.deferred.part(|offset| patches.push_deferred(chunk_id, offset));
            self.show_count();
        }
        if self.patches.len() > MAX_WAITING_PATCHES {
            let patches = &mut self.patches;
            self.deferred.give_up_patches(|place| {
                if let Place::Patch(number) = place {
                    patches.fill(number, EMPTY_LENGTH);
                }
            });
            self.note_abandoned();
        }
    }

    /// Publishes the true count again if no value in the chunk is missing any more.
    fn show_count(&mut self) {
        if self.deferred.any_in_place() {
            return;
        }
        if let (Supply::Chunk(chunk), Some(arbiter)) = (&self.supply, &self.arbiter) {
            self.packets = arbiter.smb().packets_field(chunk);
            self.publish_count();
        }
    }
}
