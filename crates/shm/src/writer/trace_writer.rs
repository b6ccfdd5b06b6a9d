//! [`TraceWriter`]: writes the packets of one sequence (`docs/spec/shared-memory.md` §9).

use core::{
    fmt,
    ptr::{self, NonNull},
};
use std::sync::Arc;

use esatto_protozero::{
    Message,
    cursor::{Range, Stream},
    wire,
};

use super::{
    chunk::{ChunkWriter, MAX_PACKETS_PER_CHUNK, Owed, Position, write_size},
    fragment_flags::FragmentFlags,
};
use crate::{
    abi::{FIRST_PACKET_ON_SEQUENCE, FRAGMENT_SIZE_LEN, PREVIOUS_PACKET_DROPPED},
    arbiter::{Arbiter, ExhaustedPolicy, LossMark, WriterRef},
    commit::FlushCallback,
};

/// A packet begins in the next chunk if fewer bytes are left (§9).
const MIN_BYTES_FOR_PACKET: usize = 12;
/// Fragments shorter than this get a size field of one byte.
pub(super) const ONE_BYTE_SIZE_LIMIT: usize = 127;

const _: () = assert!(MIN_BYTES_FOR_PACKET > FRAGMENT_SIZE_LEN);

/// Writes the packets of one sequence directly into shared memory.
///
/// One thread at a time uses it. A packet is written between [`new_packet`](Self::new_packet) and
/// the drop of the [`Packet`](crate::Packet). Between chunk boundaries nothing allocates, locks or
/// calls the kernel. At a boundary the writer takes one short lock.
///
/// A writer never fails. Without memory it drops packets, and marks the loss in the next packet
/// that gets through (`previous_packet_dropped`). A flush marks it in a packet of its own.
///
/// Dropping the writer flushes it. If there is no memory for the mark then, the arbiter writes it
/// as soon as there is.
///
/// ```
/// # use std::sync::Arc;
/// # use esatto_shm::{Arbiter, ExhaustedPolicy, PrivateRegion, abi::PageSize};
/// let region = Arc::new(PrivateRegion::new(16384));
/// let arbiter = Arbiter::new(region, PageSize::DEFAULT, Arc::new(())).unwrap();
/// let mut writer = arbiter.create_writer(1, ExhaustedPolicy::Drop);
/// {
///     let mut packet = writer.new_packet();
///     packet.message().varint(8, 123); // timestamp
/// } // the packet ends here
/// writer.flush();
/// ```
pub struct TraceWriter {
    pub(super) stream: Stream,
    /// The stream's delegate. It comes from `Box::leak`, is freed on drop, and is accessed here
    /// only between calls on the stream.
    chunk: NonNull<ChunkWriter>,
    /// Latest end of a small packet's content in the writer's chunk. Null if the next packet cannot
    /// be a small one.
    pub(super) small_end: *mut u8,
}

// SAFETY: a writer owns all that it points to, or shares it through `Arc<Arbiter>`, which is `Send`
// and `Sync`; the writer owns its chunk on any thread.
unsafe impl Send for TraceWriter {}

impl TraceWriter {
    pub(super) fn new(arbiter: Arc<Arbiter>, writer: WriterRef, policy: ExhaustedPolicy) -> Self {
        Self::from_chunk_writer(ChunkWriter::new(Some((arbiter, writer)), policy))
    }

    /// Makes a writer that has nothing to write but the mark of a loss.
    pub(super) fn of_mark(arbiter: Arc<Arbiter>, mark: LossMark) -> Self {
        Self::from_chunk_writer(ChunkWriter::of_mark(arbiter, mark))
    }

    /// Makes a writer that drops everything, for the time when there is no connection.
    pub fn null() -> Self {
        Self::from_chunk_writer(ChunkWriter::new(None, ExhaustedPolicy::Drop))
    }

    fn from_chunk_writer(chunk: ChunkWriter) -> Self {
        let chunk = NonNull::from(Box::leak(Box::new(chunk)));
        // SAFETY: the chunk writer lives until the writer is dropped, and is never accessed during
        // a call on the stream. The methods here ensure that; `Packet` and `Message` borrow the
        // writer.
        let stream = unsafe { Stream::new(chunk) };
        Self { stream, chunk, small_end: ptr::null_mut() }
    }

