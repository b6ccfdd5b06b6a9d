//! Reservations of four bytes in a packet, whose value comes later.

use super::{
    deferred_list::{Deferred, DeferredValue},
    packet::Packet,
    trace_writer::TraceWriter,
};
use crate::abi::{FRAGMENT_SIZE_LEN, PATCH_SIZE};

impl TraceWriter {
    /// Appends four bytes to the packet being written. [`fill_deferred`](Self::fill_deferred) tells
    /// their value later, during the packet or after it. This is for lengths that are not those of
    /// a [`Message`](esatto_protozero::Message), as encoders in other languages have them.
    ///
    /// Returns `None` if no packet was begun, or it is being dropped.
    ///
    /// The bytes are zero until then. As long as the writer has their chunk, the value is written
    /// into it. Later it is sent as a patch (`docs/spec/shared-memory.md` §11), in its turn. Until
    /// then the service withholds the packet, and the writer's later packets, from readers.
    ///
    /// A reservation that is given up gets [`DeferredValue::EMPTY`]. This happens when the writer
    /// is dropped, and when 16384 patches wait for one reservation. It also happens when a packet
    /// asks for more while 1024 are open, which drops that packet. The last two cases are counted
    /// ([`abandoned_count`](Self::abandoned_count)).
    ///
    /// Allocates, unless a reservation was open before.
    ///
    /// ```
    /// # use esatto_shm::{DeferredValue, TraceWriter};
    /// # let mut writer = TraceWriter::null();
    /// let mut packet = writer.new_packet();
    /// packet.message().raw(&[0x0a]); // field 1, of unknown length
    /// let length = packet.reserve_deferred();
    /// packet.message().raw(b"content");
    /// if let (Some(length), Some(value)) = (length, DeferredValue::length(7)) {
    ///     packet.fill_deferred(length, value);
    /// }
    /// ```
    pub fn reserve_deferred(&mut self) -> Option<Deferred> {
        if !self.can_defer() {
            return None;
        }
        let at = self.stream.reserve(PATCH_SIZE).as_ptr();
        // `None` if the chunk was full, and there was no other.
        self.chunk().size_field()?;
        // SAFETY: just reserved in the current range, which is in the chunk as long as there is a
        // fragment.
        Some(unsafe { self.chunk().open_deferred(at) })
    }

    /// As [`reserve_deferred`](Self::reserve_deferred), for four bytes that the packet has already:
    /// they begin `back` bytes before its end.
    ///
    /// Returns `None` also if they are not all in the chunk that the packet has reached. Call it
    /// between messages.
    pub fn defer_bytes(&mut self, back: usize) -> Option<Deferred> {
        if !self.can_defer() {
            return None;
        }
        let end = self.stream.ptr();
        let fragment = end.addr() - self.chunk().size_field()?.addr().get() - FRAGMENT_SIZE_LEN;
        if !(PATCH_SIZE..=fragment).contains(&back) {
            return None;
        }
        // SAFETY: the fragment has more bytes than that before `end`, by the comparison above.
        let at = unsafe { end.sub(back) };
        // SAFETY: as above, and it is in the chunk.
        Some(unsafe { self.chunk().open_deferred(at) })
    }

    /// Tells the value of a reservation. Does nothing if the packet was dropped, the reservation
    /// was given up or belongs to another writer, or the connection was lost.
    ///
    /// Between packets, a value that is sent as a patch is queued at once. In a packet, it is
    /// queued with the next chunk or at the end of the packet.
    pub fn fill_deferred(&mut self, deferred: Deferred, value: DeferredValue) {
        let chunk = self.chunk();
        chunk.fill_deferred(&deferred, value);
        if !chunk.is_in_packet() && chunk.patches.is_ready() {
            chunk.send_patches();
        }
    }

    /// Returns true if there is a packet that can have another reservation.
    fn can_defer(&mut self) -> bool {
        if self.chunk().size_field().is_none() || self.stream.is_poisoned() {
            return false;
        }
        let full = self.chunk().deferred.is_full();
        if full {
            self.chunk().give_up_deferred();
            // A message that is leaked voids its packet.
            core::mem::forget(self.stream.root());
        }
        !full
    }
}

impl Packet<'_> {
    /// See [`TraceWriter::reserve_deferred`].
    pub fn reserve_deferred(&mut self) -> Option<Deferred> {
        self.writer.reserve_deferred()
    }

    /// See [`TraceWriter::defer_bytes`].
    pub fn defer_bytes(&mut self, back: usize) -> Option<Deferred> {
        self.writer.defer_bytes(back)
    }

    /// See [`TraceWriter::fill_deferred`]. The reservation may be one of an earlier packet.
    pub fn fill_deferred(&mut self, deferred: Deferred, value: DeferredValue) {
        self.writer.fill_deferred(deferred, value);
    }
}
