//! Access to a packet's memory for programs that have their own encoder, in any language, and store
//! bytes themselves.

use super::trace_writer::TraceWriter;

/// Largest room that [`TraceWriter::make_room`] makes in one piece. Every chunk has so much.
pub const MAX_ROOM: usize = 256;

/// Memory to which a packet is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// First byte of the memory that the packet has reached. The bytes from here to `next` are
    /// written.
    pub begin: *mut u8,
    /// Address of the next byte.
    pub next: *mut u8,
    /// End of the memory.
    pub end: *mut u8,
    /// Number of bytes that the writer has written elsewhere before those at `begin`.
    pub written_before: usize,
}

impl TraceWriter {
    /// Returns the memory for the packet that was begun by [`begin_packet`](Self::begin_packet).
    ///
    /// It is valid until the next call on the writer. A packet that is being dropped also has
    /// memory.
    ///
    /// ```
    /// # use esatto_shm::TraceWriter;
    /// # let mut writer = TraceWriter::null();
    /// writer.begin_packet();
    /// writer.make_room(2);
    /// // SAFETY: there is room for two bytes.
    /// unsafe { writer.room().next.cast::<[u8; 2]>().write_unaligned([0x40, 123]) }; // timestamp
    /// // SAFETY: these were written.
    /// unsafe { writer.advance(2) };
    /// writer.end_packet();
    /// ```
    #[must_use]
    #[inline]
    pub fn room(&self) -> Room {
        let (next, used) = (self.stream.ptr(), self.stream.used());
        Room {
            begin: self.stream.begin(),
            next,
            end: next.wrapping_add(self.stream.available()),
            written_before: self.stream.position() - used,
        }
    }

    /// Adds bytes to the packet that were stored in the [`room`](Self::room).
    ///
    /// # Safety
    ///
    /// - A packet was begun and has not ended, and no [`Message`](esatto_protozero::Message) of it
    ///   was leaked.
    /// - The first `n` bytes from `next` are written, and are not beyond `end`.
    #[inline]
    pub unsafe fn advance(&mut self, n: usize) {
        // SAFETY: the caller's promise; messages borrow the writer.
        unsafe { self.stream.advance(n) };
    }

    /// Makes room for `n` bytes in one piece, in the next chunk if this one has less. Call it only
    /// in a packet.
    ///
    /// # Panics
    ///
    /// If `n` is more than [`MAX_ROOM`].
    pub fn make_room(&mut self, n: usize) {
        assert!(n <= MAX_ROOM, "no more can be promised");
        if self.stream.available() < n {
            self.stream.reserve(n);
            self.stream.rewind_to(self.stream.used() - n);
        }
    }

    /// Gives up the packet being written. It is dropped and counted when it ends.
    pub fn void_packet(&mut self) {
        // A message that is leaked voids its packet.
        core::mem::forget(self.message());
    }
}
