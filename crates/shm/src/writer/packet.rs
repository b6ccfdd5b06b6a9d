//! The guard of a packet.

use esatto_protozero::Message;

use super::trace_writer::TraceWriter;

/// A packet being written; ends when it is dropped.
///
/// If it, or a message in it, is leaked (`core::mem::forget`), the packet is dropped and counted
/// ([`TraceWriter::abandoned_count`]); nothing wrong gets into the trace.
#[derive(Debug)]
pub struct Packet<'w> {
    pub(super) writer: &'w mut TraceWriter,
}

impl TraceWriter {
    /// Begins a packet. The previous one has ended, by the borrow; if it was leaked it is dropped.
    #[inline]
    pub fn new_packet(&mut self) -> Packet<'_> {
        self.begin_packet();
        Packet { writer: self }
    }
}

impl Packet<'_> {
    /// The packet's fields. May be called again when the message was dropped; what is written then is appended.
    #[inline]
    pub fn message(&mut self) -> Message<'_> {
        self.writer.stream.root()
    }

    /// The packet as a generated writer, such as `TracePacketWriter`.
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
