//! [`LossMarks`]: losses at the ends of sequences, which no later packet can tell
//! (`docs/spec/shared-memory.md` §12).
//!
//! A writer tells a loss in its next packet. If it is dropped before, because no chunk has become
//! free, the arbiter keeps the loss, and the number of the writer, until there is a chunk. At the
//! end of the process the marks travel in messages, which need no chunk.

use std::collections::VecDeque;

use esatto_protozero::wire::{self, MAX_VARINT_SIZE, WireType, encode_varint};

use super::{Arbiter, Outgoing, Urgency, WriterRef};
use crate::{
    abi::{ChunkFlags, ChunkHeader, FIRST_PACKET_ON_SEQUENCE, PREVIOUS_PACKET_DROPPED, Packets},
    commit::{ChunkToMove, RequestSplitter, Target},
};

/// Marks that an arbiter keeps. Beyond that the oldest is given up.
const MAX_LOSS_MARKS: usize = 1024;
/// Value for `previous_packet_dropped`: something was lost, because the shared memory was full.
const LOSS_OF_MEMORY: u16 = 1 | 256;
/// Number of a chunk that no page has. Services that do not read chunks from messages pass over it.
const NO_CHUNK: u32 = 15;

/// The loss that a dropped writer still had to tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossMark {
    pub(crate) writer: WriterRef,
    /// Number of the writer's next chunk.
    pub(crate) chunk_id: u32,
    /// The sequence has no packet yet.
    pub(crate) first_packet: bool,
    /// Value for `previous_packet_dropped`.
    pub(crate) loss: u16,
}

/// Losses that are not told yet.
#[derive(Debug, Default)]
pub(super) struct LossMarks {
    /// Marks without a chunk, the oldest first.
    waiting: VecDeque<LossMark>,
    /// Numbers of the living writers that will tell a loss in their next packets, by target.
    debtors: Vec<(Target, u32)>,
}

impl LossMark {
    /// Returns a chunk that has only the mark, as a message carries it (§17).
    fn chunk(&self, target_buffer: u16) -> ChunkToMove {
        let mut packet = Vec::new();
        let mut field = |number: u32, value: u64| {
            let mut bytes = [0; MAX_VARINT_SIZE];
            for number in [wire::tag(number, WireType::Varint).into(), value] {
                let len = encode_varint(number, &mut bytes);
                packet.extend_from_slice(&bytes[..len]);
            }
        };
        field(PREVIOUS_PACKET_DROPPED, self.loss.into());
        if self.first_packet {
            field(FIRST_PACKET_ON_SEQUENCE, 1);
        }
        let packets = Packets::new(1, ChunkFlags::NONE);
        let header = ChunkHeader { chunk_id: self.chunk_id, writer_id: self.writer.writer_id, packets };
        let mut data = header.to_bytes().to_vec();
        #[expect(clippy::cast_possible_truncation, reason = "two small fields")]
        data.push(packet.len() as u8);
        data.extend_from_slice(&packet);
        ChunkToMove {
            page: 0,
            chunk: NO_CHUNK,
            target_buffer,
            writer_id: self.writer.writer_id,
            chunk_id: self.chunk_id,
            data: Some(data),
            incomplete: false,
        }
    }
}

impl Arbiter {
    /// Removes a writer after its loss has been marked.
    pub(crate) fn retire_marked_writer(&self, mark: LossMark) {
        if self.is_shutdown() {
            return;
        }
        let mut state = self.state();
        state.marks.waiting.push_back(mark);
        if state.marks.waiting.len() > MAX_LOSS_MARKS {
            if let Some(oldest) = state.marks.waiting.pop_front() {
                state.retire(oldest.writer);
                self.announce(state, Urgency::Now);
            }
        }
    }

    /// Takes a mark that waits for a chunk.
    pub(crate) fn take_mark(&self) -> Option<LossMark> {
        self.state().marks.waiting.pop_front()
    }

    /// Returns the number of marks that wait for a chunk.
    pub(crate) fn marks(&self) -> usize {
        self.state().marks.waiting.len()
    }

    /// Notes that a writer has lost packets, and tells it in its next packet.
    pub(crate) fn add_debtor(&self, target: Target) {
        let mut state = self.state();
        match state.marks.debtors.iter_mut().find(|(of, _)| *of == target) {
            Some((_, number)) => *number += 1,
            None => state.marks.debtors.push((target, 1)),
        }
    }

    /// Notes that a writer has told its loss, or has ended.
    pub(crate) fn remove_debtor(&self, target: Target) {
        let mut state = self.state();
        let debtors = &mut state.marks.debtors;
        if let Some(place) = debtors.iter().position(|(of, _)| *of == target) {
            debtors[place].1 -= 1;
            if debtors[place].1 == 0 {
                debtors.swap_remove(place);
            }
        }
    }

    /// Queues the marks of losses that no later packet tells, because the process ends. Those that
    /// wait for a chunk get none, and a service reads them from the message. The threads that have
    /// lost something and are still alive share one mark for each buffer, in a sequence of its own.
    ///
    /// Call it on the connection's thread before the last poll, after the writers were flushed.
    pub fn queue_last_marks(&self) {
        if self.is_shutdown() {
            return;
        }
        let lost = {
            let mut state = self.state();
            let mut marks = Vec::new();
            let waiting = std::mem::take(&mut state.marks.waiting);
            for mark in waiting {
                match state.reservations.resolved(mark.writer.target) {
                    Target::Buffer(buffer) => marks.push((mark, buffer)),
                    Target::Reservation(_) => state.marks.waiting.push_back(mark),
                }
            }
            for (target, _) in std::mem::take(&mut state.marks.debtors) {
                let Target::Buffer(buffer) = state.reservations.resolved(target) else { continue };
                let Some(writer_id) = state.ids.allocate() else { break };
                let writer = WriterRef { writer_id, target: Target::Buffer(buffer) };
                marks.push((LossMark { writer, chunk_id: 0, first_packet: true, loss: LOSS_OF_MEMORY }, buffer));
            }
            if marks.is_empty() {
                return;
            }
            // The chunks before.
            let lost = state.take_pending(&self.smb, self.options.emulation);
            let mut splitter = RequestSplitter::new(true);
            for (mark, buffer) in &marks {
                splitter.push_move(mark.chunk(*buffer));
                state.retire(mark.writer);
            }
            state.outgoing.extend(splitter.finish(0, Vec::new()).into_iter().map(Outgoing::Commit));
            lost
        };
        self.report_lost(lost);
    }
}
