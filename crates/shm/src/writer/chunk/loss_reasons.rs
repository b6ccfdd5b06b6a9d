//! Reasons of a loss: the bits of `TracePacket.previous_packet_dropped`.

/// Bit of `previous_packet_dropped`: something was lost.
pub(super) const LOSS_PRESENT: u16 = 1;
/// Bit of `previous_packet_dropped`: the writer could not finish a packet.
pub(super) const LOSS_WRITER_ABORT: u16 = 128;
/// Bit of `previous_packet_dropped`: the shared memory was full.
pub(super) const LOSS_SMB_FULL: u16 = 256;