    /// Begins a packet without a guard, for code that cannot hold one, such as encoders in other
    /// languages.
    ///
    /// Call [`message`](Self::message) to write the packet, as often as necessary. The packet
    /// becomes readable only by [`end_packet`](Self::end_packet). If another packet begins before,
    /// or the writer is flushed or dropped, this packet is dropped and counted
    /// ([`abandoned_count`](Self::abandoned_count)).
    ///
    /// ```
    /// # use esatto_shm::TraceWriter;
    /// # let mut writer = TraceWriter::null();
    /// writer.begin_packet();
    /// if let Some(mut packet) = writer.message() {
    ///     packet.varint(8, 123); // timestamp
    /// }
    /// writer.end_packet();
    /// ```
    #[inline]
    pub fn begin_packet(&mut self) {
        self.small_end = ptr::null_mut();
        if self.chunk().is_in_packet() || !self.chunk_has_room() {
            self.prepare();
        }
        if self.chunk().has_chunk() {
            let size_field = self.stream.reserve(FRAGMENT_SIZE_LEN);
            // SAFETY: `prepare` left at least 12 bytes in the range, which is the payload of our
            // chunk.
            unsafe { write_size(size_field.as_ptr(), [0; FRAGMENT_SIZE_LEN]) };
            let chunk = self.chunk();
            chunk.begun += 1;
            let is_counted = chunk.position == Position::BetweenCounted;
            chunk.position = Position::InFragment(size_field);
            if !is_counted {
                chunk.publish_count();
            }
            if !chunk.owed.is_nothing() {
                self.write_owed();
            }
        } else {
            self.chunk().position = Position::InDroppedPacket;
        }
    }

