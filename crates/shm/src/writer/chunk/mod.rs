//! [`ChunkWriter`]: the chunk that a writer fills, and the steps at its boundaries
//! (`docs/spec/shared-memory.md` §9, §12).
//!
//! [`ChunkWriter`] is the delegate of a writer's [`Stream`](esatto_protozero::cursor::Stream). The
//! stream writes into the payload. The chunk writer acts when the payload is full, and keeps the
//! fragment count.
//!
//! ```text
//!  payload                    header          stream
//!  ▼                          ▼               ▼
//!  [size][packet][size][packet][size][packet ……… rest ]
//!                              └ being written ┘
//! ```

mod deferred;
mod loss_reasons;

use core::{
    mem,
    ptr::{self, NonNull},
};
use std::sync::Arc;

use esatto_protozero::{
    cursor::{OpenSlots, Range, RawDelegate, Slot},
    wire,
};

use super::{
    deferred_list::{DeferredList, DeferredValue},
    fragment_flags::FragmentFlags,
};
use crate::{
    abi::{ChunkFlags, ChunkHeader, DROP_MARKER_BYTES, FRAGMENT_SIZE_LEN, MAX_PACKET_COUNT, Packets},
    arbiter::{Arbiter, ExhaustedPolicy, LossMark, WriterRef},
    chunk_states::{Chunk, announce, state::BeingWritten},
    commit::{PatchList, Target},
    sync::AtomicU16,
};
use loss_reasons::{LOSS_PRESENT, LOSS_SMB_FULL, LOSS_WRITER_ABORT};

/// Largest number of packets that begin in one chunk. It is one less than the count can hold,
/// because the next packet is counted in advance.
pub(super) const MAX_PACKETS_PER_CHUNK: u16 = MAX_PACKET_COUNT - 1;

/// Size of the memory for dropped packets: enough for any reservation of the stream.
pub(super) const SCRATCH_SIZE: usize = 1024;
/// Memory for dropped packets, and for counts that the service must not see yet. The counts need
/// its alignment.
type Scratch = [u16; SCRATCH_SIZE / size_of::<u16>()];

const _: () = assert!(size_of::<Scratch>() == SCRATCH_SIZE && align_of::<Scratch>() >= align_of::<AtomicU16>());

/// Length of an empty message as a patch, for messages whose length will never be known.
const EMPTY_LENGTH: [u8; 4] = DeferredValue::EMPTY.bytes();

/// Position of a writer in its sequence of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Between packets.
    Between,
    /// Between packets. The count in the chunk includes the next packet already.
    BetweenCounted,
    /// In a packet. The size field of the fragment being written is here, in the writer's chunk.
    InFragment(NonNull<u8>),
    /// In a packet that is being dropped.
    InDroppedPacket,
}

/// The memory that a writer has for packets.
#[derive(Debug)]
enum Supply {
    /// A chunk.
    Chunk(Chunk<BeingWritten>),
    /// No chunk: the writer asks for one when the next packet begins.
    None,
    /// No chunk was free, or none ever will be. Packets are dropped.
    Exhausted,
}

/// Fields that the writer adds to the next packet that gets through (§9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owed {
    /// The packet is the first one of the sequence.
    pub(super) first_packet: bool,
    /// Value for `previous_packet_dropped`; 0 if nothing was lost.
    pub(super) loss: u16,
}

impl Owed {
    pub(super) const NOTHING: Self = Self { first_packet: false, loss: 0 };

    #[inline]
    pub(super) const fn is_nothing(self) -> bool {
        !self.first_packet && self.loss == 0
    }
}

/// State of one writer between the stream and the arbiter.
pub(super) struct ChunkWriter {
    // Used for every packet.
    pub(super) position: Position,
    /// Fragments begun in the chunk.
    pub(super) begun: u16,
    pub(super) fragment: FragmentFlags,
    pub(super) owed: Owed,
    /// The arbiter knows that the writer owes the mark of a loss.
    is_debtor: bool,
    /// Something was lost, and the program has not started its sequence over since.
    pub(super) has_lost: bool,
    flags: ChunkFlags,
    supply: Supply,
    /// Count and flags of the chunk. Points to `scratch` while the count is held back, and is read
    /// only while there is a chunk.
    packets: *const AtomicU16,

