//! The shared memory buffer between a producer and the tracing service.
//!
//! A producer and the service share one piece of memory. It is divided into pages, and each page
//! into chunks ([`abi`]). A [`TraceWriter`] encodes packets directly into its chunk. When the chunk
//! is full, the [`Arbiter`] marks it complete and queues it. The thread of the connection polls the
//! arbiter and tells the service, which copies the chunk ([`ServiceRegion`]) and frees it.
//!
//! ```text
//! producer                                      service
//!   TraceWriter ─► chunk ─► Complete              ServiceRegion::take_chunk ─► copy, chunk free again
//!                  Arbiter ─► Outgoing ─ ─ ─ ─ ─ ─►  (page, chunk, buffer)
//! ```
//!
//! The two sides synchronize only through the page words, whose states are types here ([`Smb`],
//! [`Chunk`]). The memory is a [`MappedRegion`] between processes, a [`PrivateRegion`] within one
//! process, or a model of loom atomics in `tests/loom/`.
//!
//! This crate knows no sockets and no sessions. In the content of packets it knows only the two
//! fields that a writer adds itself. The contract is `docs/spec/shared-memory.md`.
//!
//! # How to test the memory orderings
//!
//! `RUSTFLAGS="--cfg esatto_loom" cargo test -p esatto-shm --test 'loom*' --release`

// The models do not use all of this crate.
#![cfg_attr(esatto_loom, allow(dead_code))]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

pub mod abi;
mod arbiter;
mod chunk_states;
mod commit;
mod error;
mod fragments;
mod memory;
pub mod orderings;
mod prefetch;
mod scrape;
mod service_region;
pub mod size;
pub mod sync;
mod writer;

pub use arbiter::{Arbiter, ExhaustedPolicy, Notify, Options};
pub use chunk_states::{Chunk, Skip, Smb, announce, state};
pub use commit::{ChunkToMove, ChunkToPatch, CommitRequest, FlushCallback, MAX_PATCHES_PER_ENTRY, Outgoing, Patch};
pub use error::{Error, Lost};
pub use fragments::{Fragment, Fragments};
#[cfg(esatto_loom)]
pub use memory::LoomRegion;
pub use memory::Region;
#[cfg(all(feature = "faults", not(esatto_loom), any(target_os = "linux", target_os = "android")))]
pub use memory::faults;
#[cfg(all(not(esatto_loom), any(target_os = "linux", target_os = "android")))]
pub use memory::{MEMFD_NAME, MappedRegion, require_memory};
#[cfg(not(esatto_loom))]
pub use memory::{Memory, PrivateRegion};
pub use prefetch::prefetch;
pub use service_region::{ChunkInfo, HeldPayload, MAX_CHUNK_DATA, ServiceRegion};
pub use writer::TraceWriter;
#[cfg(not(esatto_loom))]
pub use writer::{Deferred, DeferredValue, MAX_ROOM, Packet, Room, SmallPacket};
