//! What applications write packets with (`docs/spec/shared-memory.md` §9).

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
    abi::FRAGMENT_SIZE_LEN,
    arbiter::{Arbiter, ExhaustedPolicy, WriterRef},
    commit::FlushCallback,
};

/// A packet is not begun where fewer bytes are left (§9).
const MIN_BYTES_FOR_PACKET: usize = 12;
/// Fragments shorter than this get a one-byte size.
pub(super) const ONE_BYTE_SIZE_LIMIT: usize = 127;
/// `TracePacket.previous_packet_dropped`.
const PREVIOUS_PACKET_DROPPED: u32 = 42;
/// `TracePacket.first_packet_on_sequence`.
const FIRST_PACKET_ON_SEQUENCE: u32 = 87;

const _: () = assert!(MIN_BYTES_FOR_PACKET > FRAGMENT_SIZE_LEN);

/// Writes the packets of one sequence, straight into shared memory.
///
/// Used by one thread at a time. A packet is written between [`new_packet`](Self::new_packet) and the end of the [`Packet`](crate::Packet). Between
/// chunk boundaries nothing allocates, locks or calls the kernel; at a boundary one short lock is taken.
///
/// A writer never fails: without memory it drops packets, and says so in the first one that gets through
/// (`previous_packet_dropped`).
///
/// Dropping the writer flushes it.
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
    /// The stream's delegate. From `Box::leak`, freed on drop. Accessed here only between calls on the stream.
    chunk: NonNull<ChunkWriter>,
    /// Where the content of a small packet has to end at the latest, in the chunk that the writer has; null if the next packet cannot be a small one.
    pub(super) small_end: *mut u8,
}

// SAFETY: a writer owns all it points to, or shares it through `Arc<Arbiter>`, which is `Send` and `Sync`; its chunk is
// its own, whichever thread it lives on.
unsafe impl Send for TraceWriter {}

impl TraceWriter {
    pub(super) fn new(arbiter: Arc<Arbiter>, writer: WriterRef, policy: ExhaustedPolicy) -> Self {
        Self::from_chunk_writer(ChunkWriter::new(Some((arbiter, writer)), policy))
    }

    /// A writer that drops everything: for the time when there is no connection.
    pub fn null() -> Self {
        Self::from_chunk_writer(ChunkWriter::new(None, ExhaustedPolicy::Drop))
    }

    fn from_chunk_writer(chunk: ChunkWriter) -> Self {
        let chunk = NonNull::from(Box::leak(Box::new(chunk)));
        // SAFETY: the chunk writer lives until the writer is dropped, and is never accessed during a call on the stream: the
        // methods here take care, and `Packet` and `Message` borrow the writer.
        let stream = unsafe { Stream::new(chunk) };
        Self { stream, chunk, small_end: ptr::null_mut() }
    }

    /// Begins a packet without a guard: for code that cannot hold one, such as encoders in other languages.
    ///
    /// The packet is written by [`message`](Self::message), as often as it takes, and becomes readable by
    /// [`end_packet`](Self::end_packet) only. If another one is begun before, or the writer is flushed or dropped, it is dropped
    /// and counted ([`abandoned_count`](Self::abandoned_count)).
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
        let chunk = self.chunk();
        if chunk.is_in_packet()
            || !chunk.has_chunk()
            || chunk.begun >= MAX_PACKETS_PER_CHUNK
            || chunk.is_null()
            || self.stream.available() < MIN_BYTES_FOR_PACKET
        {
            self.prepare();
        }
        if self.chunk().has_chunk() {
            let size_field = self.stream.reserve(FRAGMENT_SIZE_LEN);
            // SAFETY: `prepare` left at least 12 bytes in the range, which is the payload of our chunk.
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

    /// The fields of the packet that was begun; `None` if there is none. What is written later is appended.
    #[inline]
    pub fn message(&mut self) -> Option<Message<'_>> {
        if self.chunk().is_in_packet() { Some(self.stream.root()) } else { None }
    }

    /// Ends the packet that was begun by [`begin_packet`](Self::begin_packet); nothing happens if there is none.
    #[inline]
    pub fn end_packet(&mut self) {
        if self.chunk().is_in_packet() {
            self.finish();
        }
    }

    /// As [`end_packet`](Self::end_packet), without moving the packet to where a shorter size field would end: it is three bytes longer. For who has just written it byte by
    /// byte, as a copy would have to wait for that.
    #[inline]
    pub fn end_packet_in_place(&mut self) {
        if self.chunk().is_in_packet() {
            self.finish_with(false);
        }
    }

    /// Gives the current chunk to the service, even if it is not full, and has everything sent soon.
    pub fn flush(&mut self) {
        self.flush_inner(None);
    }

    /// As [`flush`](Self::flush); `callback` runs when the service has copied the data. It never runs if the connection ends before, or if
    /// this writer is a null writer.
    pub fn flush_with(&mut self, callback: impl FnOnce() + Send + 'static) {
        self.flush_inner(Some(Box::new(callback)));
    }

    /// Between packets: begins the next chunk, if the current one has no more than `left` bytes left, so that a small packet does not have to be
    /// written in two pieces, whose first length would have to be sent behind. Returns whether it did, and there is a chunk.
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

