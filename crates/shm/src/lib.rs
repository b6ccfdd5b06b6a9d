//! The shared memory buffer between a producer and the tracing service.

pub mod abi;
#[cfg(not(esatto_loom))]
mod arbiter;
#[cfg(not(esatto_loom))]
mod chunk_writer;
#[cfg(not(esatto_loom))]
mod commit;
mod error;
mod fragments;
#[cfg(not(esatto_loom))]
mod ids;
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
mod mapped;
#[cfg(not(esatto_loom))]
mod patches;
#[cfg(not(esatto_loom))]
mod pending;
mod region;
mod service;
pub mod size;
mod smb;
pub mod sync;
#[cfg(not(esatto_loom))]
mod writer;

#[cfg(not(esatto_loom))]
pub use arbiter::{Arbiter, ExhaustedPolicy, Options};
#[cfg(not(esatto_loom))]
pub use commit::{
    ChunkToMove, ChunkToPatch, CommitRequest, CommitSink, FlushCallback, MAX_PATCHES_PER_ENTRY,
    Patch,
};
pub use error::Error;
pub use fragments::{Fragment, Fragments};
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
pub use mapped::{MEMFD_NAME, MappedRegion};
#[cfg(esatto_loom)]
pub use region::LoomRegion;
pub use region::Region;
#[cfg(not(esatto_loom))]
pub use region::{Memory, PrivateRegion};
pub use service::{ChunkInfo, MAX_CHUNK_DATA, ServiceRegion};
pub use smb::{Chunk, Skip, Smb, state};
#[cfg(not(esatto_loom))]
pub use writer::{Packet, TraceWriter};
