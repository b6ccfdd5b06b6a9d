//! Inputs and outputs of the service.
//!
//! The [`Service`](crate::Service) is a value. Its owner is a daemon with sockets, the in-process
//! backend of the SDK, or a simulator. The owner turns each event into an [`Input`] and passes it
//! in together with the clocks ([`Now`]). Then it carries out the [`Outputs`] in order:
//!
//! ```text
//! let mut out = Outputs::new();
//! service.handle(&now, Input::ConsumerConnected { client, peer }, &mut out);
//! while let Some(output) = out.pop() { /* send, create, write, arm */ }
//! ```
//!
//! Rules for the owner:
//!
//! * A [`ClientId`] names one connection (producer or consumer) and is never reused.
//! * Outputs that carry its [`CallId`] answer every call. The service does not know `drop_reply`:
//!   the owner drops the [`Reply`] of a call whose caller does not want it.
//! * [`Output::CreateSharedBuffer`], [`Output::CreateFile`], [`Output::WriteFile`],
//!   [`Output::CopyFile`] and [`Output::SetPriority`] each have exactly one answer
//!   ([`Input::SharedBufferCreated`], [`Input::FileOpened`], [`Input::FileWritten`],
//!   [`Input::FileCopied`], [`Input::PrioritySet`]), in any later call of `handle`.
//! * After [`Output::AwaitReady`] the owner feeds [`Input::Ready`] when the client can take more
//!   bytes: at once while its send queue is short, otherwise when the queue has drained. This is
//!   the only flow control.
//! * The owner feeds a disconnect once, and ignores outputs for a client that has disconnected.
//! * A timer fires once. [`Output::CancelTimer`] may come too late; the service ignores a timer
//!   that nothing waits for.

mod ids;
mod input;
mod output;

pub use esatto_ports::consumer_port::Request as ConsumerCall;
pub use esatto_ports::producer_port::Request as ProducerCall;
pub use esatto_ports::relay_port::Request as RelayCall;
pub use ids::{CallId, ClientId, FileId, TimerId};
pub use input::Input;
pub use output::{Attachment, Body, LogLevel, Output, Outputs, PriorityBoost, Reply};

/// All clocks of a snapshot, read back to back. The unit is nanoseconds, except for
/// [`tsc`](Self::tsc).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// `CLOCK_BOOTTIME`: the time of service packets and lifecycle events.
    pub boottime_ns: u64,
    /// `CLOCK_REALTIME_COARSE`.
    pub realtime_coarse_ns: u64,
    /// `CLOCK_MONOTONIC_COARSE`.
    pub monotonic_coarse_ns: u64,
    /// `CLOCK_REALTIME`.
    pub realtime_ns: u64,
    /// `CLOCK_MONOTONIC`: the axis of timers.
    pub monotonic_ns: u64,
    /// `CLOCK_MONOTONIC_RAW`.
    pub monotonic_raw_ns: u64,
    /// The raw cycle counter of the processor, if there is one (x86-64).
    pub tsc: Option<u64>,
}

impl Now {
    /// Returns ids (`BuiltinClock`) and times, in the order of clock snapshots.
    pub fn builtin_clocks(&self) -> impl Iterator<Item = (u32, u64)> + use<> {
        let clocks = [
            (6, self.boottime_ns),
            (2, self.realtime_coarse_ns),
            (4, self.monotonic_coarse_ns),
            (1, self.realtime_ns),
            (3, self.monotonic_ns),
            (5, self.monotonic_raw_ns),
        ];
        clocks.into_iter().chain(self.tsc.map(|tsc| (9, tsc)))
    }
}

/// The clock of a timer's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerClock {
    /// `CLOCK_MONOTONIC`: it stops during suspend.
    Monotonic,
    /// `CLOCK_BOOTTIME`: it counts suspend. An owner without such timers may use the monotonic
    /// clock (deadline − now).
    Boottime,
}

/// The identity of a client, which the transport vouches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// User id.
    pub uid: i32,
    /// Process id, if it is known.
    pub pid: Option<i32>,
    /// 0 for this host. Clients of other machines come through a relay.
    pub machine_id: u32,
}

/// The way in which a producer's chunks reach the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// In a memory region that both sides map.
    Shared,
    /// Inside commits, because the transport has no shared memory (`docs/spec/shared-memory.md
    /// §17`).
    Emulated,
}

/// Settings and facts that the owner gives to the service.
#[derive(Clone, Debug)]
pub struct ServiceConfig {
    /// Uid of the service process. The service stamps it on its own packets.
    pub uid: i32,
    /// The text of `tracing_service_version`.
    pub version: String,
    /// The facts about the host that SystemInfo tells.
    pub system: SystemFacts,
    /// Random bytes. They seed the generator of the trace uuids.
    pub seed: [u8; 32],
}

/// Content of SystemInfo (`docs/spec/service.md §16`). The packet leaves out unknown values.
#[derive(Clone, Debug, Default)]
pub struct SystemFacts {
    /// `uname`: sysname.
    pub sysname: String,
    /// `uname`: version.
    pub version: String,
    /// `uname`: release.
    pub release: String,
    /// `uname`: machine.
    pub machine: String,
    /// Bytes of a memory page.
    pub page_size_bytes: Option<u32>,
    /// Local time minus UTC.
    pub timezone_offset_minutes: Option<i32>,
    /// Configured CPUs.
    pub cpus: Option<u32>,
    /// Total RAM.
    pub ram_bytes: Option<u64>,
    /// The name of this machine in a `machine_name_filter`, beside `host`. The packet does not
    /// contain it. If it is empty, the sysname takes its place.
    pub machine_name: String,
}

impl SystemFacts {
    /// Returns the machine name, or the sysname if it is empty.
    pub(crate) fn machine_name(&self) -> &str {
        if self.machine_name.is_empty() { &self.sysname } else { &self.machine_name }
    }
}
