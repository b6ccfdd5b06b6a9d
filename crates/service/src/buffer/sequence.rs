//! Sequences: the chunks and the state of each writer.

use super::chunk_list::{ChunkList, Place};
use super::histogram::Histogram;
use super::record::ChunkRecord;
use super::{Identity, ProducerId, WriterId, loss};

/// The last chunk of a sequence that was read and left, or overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Consumed {
    pub(super) id: u32,
    /// Bytes of its fragments, all consumed.
    pub(super) bytes: u16,
    /// It was still being written, and no newer copy has come since.
    pub(super) incomplete: bool,
}

/// Loss bits for a chunk that was overwritten before its writer had finished it.
const LEFT_INCOMPLETE: u32 = loss::PRESENT | loss::OVERWRITE;

/// State of a sequence for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// It has no chunks.
    Empty,
    /// It has changed since it was read, and is in `Sequences::ready`.
    Ready,
    /// It waits, and has not changed since.
    Waits {
        /// For the rest of a packet over several chunks.
        for_rest: bool,
    },
}

/// The chunks that a packet over several chunks has so far; the next one is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begun {
    /// The chunk in which it begins.
    pub(super) first: u32,
    /// Its last chunk so far.
    pub(super) last: Place,
    /// Number of chunks.
    pub(super) chunks: u32,
    /// Their cost against the bound of a packet.
    pub(super) cost: usize,
}

/// Order in which sequences are read. If several writers had the same id, the older one comes
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) producer: ProducerId,
    pub(super) writer: WriterId,
    pub(super) born: u64,
}

/// One writer's chunks and state.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pub(super) producer: ProducerId,
    pub(super) writer: WriterId,
    pub(super) identity: Identity,
    /// Stored chunks, ordered by id.
    pub(super) chunks: ChunkList,
    pub(super) consumed: Option<Consumed>,
    /// Loss bits for the next packet.
    pub(super) loss: u32,
    /// Its last packet was broken off. The writer tells the loss again in its next packet.
    pub(super) is_broken_off: bool,
    /// The packet that begins in the oldest chunk, if a search has not found its end.
    pub(super) begun: Option<Begun>,
    pub(super) histogram: Histogram,
    pub(super) readiness: Readiness,
    /// Another writer has its id now. Its remaining data are read, and then it is forgotten.
    pub(super) is_retired: bool,
    /// Its writer has ended. Without chunks, it is forgotten before those of others.
    pub(super) is_ended: bool,
    /// The buffer may have forgotten it, and a loss with it.
    pub(super) may_be_known: bool,
    /// The number of sequences that were made before it.
    pub(super) born: u64,
    /// The number of copies before its last use.
    pub(super) last_used: u64,
    /// Its index in `Sequences::empty`.
    pub(super) empty_at: u32,
}

impl Sequence {
    pub(super) fn chunks(&self) -> &ChunkList {
        &self.chunks
    }

    /// Returns the loss bits before its first chunk, which are known when reading it begins.
    ///
    /// A chunk stays incomplete only if it is overwritten while the sequence waits for the rest of
    /// it. The rest may come until reading the next chunk begins. Afterwards it is too late.
    pub(super) fn lost_before(&self, first: &ChunkRecord) -> u32 {
        if first.read != 0 {
            return 0;
        }
        let Some(last) = self.consumed.filter(|last| last.id != first.chunk_id) else {
            let is_unknown = self.consumed.is_none() && self.may_be_known && first.chunk_id != 0;
            return if is_unknown { loss::PRESENT | loss::READ_GAP } else { 0 };
        };
        if first.chunk_id != last.id.wrapping_add(1) {
            return loss::PRESENT | loss::READ_GAP;
        }
        if last.incomplete { LEFT_INCOMPLETE } else { 0 }
    }

    /// Tells whether a chunk is part of a packet that waits for its rest. The chunk was then found
    /// to be complete.
    pub(super) fn has_begun_with(&self, id: u32) -> bool {
        self.begun.is_some_and(|begun| id.wrapping_sub(begun.first) <= begun.last.chunk.id.wrapping_sub(begun.first))
    }

    /// Ends the wait for the rest of a chunk, because this writer commits no more.
    pub(super) fn give_up_incomplete(&mut self) {
        if let Some(last) = self.consumed.as_mut().filter(|last| last.incomplete) {
            last.incomplete = false;
            self.loss |= LEFT_INCOMPLETE;
        }
    }

    pub(super) fn key(&self) -> Key {
        Key { producer: self.producer, writer: self.writer, born: self.born }
    }
}
