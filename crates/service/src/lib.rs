//! The tracing service as a value: sessions, matching and central buffers, without I/O and clocks.
//!
//! [`Service`] takes [`Input`]s (messages, disconnects, expired timers) and produces [`Output`]s
//! (replies, commands, file writes, timers to arm). [`api`] says how to drive it.
//! `docs/spec/service.md` specifies its behaviour. [`buffer`] explains how data get from a commit
//! to a reader.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

pub mod api;
pub mod buffer;
mod client_text;
mod config_refusal;
mod consumer;
mod context;
mod encode;
mod fair_share;
mod frame_limits;
pub mod holdings;
mod ids;
mod machines;
mod name_pattern;
mod observer;
mod priority_boost;
mod producer;
mod random;
mod read;
mod service;
mod session;
pub mod shared_buffer;
mod timers;

pub use api::{
    Attachment, Body, CallId, ClientId, ConsumerCall, FileId, Input, LogLevel, MemoryKind, Now, Output, Outputs, Peer,
    PriorityBoost, ProducerCall, RelayCall, Reply, ServiceConfig, SystemFacts, TimerClock, TimerId,
};
pub use config_refusal::check_config;
pub use observer::{PassEnd, Step};
pub use service::{Metrics, Service};
pub use session::activity::Recorded;
pub use shared_buffer::{ChunkHeader, Payload, ScrapedChunk, SharedBuffer, granted_sizes};
