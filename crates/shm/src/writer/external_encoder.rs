//! Packets written by code that brings its own encoder, in whatever language, and stores bytes itself.

use super::trace_writer::TraceWriter;

/// Room that [`TraceWriter::make_room`] can make in one piece: every chunk has it.
pub const MAX_ROOM: usize = 256;

/// The memory that a packet is being written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Where the memory begins that the packet has reached. What is between here and `next` is written.
    pub begin: *mut u8,
    /// Where the next byte goes.
    pub next: *mut u8,
    /// Where the memory ends.
    pub end: *mut u8,
    /// Bytes that the writer has written elsewhere before those at `begin`.
    pub written_before: usize,
}

impl TraceWriter {
    /// Where the bytes of the packet go that was begun by [`begin_packet`](Self::begin_packet).
    ///
    /// Valid until the next call on the writer. A packet that is being dropped has memory, too.
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

    /// Makes bytes that were stored in the [`room`](Self::room) part of the packet.
    ///
    /// # Safety
    ///
    /// - A packet was begun and has not ended, and no [`Message`](esatto_protozero::Message) of it was leaked.
    /// - The first `n` bytes from `next` are written, and are not beyond `end`.
    #[inline]
    pub unsafe fn advance(&mut self, n: usize) {
        // SAFETY: the caller's promise; messages borrow the writer.
        unsafe { self.stream.advance(n) };
    }

    /// Makes room for `n` bytes in one piece, in the next chunk if this one has less. Only in a packet.
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

    /// Gives up the packet being written: it is dropped, and counted, when it ends.
    pub fn void_packet(&mut self) {
        // A message that is leaked voids its packet.
        core::mem::forget(self.message());
    }
}