    /// Bytes written since the writer was made, those of dropped packets included.
    pub fn written(&self) -> u64 {
        self.stream.position() as u64
    }

    /// Times that the writer began to drop packets for want of a chunk.
    pub fn drop_count(&self) -> u64 {
        self.chunk_ref().drop_count
    }

    /// Packets that were dropped because they were not ended, a guard of theirs was leaked, or a length exceeded 2^28 − 1.
    pub fn abandoned_count(&self) -> u64 {
        self.chunk_ref().abandoned_count
    }

    /// Whether the writer has no chunk because none was free when it last looked.
    pub fn is_dropping(&self) -> bool {
        self.chunk_ref().is_dropping()
    }

    /// The id in the chunk headers; 0 for a null writer.
    pub fn writer_id(&self) -> u16 {
        self.chunk_ref().writer.writer_id
    }

    /// True if nothing written here will ever leave: there was no connection when the writer was made, or it is gone.
    pub fn is_null(&self) -> bool {
        self.chunk_ref().is_null()
    }

    #[inline]
    pub(super) fn chunk(&mut self) -> &mut ChunkWriter {
        // SAFETY: valid until drop. The stream's calls are over when we are here, and `self` is borrowed while the
        // reference lives, so that no other can begin.
        unsafe { self.chunk.as_mut() }
    }

    fn chunk_ref(&self) -> &ChunkWriter {
        // SAFETY: as in `chunk`.
        unsafe { self.chunk.as_ref() }
    }

    /// What is rare at the begin of a packet: a chunk is full, missing, or a packet was leaked.
    #[cold]
    #[inline(never)]
    fn prepare(&mut self) {
        if self.chunk().is_in_packet() {
            self.abandon();
        }
        let available = self.stream.available();
        let chunk = self.chunk();
        if chunk.has_chunk()
            && chunk.begun < MAX_PACKETS_PER_CHUNK
            && !chunk.is_null()
            && available >= MIN_BYTES_FOR_PACKET
        {
            return;
        }
        let end = self.detach();
        let range = self.chunk().next_packet_range(end);
        // SAFETY: a range of our delegate; no message is open.
        unsafe { self.stream.reset(range) };
    }

    /// The fields that the writer itself puts into a packet (§9).
    #[cold]
    #[inline(never)]
    fn write_owed(&mut self) {
        let Owed { first_packet, loss } = self.chunk().owed;
        let mut message = self.stream.root();
        if loss != 0 {
            message.varint(PREVIOUS_PACKET_DROPPED, loss.into());
        }
        if first_packet {
            message.bool(FIRST_PACKET_ON_SEQUENCE, true);
        }
    }

    /// Ends the packet; there is one.
    #[inline]
    pub(super) fn finish(&mut self) {
        self.finish_with(true);
    }

    #[inline(always)]
    fn finish_with(&mut self, may_move: bool) {
        if self.stream.is_poisoned() {
            return self.abandon();
        }
        let end = self.stream.ptr();
        let chunk = self.chunk();
        let position = core::mem::replace(&mut chunk.position, Position::Between);
        let Position::InFragment(size_field) = position else {
            // Dropped. Its parts in earlier chunks still wait for lengths.
            if chunk.patches.is_ready() {
                chunk.send_patches();
            }
            return;
        };
        let header = size_field.as_ptr();
        let size = end.addr() - header.addr() - FRAGMENT_SIZE_LEN;
        if may_move && size < ONE_BYTE_SIZE_LIMIT && chunk.fragment == FragmentFlags::NONE {
            // SAFETY: the size field is in the current range, as the packet began there, and `size` bytes follow it up to
            // the write position.
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

    /// The packet being written is void: as if it had never begun, or, if parts of it are gone already, marked as dropped.
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
                // A sink panicked between two chunks of the packet.
                chunk.note_abandoned();
                self.detach();
            }
            self.chunk().settle_patches();
            return;
        };
        chunk.note_abandoned();
        // If a sink panicked in the middle of the packet the stream has lost the chunk.
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
            // The count stays: it now announces the next packet.
            chunk.begun -= 1;
            chunk.position = Position::BetweenCounted;
            self.stream.rewind_to(size_field.addr().get() - begin);
        }
    }

    fn flush_inner(&mut self, callback: Option<FlushCallback>) {
        if self.chunk().is_in_packet() {
            self.abandon();
        }
        let end = self.detach();
        self.chunk().close(end);
        if let Some(arbiter) = self.chunk().arbiter() {
            arbiter.flush_writer(callback);
        }
    }

    /// The stream's memory will be given away, which may call a sink, which may panic: takes it from the stream first, and returns
    /// where the stream was.
    fn detach(&mut self) -> *mut u8 {
        self.small_end = ptr::null_mut();
        let end = self.stream.ptr();
        // SAFETY: nothing can be written to no bytes; no message is open.
        unsafe { self.stream.reset(Range::EMPTY) };
        end
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        self.chunk().give_up_deferred();
        self.flush_inner(None);
        let chunk = self.chunk();
        let writer = chunk.writer;
        if let Some(arbiter) = chunk.arbiter() {
            arbiter.retire_writer(writer);
        }
        // SAFETY: leaked from a box in `from_chunk_writer`; the stream is not used any more.
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