    // Used at chunk boundaries.
    pub(super) patches: PatchList,
    pub(super) deferred: DeferredList,
    /// A packet that lies whole in the chunk misses a deferred value.
    misses_deferred: bool,
    chunk_id: u32,
    next_chunk_id: u32,
    /// First byte of the chunk's payload.
    payload: *mut u8,
    /// First byte of the range that the stream has.
    range_begin: *mut u8,
    arbiter: Option<Arc<Arbiter>>,
    pub(super) writer: WriterRef,
    policy: ExhaustedPolicy,
    scratch: NonNull<Scratch>,
    pub(super) drop_count: u64,
    pub(super) abandoned_count: u64,
}

impl ChunkWriter {
    /// Makes a writer. It drops everything if it has no arbiter.
    pub(super) fn new(arbiter: Option<(Arc<Arbiter>, WriterRef)>, policy: ExhaustedPolicy) -> Self {
        let (arbiter, writer) = match arbiter {
            Some((arbiter, writer)) => (Some(arbiter), writer),
            None => (None, WriterRef { writer_id: 0, target: Target::Buffer(0) }),
        };
        Self {
            position: Position::Between,
            begun: 0,
            fragment: FragmentFlags::NONE,
            owed: Owed { first_packet: true, loss: 0 },
            is_debtor: false,
            has_lost: false,
            flags: ChunkFlags::NONE,
            supply: if arbiter.is_some() { Supply::None } else { Supply::Exhausted },
            packets: ptr::null(),
            patches: PatchList::default(),
            deferred: DeferredList::new(),
            misses_deferred: false,
            chunk_id: 0,
            next_chunk_id: 0,
            payload: ptr::null_mut(),
            range_begin: ptr::null_mut(),
            arbiter,
            writer,
            policy,
            scratch: NonNull::from(Box::leak(Box::<Scratch>::new([0; SCRATCH_SIZE / size_of::<u16>()]))),
            drop_count: 0,
            abandoned_count: 0,
        }
    }

    /// Makes a writer that has nothing to write but the mark of a loss.
    pub(super) fn of_mark(arbiter: Arc<Arbiter>, mark: LossMark) -> Self {
        let mut writer = Self::new(Some((arbiter, mark.writer)), ExhaustedPolicy::Drop);
        writer.next_chunk_id = mark.chunk_id;
        writer.owed = Owed { first_packet: mark.first_packet, loss: mark.loss };
        writer
    }

    /// Returns what the writer has not told, if it has lost something.
    pub(super) fn mark(&self) -> Option<LossMark> {
        let Owed { first_packet, loss } = self.owed;
        let (writer, chunk_id) = (self.writer, self.next_chunk_id);
        self.owes_mark().then_some(LossMark { writer, chunk_id, first_packet, loss })
    }

    /// Returns whether the writer has to tell a loss even if no other packet follows. A packet that
    /// the program has not ended is not one: it was never complete.
    pub(super) fn owes_mark(&self) -> bool {
        self.owed.loss & !(LOSS_PRESENT | LOSS_WRITER_ABORT) != 0 || self.owed.loss == LOSS_PRESENT
    }

    /// Without a chunk, gets one for the mark of a loss, if one is free. Never waits.
    pub(super) fn range_for_mark(&mut self) -> Option<Range> {
        let header = self.next_header(Packets::default());
        let chunk = self.arbiter.as_ref()?.acquire_chunk_for_mark(header)?;
        self.next_chunk_id = self.next_chunk_id.wrapping_add(1);
        Some(self.install(chunk))
    }

    /// Returns true if nothing written here will ever leave.
    #[inline]
    pub(super) fn is_null(&self) -> bool {
        self.arbiter.as_ref().is_none_or(|a| a.is_shutdown())
    }

    /// Returns true if there is a chunk to write into.
    #[inline]
    pub(super) fn has_chunk(&self) -> bool {
        matches!(self.supply, Supply::Chunk(_))
    }

    /// Returns true if packets are dropped because no chunk was free.
    #[inline]
    pub(super) fn is_dropping(&self) -> bool {
        matches!(self.supply, Supply::Exhausted)
    }

