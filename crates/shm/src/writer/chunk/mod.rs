//! The chunk under a writer's hands: what happens at its boundaries
//! (`docs/spec/shared-memory.md` §9, §12).
//!
//! [`ChunkWriter`] is the delegate of a writer's [`Stream`](esatto_protozero::cursor::Stream). The stream writes into the
//! payload; the chunk writer acts when the payload is full, and keeps the fragment count.
//!
//! ```text
//!  payload                    header          stream
//!  ▼                          ▼               ▼
//!  [size][packet][size][packet][size][packet ……… rest ]
//!                              └ being written ┘
//! ```

mod deferred;

use core::ptr::{self, NonNull};
use std::sync::Arc;

use esatto_protozero::{
    cursor::{OpenSlots, Range, RawDelegate, Slot},
    wire,
};

pub(super) use deferred::Special;

use super::deferred_list::{DeferredList, DeferredValue};
use crate::{
    abi::{ChunkFlags, ChunkHeader, DROP_MARKER_BYTES, FRAGMENT_SIZE_LEN, MAX_PACKET_COUNT, Packets},
    arbiter::{Arbiter, ExhaustedPolicy, WriterRef},
    chunk_states::{Chunk, announce, state::BeingWritten},
    commit::{PatchList, Target},
    sync::AtomicU16,
};

/// Packets that begin in one chunk at most; one less than the count could say, for the increment in advance.
pub(crate) const MAX_PACKETS_PER_CHUNK: u16 = MAX_PACKET_COUNT - 1;

/// Where packets go that are dropped. Enough for any reservation of the stream.
pub(crate) const SCRATCH_SIZE: usize = 1024;
/// Aligned, as counts go there that nobody shall see yet.
type Scratch = [u16; SCRATCH_SIZE / size_of::<u16>()];

const _: () = assert!(size_of::<Scratch>() == SCRATCH_SIZE && align_of::<Scratch>() >= align_of::<AtomicU16>());

/// Something was lost (`previous_packet_dropped`, bit 0).
const LOSS_PRESENT: u16 = 1;
/// … because the writer could not finish a packet.
const LOSS_WRITER_ABORT: u16 = 128;
/// … because the shared memory was full.
const LOSS_SMB_FULL: u16 = 256;

/// The length of an empty message, as a patch: for messages whose length nobody will ever tell.
const EMPTY_LENGTH: [u8; 4] = DeferredValue::EMPTY.bytes();

/// State of one writer between the stream and the arbiter.
pub(crate) struct ChunkWriter {
    // Used for every packet.
    /// Size field of the fragment being written; null between packets and when there is no chunk.
    pub(crate) header: *mut u8,
    /// Fragments begun in the chunk.
    pub(crate) begun: u16,
    /// The count in the chunk includes one that was not begun yet.
    pub(crate) advanced: bool,
    /// What is special about the fragment being written.
    pub(crate) special: Special,
    /// A packet was begun and not ended.
    pub(crate) in_packet: bool,
    /// There is no chunk because none was free; or never will be.
    pub(crate) dropping: bool,
    /// The first packet of the sequence has not got through yet.
    pub(crate) first_due: bool,
    /// What to say in `previous_packet_dropped` of the next packet that gets through.
    pub(crate) loss_due: u16,
    flags: ChunkFlags,
    /// Count and flags of the chunk; only read while `chunk` is there. In `scratch` while the count is held back.
    packets: *const AtomicU16,

    // Used at chunk boundaries.
    pub(crate) patches: PatchList,
    pub(crate) deferred: DeferredList,
    /// Patches of the chunk are for packets that it has whole.
    deferred_only: bool,
    chunk: Option<Chunk<BeingWritten>>,
    chunk_id: u32,
    next_chunk_id: u32,
    /// First byte of the chunk's payload.
    payload: *mut u8,
    /// Begin of the range that the stream has.
    range_begin: *mut u8,
    arbiter: Option<Arc<Arbiter>>,
    pub(crate) writer: WriterRef,
    policy: ExhaustedPolicy,
    scratch: NonNull<Scratch>,
    pub(crate) drop_count: u64,
    pub(crate) abandoned_count: u64,
}

