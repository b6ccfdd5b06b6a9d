//! The writer of one sequence: encodes packets straight into its chunk.

#[cfg(not(esatto_loom))]
mod chunk;
mod create;
#[cfg(not(esatto_loom))]
mod deferred;
#[cfg(not(esatto_loom))]
mod deferred_list;
#[cfg(not(esatto_loom))]
mod external_encoder;
#[cfg(not(esatto_loom))]
mod fragment_flags;
mod loss_marks;
#[cfg(not(esatto_loom))]
mod packet;
#[cfg(not(esatto_loom))]
mod small_packet;
#[cfg_attr(esatto_loom, path = "loom_writer.rs")]
mod trace_writer;

#[cfg(not(esatto_loom))]
pub use deferred_list::{Deferred, DeferredValue};
#[cfg(not(esatto_loom))]
pub use external_encoder::{MAX_ROOM, Room};
#[cfg(not(esatto_loom))]
pub use packet::Packet;
#[cfg(not(esatto_loom))]
pub use small_packet::SmallPacket;
pub use trace_writer::TraceWriter;