    /// Returns true if a packet was begun and has not ended.
    #[inline]
    pub(super) fn is_in_packet(&self) -> bool {
        matches!(self.position, Position::InFragment(_) | Position::InDroppedPacket)
    }

    /// Returns the size field of the fragment being written, if there is one.
    #[inline]
    pub(super) fn size_field(&self) -> Option<NonNull<u8>> {
        match self.position {
            Position::InFragment(size_field) => Some(size_field),
            _ => None,
        }
    }

    /// Returns true if the next packet needs no preparation and no added fields, and readers still
    /// know the state of the sequence. Between packets, this changes only when the writer gets
    /// another chunk.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.has_chunk() && !self.is_in_packet() && self.owed.is_nothing() && !self.has_lost && !self.patches.is_ready()
    }

    /// Publishes the fragment count: `begun`, and the next packet if it is counted in advance. The
    /// fragments before the last are in place.
    #[inline]
    pub(super) fn publish_count(&self) {
        debug_assert!(self.has_chunk());
        let next = u16::from(matches!(self.position, Position::BetweenCounted));
        let packets = Packets::new(self.begun + next, self.flags);
        // SAFETY: points into the chunk that this writer holds, in a region that the arbiter keeps
        // alive, or to its scratch memory.
        announce(unsafe { &*self.packets }, packets);
    }

    /// Between packets, exchanges the chunk, which was filled up to `end`, for a new one or for
    /// scratch memory.
    pub(super) fn next_packet_range(&mut self, end: *mut u8) -> Range {
        debug_assert!(!self.is_in_packet());
        if self.is_null() {
            self.supply = Supply::Exhausted;
            self.position = Position::Between;
            self.begun = 0;
            self.patches.clear();
            self.deferred.give_up(|_| ());
            return self.scratch_range();
        }
        let next = self.acquire(Packets::default());
        self.close(end);
        match next {
            Some(chunk) => self.install(chunk),
            None => {
                self.start_dropping();
                self.scratch_range()
            }
        }
    }

    /// Between packets, gives the chunk away, which was filled up to `end`. The caller has taken
    /// the memory from the stream.
    pub(super) fn close(&mut self, end: *mut u8) {
        if self.has_chunk() {
            if self.position == Position::BetweenCounted {
                // The fragment that was counted in advance becomes an empty one. SAFETY: the next
                // packet was counted because at least one byte was left after the last packet,
                // which ended at `end`.
                unsafe { end.write(0) };
            }
            self.give_back();
        }
    }

    /// Gives the chunk away with the packet being written, which cannot be finished or taken back.
    pub(super) fn give_back_dropped(&mut self, size_field: NonNull<u8>) {
        self.mark_dropped(size_field);
        self.give_back();
    }

    /// Gives all unknown lengths the value of an empty message.
    pub(super) fn settle_patches(&mut self) {
        self.patches.fill_lengths(EMPTY_LENGTH);
        self.send_patches();
    }

    pub(super) fn note_abandoned(&mut self) {
        self.abandoned_count += 1;
        self.note_loss(LOSS_PRESENT | LOSS_WRITER_ABORT);
    }

    #[cold]
    pub(super) fn send_patches(&mut self) {
        if let Some(arbiter) = &self.arbiter {
            arbiter.send_patches(self.writer, &mut self.patches);
        }
    }

    #[cfg(test)]
    pub(super) fn set_next_chunk_id(&mut self, chunk_id: u32) {
        self.next_chunk_id = chunk_id;
    }

    pub(super) fn arbiter(&self) -> Option<&Arc<Arbiter>> {
        self.arbiter.as_ref()
    }

    fn acquire(&mut self, packets: Packets) -> Option<Chunk<BeingWritten>> {
        let arbiter = self.arbiter.as_ref()?;
        let header = self.next_header(packets);
        let chunk = arbiter.acquire_chunk(header, self.policy, self.is_dropping())?;
        // Only an acquired chunk uses up a number.
        self.next_chunk_id = self.next_chunk_id.wrapping_add(1);
        Some(chunk)
    }

    fn next_header(&self, packets: Packets) -> ChunkHeader {
        ChunkHeader { chunk_id: self.next_chunk_id, writer_id: self.writer.writer_id, packets }
    }

    /// Makes `chunk` the current one, without fragments and flags.
    fn install(&mut self, chunk: Chunk<BeingWritten>) -> Range {
        let arbiter = self.arbiter.as_ref().expect("chunks come from an arbiter");
        let smb = arbiter.smb();
        self.packets = smb.packets_field(&chunk);
        // SAFETY: the chunk is in the region, see `Smb::acquire_for_writing`.
        self.payload = unsafe { smb.region().base().as_ptr().add(chunk.payload_offset()) };
        self.chunk_id = self.next_chunk_id.wrapping_sub(1);
        self.begun = 0;
        self.flags = ChunkFlags::NONE;
        self.misses_deferred = false;
        let len = chunk.payload_size();
        self.supply = Supply::Chunk(chunk);
        self.range(self.payload, len)
    }

    /// Completes the chunk and queues it.
    fn give_back(&mut self) {
        if !self.deferred.is_empty() {
            self.part_with_deferred();
        }
        self.position = if self.is_in_packet() { Position::InDroppedPacket } else { Position::Between };
        self.begun = 0;
        self.fragment = self.fragment.without(FragmentFlags::CONTINUES);
        let chunk = match mem::replace(&mut self.supply, Supply::None) {
            Supply::Chunk(chunk) => chunk,
            other => {
                self.supply = other;
                return;
            }
        };
        let Some(arbiter) = &self.arbiter else { return };
        // The service may scrape a chunk that is kept back, except its last packet.
        let keep_back = self.flags.contains(ChunkFlags::NEEDS_PATCHING) && !self.misses_deferred;
        if !arbiter.return_chunk(chunk, keep_back, self.writer, self.chunk_id, &mut self.patches) {
            self.note_loss(LOSS_PRESENT);
        }
    }

    fn start_dropping(&mut self) {
        if !self.is_dropping() {
            self.supply = Supply::Exhausted;
            self.drop_count += 1;
        }
        self.note_loss(LOSS_PRESENT | LOSS_SMB_FULL);
    }

    /// Has the next packet that gets through carry the mark of a loss.
    fn note_loss(&mut self, reasons: u16) {
        self.owed.loss |= reasons;
        self.has_lost = true;
        if let Some(arbiter) = self.arbiter.as_ref().filter(|_| !self.is_debtor && self.owes_mark()) {
            arbiter.add_debtor(self.writer.target);
            self.is_debtor = true;
        }
    }

    /// Tells the arbiter that the writer marks its loss now, or ends.
    pub(super) fn forget_debt(&mut self) {
        if let Some(arbiter) = self.arbiter.as_ref().filter(|_| self.is_debtor) {
            arbiter.remove_debtor(self.writer.target);
            self.is_debtor = false;
        }
    }

    /// Sets the size of the fragment being written to the drop marker.
    fn mark_dropped(&mut self, size_field: NonNull<u8>) {
        // SAFETY: the size field of the fragment being written, in the chunk that this writer
        // holds.
        unsafe { write_size(size_field.as_ptr(), DROP_MARKER_BYTES) };
    }

    fn scratch_range(&mut self) -> Range {
        self.range(self.scratch.as_ptr().cast(), SCRATCH_SIZE)
    }

    fn range(&mut self, begin: *mut u8, len: usize) -> Range {
        self.range_begin = begin;
        Range { begin: NonNull::new(begin).expect("memory is not at address 0"), len }
    }

    /// Continues a packet in the next chunk.
    #[expect(clippy::cast_possible_truncation, reason = "a chunk has less than 64 KiB")]
    fn cross(
        &mut self,
        chunk: Chunk<BeingWritten>,
        size_field: NonNull<u8>,
        end: *mut u8,
        mut open: OpenSlots<'_>,
    ) -> Range {
        let size = end.addr() - size_field.addr().get() - FRAGMENT_SIZE_LEN;
        // SAFETY: the size field of the fragment being written, in the chunk that this writer
        // holds.
        unsafe { write_size(size_field.as_ptr(), wire::redundant_varint4(size as u32)) };
        if !self.deferred.is_empty() {
            // Before the open lengths, as in the chunk.
            self.part_with_deferred();
        }
        self.flags = self.flags.with(ChunkFlags::LAST_CONTINUES);
        let (payload, chunk_id) = (self.payload.addr(), self.chunk_id);
        let (patches, flags) = (&mut self.patches, &mut self.flags);
        open.redirect(|slot| {
            *flags = flags.with(ChunkFlags::NEEDS_PATCHING);
            // The stream left old bytes there. A reader must see that the value is missing. SAFETY:
            // a slot in place is four bytes of this chunk (invariant 2 of the stream).
            unsafe { write_size(slot.as_ptr(), [0; FRAGMENT_SIZE_LEN]) };
            let offset = slot.as_ptr().addr() - payload;
            Slot::Patch(patches.push(chunk_id, offset as u16))
        });
        self.publish_count();
        self.give_back();
        let payload = self.install(chunk);
        self.flags = ChunkFlags::FIRST_CONTINUES;
        self.begun = 1;
        self.fragment = self.fragment.with(FragmentFlags::CONTINUES);
        self.position = Position::InFragment(payload.begin);
        // SAFETY: a payload has more than four bytes.
        unsafe { write_size(payload.begin.as_ptr(), [0; FRAGMENT_SIZE_LEN]) };
        // SAFETY: as above.
        let begin = unsafe { self.payload.add(FRAGMENT_SIZE_LEN) };
        self.range(begin, payload.len - FRAGMENT_SIZE_LEN)
    }

    /// Drops the packet because there is no chunk in which to continue it.
    fn drop_packet(&mut self, size_field: NonNull<u8>, mut open: OpenSlots<'_>) -> Range {
        self.mark_dropped(size_field);
        // All slots that are still in place are in this chunk, which is given away now.
        open.redirect(|_| Slot::Abandoned);
        self.abandon_deferred();
        self.give_back();
        self.start_dropping();
        self.scratch_range()
    }
}

