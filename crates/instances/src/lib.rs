//! Data source instances, as threads that trace see them.
//!
//! A session makes an *instance* of each data source that it wants from this process. The instances
//! of one data source are in a fixed table ([`Slots`]), and a word says which of them record
//! ([`Recording`]). The control thread writes both, and every thread that traces reads them. A
//! thread keeps one [writer](InstanceWriter) per instance. Each slot has a [`Stamp`], and each
//! writer has the stamp that it was made for: if the two are equal, nothing has changed.
//!
//! The state of a thread ([`ThreadState`]) belongs to the thread, which enters it without atomic
//! read-modify-write operations. The control thread can take it while the thread is not in a trace
//! point ([`BiasedLock`]). The states of all threads are in a [`ThreadTable`].
//!
//! This crate is correct because of its memory orderings and the order of its steps. It knows
//! nothing of events, packets or sessions: the SDK supplies a [`Sequence`] and the [`Source`]s, and
//! declares its table with [`thread_gate!`] and [`thread_table!`].
//!
//! # Guarantees
//!
//! Instances start, stop and follow each other in a slot while threads trace, flush and end:
//!
//! - An event goes only to an instance that records it. If another instance has come to the slot,
//!   the event goes to that one only if it records the event. It never goes to a writer of an old
//!   instance once its successor is known to record the event.
//! - A thread that sees that an instance records finds this instance complete in its slot.
//! - An event that began before the end of its instance is in the trace whole or not at all.
//!   Nothing waits for it.
//! - When an instance has ended, each thread that is not in a trace point has returned its chunk.
//!   Each other thread returns it when it next flushes, traces into the slot or ends, or when a
//!   flush finds it outside of trace points.
//! - A flush covers every event that happened before it, on any thread. The event is in a chunk
//!   that was handed over, or is finished in a chunk that a service can read. This holds while
//!   threads end.
//!
//! Loom checks these guarantees with the code of this crate above the real arbiter and the real
//! shared memory (`tests/loom`). The models also run without each ordering and each rule of the
//! module `orderings` in turn, and must fail where the proof needs it. They leave out forks and the
//! end of the control thread.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod begun_instances;
mod biased_lock;
mod cancellation;
mod main_thread;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_loom)))]
mod membarrier;
mod orderings;
mod recording;
mod slots;
mod source_writers;
mod stamp;
mod sync;
mod thread_gate;
mod thread_state;
mod thread_table;
mod writer;

pub use begun_instances::BegunInstances;
pub use biased_lock::{BiasedLock, Entered, register_barrier};
pub use cancellation::Uncancelled;
pub use main_thread::is_main_thread;
#[cfg(esatto_loom)]
pub use orderings::{Access, Requirement, Rule, Without};
pub use recording::Recording;
#[cfg(not(esatto_loom))]
pub use slots::HeldSlots;
pub use slots::{MAX_INSTANCES, Slots, ended_count};
pub use source_writers::SourceWriters;
pub use stamp::{Stamp, Ticket};
pub use thread_gate::{Closed, ThreadGate};
pub use thread_state::{ThreadState, TracePoint};
pub use thread_table::{HeldThreads, ThreadTable};
pub use writer::{InstanceWriter, Sequence, Source};

/// Parts of [`thread_table!`]; not part of the interface.
#[doc(hidden)]
pub mod __private {
    #[cfg(esatto_loom)]
    pub use loom;

    pub use crate::thread_gate::LocalCells;
    pub use crate::thread_table::{GateOfTable, OwnerCell, ThreadList};
}
