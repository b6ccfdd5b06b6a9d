//! Custom data sources: packets of any kind, recorded when a session asks for them by name.
//!
//! Track events suffice for most programs. Write a data source if you need a custom configuration,
//! life cycle or packet: a sampler, statistics of a subsystem, a stream of records in the program's
//! own schema.
//!
//! ```
//! use esatto::{DataSource, Setup, Source, SourceConfig};
//!
//! /// Reads temperatures while a session wants them.
//! struct Thermometer {
//!     sensors: Vec<u8>,
//! }
//!
//! impl DataSource for Thermometer {
//!     type Config = (); // nothing of the session's config matters
//!     type ThreadState = ();
//!     type IncrementalState = ();
//!
//!     fn setup(setup: &Setup<'_, ()>) -> Self {
//!         Self { sensors: vec![setup.instance() as u8] }
//!     }
//! }
//!
//! static TEMPERATURE: Source<Thermometer> = Source::new("com.example.temperature");
//!
//! TEMPERATURE.register()?; // services can list it from now on
//!
//! // Anywhere, on any thread. Costs a load and a branch while nobody records it.
//! TEMPERATURE.trace(|context| {
//!     let now = context.now_ns();
//!     context.packet(|packet| {
//!         packet.timestamp(now);
//!         packet.for_testing().str("21.5 degrees");
//!     });
//! });
//! # Ok::<(), esatto::Error>(())
//! ```
//!
//! # Life of an instance
//!
//! A session whose config names the data source makes an *instance* of it, in each process that
//! registered it. Up to 8 instances of a type live at the same time. Further ones, and those whose
//! config cannot be used, are *refused*: they record nothing, and the session starts and stops as
//! if they did not exist ([`Source::refused`] counts them).
//!
//! ```text
//! setup ─► start ─► trace points record ─► stop ─ (until `Stop` is dropped, trace points still record) ─► gone
//! ```
//!
//! The library's control thread calls all of these, and they must not block. No lock is held during
//! the calls, so they may trace. The data source is shared (`&self`) with trace points that ask for
//! it ([`Context::source`]). A panic in one of them is caught.
//!
//! The contract is `docs/spec/client-library.md` §§5-10.

mod adoption;
mod any_source;
pub(crate) mod begin_end;
mod buffer_exhausted;
mod config;
mod context;
mod listed_categories;
mod registry;
pub(crate) mod session_observer;
mod source;
mod source_instances;
mod stop_and_flush;
mod track_event;
mod waits;
mod writer;

/// Longest descriptor of a data source. With the rest of its message, it fits into the longest
/// frame that services take (`docs/spec/wire-protocol.md` §2).
pub(crate) const MAX_DESCRIPTOR_BYTES: usize = 120 << 10;

pub(crate) use adoption::canonical;
pub(crate) use any_source::{AnySource, Assignment, HeldInstances};
pub use buffer_exhausted::BufferExhausted;
pub use config::{Field, SourceConfig};
pub use context::{Context, Packets, Parts};
pub(crate) use registry::{HeldSources, hold_for_fork, registered};
pub use source::{DataSource, Setup, Source};
pub use stop_and_flush::{CloneTarget, Flush, FlushInitiator, FlushReason, Stop};
pub(crate) use stop_and_flush::{Completion, Done, send_completions_by};
pub(crate) use track_event::set_buffer_exhausted;
pub(crate) use waits::{Awaited, wait};