    /// Returns the fields of the packet that was begun; `None` if there is none. Each call appends
    /// fields.
    #[inline]
    pub fn message(&mut self) -> Option<Message<'_>> {
        if self.chunk().is_in_packet() { Some(self.stream.root()) } else { None }
    }

    /// Ends the packet that was begun by [`begin_packet`](Self::begin_packet). Does nothing if
    /// there is none.
    #[inline]
    pub fn end_packet(&mut self) {
        if self.chunk().is_in_packet() {
            self.finish();
        }
    }

    /// As [`end_packet`](Self::end_packet), but keeps the size field of four bytes, so that the
    /// packet is not moved. It is three bytes longer. Use this after byte-wise writes, where the
    /// copy would stall until they are done.
    #[inline]
    pub fn end_packet_in_place(&mut self) {
        if self.chunk().is_in_packet() {
            self.finish_with(false);
        }
    }

    /// Gives the current chunk to the service, even if it is not full, and has everything sent
    /// soon.
    pub fn flush(&mut self) {
        self.flush_inner(None);
    }

    /// As [`flush`](Self::flush). `callback` runs when the service has copied the data. It never
    /// runs if the connection ends before, or if this is a null writer.
    pub fn flush_with(&mut self, callback: impl FnOnce() + Send + 'static) {
        self.flush_inner(Some(Box::new(callback)));
    }

    /// Between packets, begins the next chunk if the current one has at most `left` bytes left.
    /// Then a small packet need not be split into two fragments, whose first length would be sent
    /// as a patch. Returns true if the writer began a chunk.
    #[cold]
    #[inline(never)]
    pub fn begin_next_chunk(&mut self, left: usize) -> bool {
        let chunk = self.chunk();
        if !chunk.has_chunk() || chunk.is_in_packet() || self.stream.available() > left {
            return false;
        }
        let end = self.detach();
        let range = self.chunk().next_packet_range(end);
        // SAFETY: a range of our delegate; no message is open.
        unsafe { self.stream.reset(range) };
        self.allow_small_packets();
        self.chunk().has_chunk()
    }

    /// Returns the bytes written since the writer was made, including those of dropped packets.
    pub fn written(&self) -> u64 {
        self.stream.position() as u64
    }

    /// Returns how often the writer began to drop packets because no chunk was free.
    pub fn drop_count(&self) -> u64 {
        self.chunk_ref().drop_count
    }

    /// Returns the number of packets that were dropped because they were not ended, a guard was
    /// leaked, or a length exceeded 2^28 − 1.
    pub fn abandoned_count(&self) -> u64 {
        self.chunk_ref().abandoned_count
    }

    /// Returns true if packets were lost since the last call of
    /// [`accept_losses`](Self::accept_losses). Readers have then forgotten the incremental state of
    /// the sequence.
    pub fn has_lost(&self) -> bool {
        self.chunk_ref().has_lost
    }

    /// Notes that the last packet, which got through, starts the sequence over. Before that, no
    /// packet after a loss can be a [small one](Self::small_packet), because those are for events
    /// that need the state of their sequence.
    pub fn accept_losses(&mut self) {
        self.chunk().has_lost = false;
    }

    /// Returns true if the writer has no chunk because none was free at its last attempt.
    pub fn is_dropping(&self) -> bool {
        self.chunk_ref().is_dropping()
    }

    /// Returns the id in the chunk headers; 0 for a null writer.
    pub fn writer_id(&self) -> u16 {
        self.chunk_ref().writer.writer_id
    }

    /// Returns true if nothing written here will ever be sent: there was no connection when the
    /// writer was made, or it has ended.
    pub fn is_null(&self) -> bool {
        self.chunk_ref().is_null()
    }

    #[inline]
    pub(super) fn chunk(&mut self) -> &mut ChunkWriter {
        // SAFETY: valid until drop. No call on the stream runs here, and none can begin while the
        // reference borrows `self`.
        unsafe { self.chunk.as_mut() }
    }

    fn chunk_ref(&self) -> &ChunkWriter {
        // SAFETY: as in `chunk`.
        unsafe { self.chunk.as_ref() }
    }

    /// Returns true if the next packet can begin in the chunk.
    #[inline]
    fn chunk_has_room(&mut self) -> bool {
        let chunk = self.chunk();
        chunk.has_chunk()
            && chunk.begun < MAX_PACKETS_PER_CHUNK
            && !chunk.is_null()
            && self.stream.available() >= MIN_BYTES_FOR_PACKET
    }

    /// Handles the rare cases at the begin of a packet: a chunk is full or missing, or a packet was
    /// leaked.
    #[cold]
    #[inline(never)]
    fn prepare(&mut self) {
        if self.chunk().is_in_packet() {
            self.abandon();
        }
        if self.chunk_has_room() {
            return;
        }
        let end = self.detach();
        let range = self.chunk().next_packet_range(end);
        // SAFETY: a range of our delegate; no message is open.
        unsafe { self.stream.reset(range) };
    }

    /// Writes the fields that the writer itself adds to a packet (§9).
    #[cold]
    #[inline(never)]
    fn write_owed(&mut self) {
        self.chunk().forget_debt();
        let Owed { first_packet, loss } = self.chunk().owed;
        let mut message = self.stream.root();
        if loss != 0 {
            message.varint(PREVIOUS_PACKET_DROPPED, loss.into());
        }
        if first_packet {
            message.bool(FIRST_PACKET_ON_SEQUENCE, true);
        }
    }

    /// Ends the packet that was begun.
    #[inline]
    pub(super) fn finish(&mut self) {
        self.finish_with(true);
    }

    #[expect(clippy::cast_possible_truncation, reason = "a chunk has less than 64 KiB")]
    #[inline(always)]
    fn finish_with(&mut self, may_move: bool) {
        if self.stream.is_poisoned() {
            return self.abandon();
        }
        let end = self.stream.ptr();
        let chunk = self.chunk();
        let position = core::mem::replace(&mut chunk.position, Position::Between);
        let Position::InFragment(size_field) = position else {
            // The packet is dropped. Its parts in earlier chunks still wait for lengths.
            if chunk.patches.is_ready() {
                chunk.send_patches();
            }
            return;
        };
        let header = size_field.as_ptr();
        let size = end.addr() - header.addr() - FRAGMENT_SIZE_LEN;
        if may_move && size < ONE_BYTE_SIZE_LIMIT && chunk.fragment == FragmentFlags::NONE {
            // SAFETY: the size field is in the current range, as the packet began there, and `size`
            // bytes follow it up to the write position.
            unsafe { self.stream.compact(header, size) };
        } else {
            // SAFETY: the size field of the fragment being written, in the chunk that we hold.
            unsafe { write_size(header, wire::redundant_varint4(size as u32)) };
        }
        let end = self.stream.ptr();
        let room = self.stream.available() > 0;
        let chunk = self.chunk();
        chunk.fragment = FragmentFlags::NONE;
        chunk.owed = Owed::NOTHING;
        if !room {
            self.detach();
            self.chunk().close(end);
        } else {
            chunk.position = Position::BetweenCounted;
            chunk.publish_count();
            if chunk.patches.is_ready() {
                chunk.send_patches();
            }
            self.allow_small_packets();
        }
    }

    /// Drops the packet being written. If parts of it were given away, it is marked as dropped;
    /// otherwise it is taken back.
    #[cold]
    #[inline(never)]
    fn abandon(&mut self) {
        self.stream.clear_poison();
        let (begin, used) = (self.stream.begin().addr(), self.stream.used());
        let chunk = self.chunk();
        chunk.abandon_deferred();
        let position = core::mem::replace(&mut chunk.position, Position::Between);
        let Position::InFragment(size_field) = position else {
            if !chunk.is_dropping() {
                // A call of `Notify` panicked between two chunks of the packet.
                chunk.note_abandoned();
                self.detach();
            }
            self.chunk().settle_patches();
            return;
        };
        chunk.note_abandoned();
        // If a call of `Notify` panicked in the middle of the packet, the stream has lost the
        // chunk.
        let is_lost = size_field.addr().get().wrapping_sub(begin) > used;
        if chunk.fragment.contains(FragmentFlags::CONTINUES) || is_lost {
            self.detach();
            let chunk = self.chunk();
            chunk.give_back_dropped(size_field);
            chunk.settle_patches();
        } else {
            if chunk.patches.is_ready() {
                chunk.send_patches();
            }
            // The count stays and now announces the next packet.
            chunk.begun -= 1;
            chunk.position = Position::BetweenCounted;
            self.stream.rewind_to(size_field.addr().get() - begin);
        }
    }

    fn flush_inner(&mut self, callback: Option<FlushCallback>) {
        if self.chunk().is_in_packet() {
            self.abandon();
        }
        if self.chunk().owes_mark() && self.chunk_has_room() {
            self.begin_packet();
            self.end_packet();
        }
        let end = self.detach();
        self.chunk().close(end);
        self.mark_loss();
        if let Some(arbiter) = self.chunk().arbiter() {
            arbiter.flush_writer(callback);
        }
    }

    /// Without a chunk: tells a loss in a packet of its own, if there is one and a chunk is free.
    /// Perhaps no other packet follows.
    fn mark_loss(&mut self) {
        if !self.chunk().owes_mark() {
            return;
        }
        let Some(range) = self.chunk().range_for_mark() else { return };
        // SAFETY: a range of our delegate; no message is open.
        unsafe { self.stream.reset(range) };
        self.begin_packet();
        self.end_packet();
        let end = self.detach();
        self.chunk().close(end);
    }

    /// Takes the memory from the stream, and returns the stream's position. This comes before the
    /// chunk is given away, because that calls [`Notify`](crate::Notify), which may panic.
    fn detach(&mut self) -> *mut u8 {
        self.small_end = ptr::null_mut();
        let end = self.stream.ptr();
        // SAFETY: an empty range cannot be written to; no message is open.
        unsafe { self.stream.reset(Range::EMPTY) };
        end
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        self.chunk().give_up_deferred();
        self.flush_inner(None);
        let chunk = self.chunk();
        chunk.forget_debt();
        if let Some(arbiter) = chunk.arbiter() {
            match chunk.mark() {
                Some(mark) => arbiter.retire_marked_writer(mark),
                None => arbiter.retire_writer(chunk.writer),
            }
        }
        // SAFETY: leaked from a box in `from_chunk_writer`; the stream is not used after this.
        drop(unsafe { Box::from_raw(self.chunk.as_ptr()) });
    }
}

