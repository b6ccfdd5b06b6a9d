//! The tracing service as a value: sessions, matching and central buffers, without I/O and clocks.
#![forbid(unsafe_code)]

pub mod api;
pub mod buffer;
pub mod shared_buffer;

pub use api::{
    Attachment, Body, CallId, ClientId, ConsumerCall, FileId, Input, LogLevel, MemoryKind, Now, Output, Outputs, Peer,
    ProducerCall, Reply, ServiceConfig, SystemFacts, TimerClock, TimerId,
};
pub use shared_buffer::{ChunkHeader, ScrapedChunk, SharedBuffer, granted_sizes};
