//! The shared memory buffer between a producer and the tracing service.

pub mod abi;
mod error;
mod fragments;
mod ids;
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
mod mapped;
mod region;
mod service;
pub mod size;
mod smb;
pub mod sync;

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