impl fmt::Debug for TraceWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceWriter")
            .field("writer_id", &self.writer_id())
            .field("dropping", &self.is_dropping())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{abi::PageSize, memory::PrivateRegion, service_region::ServiceRegion};

    #[test]
    fn chunk_ids_begin_at_0_and_wrap() {
        let region = Arc::new(PrivateRegion::new(16384));
        let arbiter = Arbiter::new(region.clone(), PageSize::DEFAULT, Arc::new(())).unwrap();
        let service = ServiceRegion::new(region, PageSize::DEFAULT).unwrap();
        let mut writer = arbiter.create_writer(1, ExhaustedPolicy::Drop);
        let next = |writer: &mut TraceWriter| {
            writer.new_packet();
            writer.flush();
            (0..4).find_map(|p| service.take_chunk(p, 0, &mut Vec::new()).ok()).unwrap().chunk_id
        };
        assert_eq!([next(&mut writer), next(&mut writer)], [0, 1]);
        writer.chunk().set_next_chunk_id(u32::MAX);
        assert_eq!([next(&mut writer), next(&mut writer)], [u32::MAX, 0]);
    }

    #[test]
    fn writers_move_between_threads() {
        fn assert_send<T: Send>() {}
        assert_send::<TraceWriter>();
        assert_send::<crate::Packet<'_>>();
    }
}
