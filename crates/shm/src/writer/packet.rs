//! [`Packet`]: the guard of a packet being written.

use esatto_protozero::Message;

use super::trace_writer::TraceWriter;

/// Packet being written. It ends when the guard is dropped.
///
/// If the guard, or a message in the packet, is leaked (`core::mem::forget`), the packet is dropped
/// and counted ([`TraceWriter::abandoned_count`]). The trace stays correct.
#[derive(Debug)]
pub struct Packet<'w> {
    pub(super) writer: &'w mut TraceWriter,
}

impl TraceWriter {
    /// Begins a packet. The borrow ensures that the previous packet has ended. If its guard was
    /// leaked, that packet is dropped.
    #[inline]
    pub fn new_packet(&mut self) -> Packet<'_> {
        self.begin_packet();
        Packet { writer: self }
    }
}

impl Packet<'_> {
    /// Returns the packet's fields. It may be called again when the message was dropped, and
    /// appends fields then.
    #[inline]
    pub fn message(&mut self) -> Message<'_> {
        self.writer.stream.root()
    }

    /// Returns the packet as a generated writer, such as `TracePacketWriter`.
    #[inline]
    pub fn typed<'a, W: From<Message<'a>>>(&'a mut self) -> W {
        W::from(self.message())
    }
}

impl<'a> From<&'a mut Packet<'_>> for Message<'a> {
    #[inline]
    fn from(packet: &'a mut Packet<'_>) -> Self {
        packet.message()
    }
}

impl Drop for Packet<'_> {
    #[inline]
    fn drop(&mut self) {
        self.writer.finish();
    }
}
