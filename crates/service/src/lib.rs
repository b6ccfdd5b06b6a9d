//! The tracing service as a value: sessions, matching and central buffers, without I/O and clocks.
//!
//! [`Service`] takes [`Input`]s (messages, disconnects, expired timers) and produces [`Output`]s (replies, commands,
//! file writes, timers to arm); [`api`] says how it is driven. What it does with them is specified in
//! `docs/spec/service.md`; what happens to data between commit and reading is the matter of [`buffer`].
#![forbid(unsafe_code)]

mod admission;
pub mod api;
pub mod buffer;
mod clone;
mod commit;
mod compression;
mod concurrent;
mod config_check;
mod consumer;
mod context;
mod drain;
mod enable;
mod file_output;
mod flush;
mod frame_limits;
#[doc(hidden)]
pub mod fuzz;
mod guarded_names;
mod ids;
#[doc(hidden)]
pub mod inspect;
mod instances;
mod lifecycle;
mod machines;
mod name_pattern;
mod names;
mod opening;
mod packet_check;
mod pass;
mod priority;
#[doc(hidden)]
pub mod probe;
mod producer;
mod producer_calls;
mod query;
mod random;
mod read;
mod registry;
mod scrape;
mod sequence_ids;
mod service;
mod service_packets;
mod session;
mod set_up;
pub mod shared_buffer;
mod shares;
mod shm_adapter;
mod sinks;
mod stamp;
mod trace_filter;
mod triggers;
mod writers;

pub use api::{
    Attachment, Body, CallId, ClientId, ConsumerCall, FileId, Input, LogLevel, MemoryKind, Now, Output, Outputs, Peer,
    PriorityBoost, ProducerCall, RelayCall, Reply, ServiceConfig, SystemFacts, TimerClock, TimerId,
};
pub use service::Service;
pub use shared_buffer::{ChunkHeader, Payload, ScrapedChunk, SharedBuffer, granted_sizes};