impl ChunkWriter {
    /// Without an arbiter it drops everything.
    pub(crate) fn new(arbiter: Option<(Arc<Arbiter>, WriterRef)>, policy: ExhaustedPolicy) -> Self {
        let (arbiter, writer) = match arbiter {
            Some((arbiter, writer)) => (Some(arbiter), writer),
            None => (None, WriterRef { writer_id: 0, target: Target::Buffer(0) }),
        };
        Self {
            header: ptr::null_mut(),
            begun: 0,
            advanced: false,
            special: Special::NONE,
            in_packet: false,
            dropping: arbiter.is_none(),
            first_due: true,
            loss_due: 0,
            flags: ChunkFlags::NONE,
            packets: ptr::null(),
            patches: PatchList::default(),
            deferred: DeferredList::new(),
            deferred_only: false,
            chunk: None,
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

    /// True if nothing written here will ever leave.
    #[inline]
    pub(crate) fn is_null(&self) -> bool {
        self.arbiter.as_ref().is_none_or(|a| a.is_shutdown())
    }

    /// Whether there is a chunk to write into.
    #[inline]
    pub(crate) fn has_chunk(&self) -> bool {
        self.chunk.is_some()
    }

    /// Whether nothing is to be done or said before the next packet: between packets, that only changes when there is another chunk.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.has_chunk() && !self.in_packet && !self.first_due && self.loss_due == 0 && !self.patches.is_ready()
    }

    /// Publishes the fragment count, `begun` and the one in advance, if any. The fragments before the last are in place.
    #[inline]
    pub(crate) fn publish_count(&self) {
        debug_assert!(self.has_chunk());
        let packets = Packets::new(self.begun + u16::from(self.advanced), self.flags);
        // SAFETY: points into the chunk that we hold, in a region that the arbiter keeps alive, or to our scratch memory.
        announce(unsafe { &*self.packets }, packets);
    }

    /// Between packets: exchanges the chunk, which was filled up to `end`, for a new one, or scratch memory.
    pub(crate) fn next_packet_range(&mut self, end: *mut u8) -> Range {
        debug_assert!(self.header.is_null() && !self.in_packet);
        if self.is_null() {
            self.chunk = None;
            self.begun = 0;
            self.dropping = true;
            self.patches.clear();
            self.deferred.give_up(|_| ());
            return self.scratch_range();
        }
        let next = self.acquire(Packets::default());
        self.close(end);
        match next {
            Some(chunk) => {
                self.dropping = false;
                self.install(chunk)
            }
            None => {
                self.start_dropping();
                self.scratch_range()
            }
        }
    }

    /// Between packets: gives the chunk away, which was filled up to `end`. The stream has no memory then.
    pub(crate) fn close(&mut self, end: *mut u8) {
        if self.has_chunk() {
            if self.advanced {
                // The fragment that was announced in advance becomes an empty one.
                // SAFETY: the count was advanced because at least one byte was left behind the last packet, and
                // `end` is where that ended.
                unsafe { end.write(0) };
            }
            self.give_back();
        }
    }

    /// The packet being written will not be finished, and cannot be taken back.
    pub(crate) fn give_back_dropped(&mut self) {
        self.mark_dropped();
        self.give_back();
    }

    /// The lengths that nobody told will not be told.
    pub(crate) fn settle_patches(&mut self) {
        self.patches.fill_lengths(EMPTY_LENGTH);
        self.send_patches();
    }

    pub(crate) fn note_abandoned(&mut self) {
        self.abandoned_count += 1;
        self.loss_due |= LOSS_PRESENT | LOSS_WRITER_ABORT;
    }

    #[cold]
    pub(crate) fn send_patches(&mut self) {
        if let Some(arbiter) = &self.arbiter {
            arbiter.send_patches(self.writer, &mut self.patches);
        }
    }

    #[cfg(test)]
    pub(crate) fn set_next_chunk_id(&mut self, chunk_id: u32) {
        self.next_chunk_id = chunk_id;
    }

    pub(crate) fn arbiter(&self) -> Option<&Arc<Arbiter>> {
        self.arbiter.as_ref()
    }

    fn acquire(&mut self, packets: Packets) -> Option<Chunk<BeingWritten>> {
        let arbiter = self.arbiter.as_ref()?;
        let header = ChunkHeader { chunk_id: self.next_chunk_id, writer_id: self.writer.writer_id, packets };
        let chunk = arbiter.acquire_chunk(header, self.policy, self.dropping)?;
        // Only an acquired chunk uses a number.
        self.next_chunk_id = self.next_chunk_id.wrapping_add(1);
        Some(chunk)
    }

    /// Makes `chunk` the current one: no fragment begun, no flags.
    fn install(&mut self, chunk: Chunk<BeingWritten>) -> Range {
        let arbiter = self.arbiter.as_ref().expect("chunks come from an arbiter");
        let smb = arbiter.smb();
        self.packets = smb.packets_field(&chunk);
        // SAFETY: the chunk lies in the region, see `Smb::acquire_for_writing`.
        self.payload = unsafe { smb.region().base().as_ptr().add(chunk.payload_offset()) };
        self.chunk_id = self.next_chunk_id.wrapping_sub(1);
        self.begun = 0;
        self.advanced = false;
        self.flags = ChunkFlags::NONE;
        self.deferred_only = false;
        let len = chunk.payload_size();
        self.chunk = Some(chunk);
        self.range(self.payload, len)
    }

    /// Completes the chunk and queues it, as it is.
    fn give_back(&mut self) {
        if !self.deferred.is_empty() {
            self.part_with_deferred();
        }
        self.header = ptr::null_mut();
        self.begun = 0;
        self.advanced = false;
        self.special = self.special.without(Special::CONTINUES);
        let (Some(chunk), Some(arbiter)) = (self.chunk.take(), &self.arbiter) else { return };
        // A chunk that is kept back may be scraped, but for its last packet.
        let keep_back = self.flags.contains(ChunkFlags::NEEDS_PATCHING) && !self.deferred_only;
        if !arbiter.return_chunk(chunk, keep_back, self.writer, self.chunk_id, &mut self.patches) {
            self.loss_due |= LOSS_PRESENT;
        }
    }

    fn start_dropping(&mut self) {
        if !self.dropping {
            self.dropping = true;
            self.drop_count += 1;
        }
        self.loss_due |= LOSS_PRESENT | LOSS_SMB_FULL;
    }

    /// Sets the size of the fragment being written to the drop marker.
    fn mark_dropped(&mut self) {
        // SAFETY: `header` is the size field of the fragment being written, in the chunk that we hold.
        unsafe { write_size(self.header, DROP_MARKER_BYTES) };
    }

    fn scratch_range(&mut self) -> Range {
        self.range(self.scratch.as_ptr().cast(), SCRATCH_SIZE)
    }

    fn range(&mut self, begin: *mut u8, len: usize) -> Range {
        self.range_begin = begin;
        Range { begin: NonNull::new(begin).expect("memory is not at address 0"), len }
    }

    /// Continues a packet in the next chunk.
    fn cross(&mut self, chunk: Chunk<BeingWritten>, end: *mut u8, mut open: OpenSlots<'_>) -> Range {
        let size = end.addr() - self.header.addr() - FRAGMENT_SIZE_LEN;
        // SAFETY: the size field of the fragment being written, in the chunk that we hold.
        unsafe { write_size(self.header, wire::redundant_varint4(size as u32)) };
        if !self.deferred.is_empty() {
            // In front of the open lengths, as they are in the chunk.
            self.part_with_deferred();
        }
        self.flags = self.flags.with(ChunkFlags::LAST_CONTINUES);
        let (payload, chunk_id) = (self.payload.addr(), self.chunk_id);
        let (patches, flags) = (&mut self.patches, &mut self.flags);
        open.redirect(|slot| {
            *flags = flags.with(ChunkFlags::NEEDS_PATCHING);
            // The stream left old bytes there; whoever looks should see that the value is missing.
            // SAFETY: a slot in place is four bytes of this chunk (invariant 2 of the stream).
            unsafe { write_size(slot.as_ptr(), [0; FRAGMENT_SIZE_LEN]) };
            let offset = slot.as_ptr().addr() - payload;
            Slot::Patch(patches.push(chunk_id, offset as u16))
        });
        self.publish_count();
        self.give_back();
        let payload = self.install(chunk);
        self.flags = ChunkFlags::FIRST_CONTINUES;
        self.begun = 1;
        self.special = self.special.with(Special::CONTINUES);
        self.header = self.payload;
        // SAFETY: a payload has more than four bytes.
        unsafe { write_size(self.header, [0; FRAGMENT_SIZE_LEN]) };
        // SAFETY: as above.
        let begin = unsafe { self.payload.add(FRAGMENT_SIZE_LEN) };
        self.range(begin, payload.len - FRAGMENT_SIZE_LEN)
    }

    /// Nowhere to continue: the packet is dropped.
    fn drop_packet(&mut self, mut open: OpenSlots<'_>) -> Range {
        self.mark_dropped();
        // All slots in place lie in this chunk, which is given away now.
        open.redirect(|_| Slot::Abandoned);
        self.abandon_deferred();
        self.give_back();
        self.start_dropping();
        self.scratch_range()
    }
}

// SAFETY: ranges lie in the payload of a chunk in state BeingWritten that this writer holds until it hands over the next range, or in its
// scratch memory; both stay mapped until the writer is dropped, and nobody forms references to them. Both are longer than any
// reservation of a stream (the smallest payload is 284 bytes). Slots in a chunk that is given away are redirected to patches or abandoned.
unsafe impl RawDelegate for ChunkWriter {
    #[cold]
    fn next_range(&mut self, used: usize, mut open: OpenSlots<'_>, _min_len: usize) -> Range {
        if self.header.is_null() {
            // Dropping already: over and over the same scratch memory.
            open.redirect(|_| Slot::Abandoned);
            return self.scratch_range();
        }
        // SAFETY: `used` bytes of the range that begins there were written.
        let end = unsafe { self.range_begin.add(used) };
        if end.addr() < self.header.addr() + FRAGMENT_SIZE_LEN {
            // The sink panicked when the packet was here before, and how far it had come is not known.
            return self.drop_packet(open);
        }
        match self.acquire(Packets::new(1, ChunkFlags::FIRST_CONTINUES)) {
            Some(chunk) => self.cross(chunk, end, open),
            None => self.drop_packet(open),
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

/// Stores the size of a fragment, or any length field.
///
/// # Safety
/// `at` points to four bytes of a chunk that the caller holds in state BeingWritten.
#[inline]
pub(crate) unsafe fn write_size(at: *mut u8, size: [u8; FRAGMENT_SIZE_LEN]) {
    // SAFETY: the caller's promise.
    unsafe { ptr::copy_nonoverlapping(size.as_ptr(), at, size.len()) };
}