// SAFETY: ranges are in the payload of a chunk in state BeingWritten that this writer holds until
// it hands over the next range, or in its scratch memory. Both stay mapped until the writer is
// dropped, and no references to them exist. Both are longer than any reservation of a stream (the
// smallest payload is 284 bytes). Slots in a chunk that is given away are redirected to patches or
// abandoned.
unsafe impl RawDelegate for ChunkWriter {
    #[cold]
    fn next_range(&mut self, used: usize, mut open: OpenSlots<'_>, _min_len: usize) -> Range {
        let Position::InFragment(size_field) = self.position else {
            // The packet is dropped already: use the same scratch memory again.
            open.redirect(|_| Slot::Abandoned);
            return self.scratch_range();
        };
        // SAFETY: `used` bytes of the range that begins there were written.
        let end = unsafe { self.range_begin.add(used) };
        if end.addr() < size_field.addr().get() + FRAGMENT_SIZE_LEN {
            // A call of `Notify` panicked at an earlier boundary of this packet, and its end is not
            // known.
            return self.drop_packet(size_field, open);
        }
        match self.acquire(Packets::new(1, ChunkFlags::FIRST_CONTINUES)) {
            Some(chunk) => self.cross(chunk, size_field, end, open),
            None => self.drop_packet(size_field, open),
        }
    }

    fn fill_patch(&mut self, patch: u32, value: [u8; 4]) {
        self.patches.fill(patch, value);
    }
}

impl Drop for ChunkWriter {
    fn drop(&mut self) {
        // SAFETY: leaked from a box in `new`, freed only here.
        drop(unsafe { Box::from_raw(self.scratch.as_ptr()) });
    }
}

/// Stores the size of a fragment, or another length field.
///
/// # Safety
/// `at` points to four bytes of a chunk that the caller holds in state BeingWritten.
#[inline]
pub(super) unsafe fn write_size(at: *mut u8, size: [u8; FRAGMENT_SIZE_LEN]) {
    // SAFETY: the caller's promise.
    unsafe { ptr::copy_nonoverlapping(size.as_ptr(), at, size.len()) };
}
