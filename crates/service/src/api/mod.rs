//! What goes into the service and what comes out of it.
//!
//! The [`Service`](crate::Service) is a value. Its owner (a daemon with sockets, the in-process backend of
//! the SDK, a simulator) turns everything that happens into an [`Input`], hands it in together with the
//! clocks ([`Now`]) and then carries out what it finds in the [`Outputs`] queue, in order:
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
//! * Every call is answered by outputs that carry its [`CallId`]. The service does not know `drop_reply`: the
//!   owner drops the [`Reply`] of a call whose caller does not want it.
//! * [`Output::CreateSharedBuffer`], [`Output::CreateFile`], [`Output::WriteFile`], [`Output::CopyFile`] and
//!   [`Output::SetPriority`] each have exactly one answer ([`Input::SharedBufferCreated`], [`Input::FileOpened`],
//!   [`Input::FileWritten`], [`Input::FileCopied`], [`Input::PrioritySet`]), in any later call of `handle`.
//! * After [`Output::AwaitReady`] the owner feeds [`Input::Ready`] as soon as the client can take more bytes: at
//!   once while its send queue is short, else when the queue has drained. This is the only flow control.
//! * A disconnect is fed once; outputs for a client that is gone are to be ignored.
//! * A timer fires once; [`Output::CancelTimer`] may come too late, an expired timer that nobody waits for is ignored.

use std::collections::VecDeque;

use esatto_protozero::DecodeError;
use esatto_schema as proto;

use crate::shared_buffer::SharedBuffer;

/// One connection of a producer, a consumer or a relay, as the owner of the service names it. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// One call of one client; opaque to the service (the request id of the socket, a counter, …).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    /// The caller.
    pub client: ClientId,
    /// What the reply has to name.
    pub request: u64,
}

/// A timer that the service asked for. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerId(pub u64);

/// An output file of a session. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// All clocks of a snapshot, read back to back; nanoseconds except [`tsc`](Self::tsc).
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
    /// The raw cycle counter, where there is one (x86-64).
    pub tsc: Option<u64>,
}

impl Now {
    /// Ids (`BuiltinClock`) and times, in the order of clock snapshots.
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

/// The axis on which a timer's deadline lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerClock {
    /// `CLOCK_MONOTONIC`: stands still in suspend.
    Monotonic,
    /// `CLOCK_BOOTTIME`: counts suspend. An owner without such timers may use the monotonic clock (deadline − now).
    Boottime,
}

/// Who is at the other end, as the transport vouches for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// User id.
    pub uid: i32,
    /// Process id, where it is known.
    pub pid: Option<i32>,
    /// 0 is this host; others came through a relay.
    pub machine_id: u32,
}

/// How a producer's chunks reach the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// A region that both sides map.
    Shared,
    /// No shared memory on this transport: chunks come inside commits (`docs/spec/shared-memory.md §17`).
    Emulated,
}

/// Facts that the service cannot find out by itself.
#[derive(Clone, Debug)]
pub struct ServiceConfig {
    /// Uid of the service process; stamped on its own packets.
    pub uid: i32,
    /// Text for `tracing_service_version`.
    pub version: String,
    /// What SystemInfo tells about the host.
    pub system: SystemFacts,
    /// Random bytes: trace uuids are drawn from a generator seeded with them.
    pub seed: [u8; 32],
}

/// Content of SystemInfo (`docs/spec/service.md §16`). Unknown values are left out of the packet.
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
    /// What `machine_name_filter` calls this machine, beside `host`; not part of the packet. Empty: the sysname.
    pub machine_name: String,
}

impl SystemFacts {
    /// What the host is called: the machine name, else the sysname.
    pub(crate) fn machine_name(&self) -> &str {
        if self.machine_name.is_empty() { &self.sysname } else { &self.machine_name }
    }
}

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A client connected to the producer port.
    ProducerConnected {
        /// Its connection.
        client: ClientId,
        /// Its trusted identity.
        peer: Peer,
        /// Whether memory can be shared with it.
        memory: MemoryKind,
    },
    /// A call on the producer port.
    ProducerCall {
        /// Whom to answer.
        call: CallId,
        /// What is asked.
        method: ProducerCall<'a>,
    },
    /// The connection of a producer ended.
    ProducerDisconnected(ClientId),
    /// The answer to [`Output::CreateSharedBuffer`]. `None`: no memory could be had (the producer is then disconnected).
    SharedBufferCreated {
        /// The producer.
        client: ClientId,
        /// The service's view of the memory.
        buffer: Option<Box<dyn SharedBuffer>>,
    },
    /// A client connected to the consumer port.
    ConsumerConnected {
        /// Its connection.
        client: ClientId,
        /// Its trusted identity.
        peer: Peer,
    },
    /// A call on the consumer port.
    ConsumerCall {
        /// Whom to answer.
        call: CallId,
        /// What is asked.
        method: ConsumerCall<'a>,
        /// A file descriptor came along. The owner keeps it until the call's outputs have been carried out:
        /// [`Output::AdoptFile`] takes it, else it is closed.
        file_attached: bool,
    },
    /// The connection of a consumer ended.
    ConsumerDisconnected(ClientId),
    /// A client connected to the relay port. It may be connected to the producer port, too, under the same name.
    RelayConnected {
        /// Its connection.
        client: ClientId,
        /// Its identity, as it claims.
        peer: Peer,
    },
    /// A call on the relay port. The clocks of [`Now`] are the host's side of a clock synchronisation: read them when the
    /// call arrives.
    RelayCall {
        /// Whom to answer.
        call: CallId,
        /// What is asked.
        method: RelayCall<'a>,
    },
    /// The connection of a relay ended.
    RelayDisconnected(ClientId),
    /// A relay told the name of the machine behind this producer or relay: after its connection, before its first call.
    MachineNamed {
        /// The connection.
        client: ClientId,
        /// The name, as the relay claims.
        name: &'a [u8],
    },
    /// The client can take more bytes; the answer to [`Output::AwaitReady`].
    Ready(ClientId),
    /// Local time minus UTC, in minutes. Told again before each call that may begin a trace, because it changes with
    /// the seasons.
    TimezoneOffset(Option<i32>),
    /// A timer expired.
    TimerExpired(TimerId),
    /// The answer to [`Output::CreateFile`]; the text says why it failed.
    FileOpened {
        /// The file.
        file: FileId,
        /// How it went.
        result: Result<(), String>,
    },
    /// The answer to [`Output::SetPriority`]; the text says why it failed.
    PrioritySet {
        /// Which change.
        change: u64,
        /// How it went.
        result: Result<(), String>,
    },
    /// The answer to [`Output::CopyFile`]; the text says why it failed.
    FileCopied {
        /// The file that was copied to.
        file: FileId,
        /// How it went.
        result: Result<(), String>,
    },
    /// The answer to [`Output::WriteFile`]; the text says why it failed. The owner loops on short writes.
    FileWritten {
        /// The file.
        file: FileId,
        /// How it went.
        result: Result<(), String>,
    },
}

/// A call on the producer port (`docs/spec/wire-protocol.md §8`).
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants are the methods of the protocol")]
pub enum ProducerCall<'a> {
    InitializeConnection {
        /// The request.
        request: proto::InitializeConnectionRequestReader<'a>,
        /// Memory that the producer brought along, already mapped and checked (seals, size > 0) by the owner, with
        /// the page size hint of the request as page size. The service checks the sizes.
        offered: Option<Box<dyn SharedBuffer>>,
    },
    RegisterDataSource(proto::RegisterDataSourceRequestReader<'a>),
    UpdateDataSource(proto::UpdateDataSourceRequestReader<'a>),
    UnregisterDataSource(proto::UnregisterDataSourceRequestReader<'a>),
    CommitData(proto::CommitDataRequestReader<'a>),
    GetAsyncCommand,
    RegisterTraceWriter(proto::RegisterTraceWriterRequestReader<'a>),
    UnregisterTraceWriter(proto::UnregisterTraceWriterRequestReader<'a>),
    NotifyDataSourceStarted(proto::NotifyDataSourceStartedRequestReader<'a>),
    NotifyDataSourceStopped(proto::NotifyDataSourceStoppedRequestReader<'a>),
    ActivateTriggers(proto::ActivateTriggersRequestReader<'a>),
    Sync,
}

impl<'a> ProducerCall<'a> {
    /// Reads the request of a method. Memory that came along is put into `InitializeConnection` by the owner.
    ///
    /// # Errors
    ///
    /// The bytes are not a protobuf message: the call is to be rejected.
    pub fn parse(method: proto::producer_port::Method, request: &'a [u8]) -> Result<Self, DecodeError> {
        use proto::producer_port::Method;
        Ok(match method {
            Method::InitializeConnection => Self::InitializeConnection {
                request: proto::InitializeConnectionRequestReader::parse(request)?,
                offered: None,
            },
            Method::RegisterDataSource => {
                Self::RegisterDataSource(proto::RegisterDataSourceRequestReader::parse(request)?)
            }
            Method::UpdateDataSource => Self::UpdateDataSource(proto::UpdateDataSourceRequestReader::parse(request)?),
            Method::UnregisterDataSource => {
                Self::UnregisterDataSource(proto::UnregisterDataSourceRequestReader::parse(request)?)
            }
            Method::CommitData => Self::CommitData(proto::CommitDataRequestReader::parse(request)?),
            Method::GetAsyncCommand => Self::GetAsyncCommand,
            Method::RegisterTraceWriter => {
                Self::RegisterTraceWriter(proto::RegisterTraceWriterRequestReader::parse(request)?)
            }
            Method::UnregisterTraceWriter => {
                Self::UnregisterTraceWriter(proto::UnregisterTraceWriterRequestReader::parse(request)?)
            }
            Method::NotifyDataSourceStarted => {
                Self::NotifyDataSourceStarted(proto::NotifyDataSourceStartedRequestReader::parse(request)?)
            }
            Method::NotifyDataSourceStopped => {
                Self::NotifyDataSourceStopped(proto::NotifyDataSourceStoppedRequestReader::parse(request)?)
            }
            Method::ActivateTriggers => Self::ActivateTriggers(proto::ActivateTriggersRequestReader::parse(request)?),
            Method::Sync => Self::Sync,
        })
    }
}

/// A call on the consumer port (`docs/spec/wire-protocol.md §12`).
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants are the methods of the protocol")]
pub enum ConsumerCall<'a> {
    EnableTracing(proto::EnableTracingRequestReader<'a>),
    DisableTracing,
    ReadBuffers,
    FreeBuffers,
    Flush(proto::FlushRequestReader<'a>),
    StartTracing,
    ChangeTraceConfig(proto::ChangeTraceConfigRequestReader<'a>),
    Detach(proto::DetachRequestReader<'a>),
    Attach(proto::AttachRequestReader<'a>),
    GetTraceStats,
    ObserveEvents(proto::ObserveEventsRequestReader<'a>),
    QueryServiceState(proto::QueryServiceStateRequestReader<'a>),
    QueryCapabilities,
    SaveTraceForBugreport,
    CloneSession(proto::CloneSessionRequestReader<'a>),
}

impl<'a> ConsumerCall<'a> {
    /// Reads the request of a method.
    ///
    /// # Errors
    ///
    /// The bytes are not a protobuf message: the call is to be rejected.
    pub fn parse(method: proto::consumer_port::Method, request: &'a [u8]) -> Result<Self, DecodeError> {
        use proto::consumer_port::Method;
        Ok(match method {
            Method::EnableTracing => Self::EnableTracing(proto::EnableTracingRequestReader::parse(request)?),
            Method::DisableTracing => Self::DisableTracing,
            Method::ReadBuffers => Self::ReadBuffers,
            Method::FreeBuffers => Self::FreeBuffers,
            Method::Flush => Self::Flush(proto::FlushRequestReader::parse(request)?),
            Method::StartTracing => Self::StartTracing,
            Method::ChangeTraceConfig => {
                Self::ChangeTraceConfig(proto::ChangeTraceConfigRequestReader::parse(request)?)
            }
            Method::Detach => Self::Detach(proto::DetachRequestReader::parse(request)?),
            Method::Attach => Self::Attach(proto::AttachRequestReader::parse(request)?),
            Method::GetTraceStats => Self::GetTraceStats,
            Method::ObserveEvents => Self::ObserveEvents(proto::ObserveEventsRequestReader::parse(request)?),
            Method::QueryServiceState => {
                Self::QueryServiceState(proto::QueryServiceStateRequestReader::parse(request)?)
            }
            Method::QueryCapabilities => Self::QueryCapabilities,
            Method::SaveTraceForBugreport => Self::SaveTraceForBugreport,
            Method::CloneSession => Self::CloneSession(proto::CloneSessionRequestReader::parse(request)?),
        })
    }
}

/// A call on the relay port (`docs/spec/wire-protocol.md §16`).
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants are the methods of the protocol")]
pub enum RelayCall<'a> {
    InitRelay(proto::InitRelayRequestReader<'a>),
    SyncClock(proto::SyncClockRequestReader<'a>),
}

impl<'a> RelayCall<'a> {
    /// Reads the request of a method.
    ///
    /// # Errors
    ///
    /// The bytes are not a protobuf message: the call is to be rejected.
    pub fn parse(method: proto::relay_port::Method, request: &'a [u8]) -> Result<Self, DecodeError> {
        use proto::relay_port::Method;
        Ok(match method {
            Method::InitRelay => Self::InitRelay(proto::InitRelayRequestReader::parse(request)?),
            Method::SyncClock => Self::SyncClock(proto::SyncClockRequestReader::parse(request)?),
        })
    }
}

/// Something the owner has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Answer a call successfully. Asynchronous commands to producers are replies to their `GetAsyncCommand`.
    Reply(Reply),
    /// Answer a call with `success = false`; nothing else follows for it.
    Reject(CallId),
    /// Make a zeroed shared memory region for this producer, keep the descriptor for
    /// [`Attachment::SharedBuffer`] and feed [`Input::SharedBufferCreated`]. Never asked for emulated memory.
    CreateSharedBuffer {
        /// The producer.
        client: ClientId,
        /// Bytes of the whole region.
        size_bytes: usize,
        /// Bytes of a page.
        page_size_bytes: usize,
    },
    /// Close this connection; its disconnect is then fed as usual.
    CloseClient {
        /// Which.
        client: ClientId,
        /// For the log.
        reason: &'static str,
    },
    /// Feed [`Input::Ready`] once this client can take more.
    AwaitReady(ClientId),
    /// Arm a timer.
    SetTimer {
        /// Its name.
        timer: TimerId,
        /// The axis of the deadline.
        clock: TimerClock,
        /// The deadline, absolute.
        at_ns: u64,
    },
    /// Disarm a timer.
    CancelTimer(TimerId),
    /// The descriptor that came with this call is the file from now on.
    AdoptFile {
        /// Its name.
        file: FileId,
        /// The call that brought it.
        call: CallId,
    },
    /// Create this file exclusively (read-write, mode 0644) and feed [`Input::FileOpened`].
    CreateFile {
        /// Its name.
        file: FileId,
        /// The path, relative ones to the working directory.
        path: Vec<u8>,
    },
    /// Append these bytes at the file's current offset and feed [`Input::FileWritten`].
    WriteFile {
        /// The file.
        file: FileId,
        /// Whole packets, each with tag and length of `Trace.packet`.
        bytes: Vec<u8>,
    },
    /// Append everything that was to be written to one file, including writes still under way, to another and feed
    /// [`Input::FileCopied`]. Neither may delay other files, and writes that follow to `from` are not to wait for `to`.
    CopyFile {
        /// The file of a session, open.
        from: FileId,
        /// The file of its snapshot.
        to: FileId,
    },
    /// Give whatever runs the service this priority, or with `None` the one it had at first, and feed [`Input::PrioritySet`].
    SetPriority {
        /// Number of the change.
        change: u64,
        /// The boost.
        boost: Option<PriorityBoost>,
    },
    /// Sync the file's data to the disk.
    SyncFile(FileId),
    /// Close the file.
    CloseFile(FileId),
    /// A line for the log.
    Log {
        /// How important it is.
        level: LogLevel,
        /// The line.
        text: String,
    },
}

/// A successful answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The call.
    pub call: CallId,
    /// The encoded response message.
    pub body: Body,
    /// More replies to the same call follow.
    pub has_more: bool,
    /// What travels with the frame.
    pub attachment: Attachment,
}

/// An encoded response message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A message without fields (no allocation; the reply of every commit).
    Empty,
    /// Its bytes.
    Encoded(Vec<u8>),
}

impl Body {
    /// The bytes of the message.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Empty => &[],
            Self::Encoded(bytes) => bytes,
        }
    }
}

/// A file descriptor that travels with a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// None.
    Absent,
    /// The shared memory that was created for this producer.
    SharedBuffer,
}

/// How much sooner than others the service is to run. Ordered by strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PriorityBoost {
    /// `SCHED_OTHER` with this much below nice 0: 0 to 20.
    Other(u8),
    /// `SCHED_FIFO` with this priority: 1 to 99.
    Fifo(u8),
}

/// Importance of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Life of sessions and producers.
    Info,
    /// A peer did something wrong, or a config has no effect.
    Warning,
    /// Data was or will be lost.
    Error,
}

/// The queue of outputs; owned, drained and reused by the caller of `handle`.
#[derive(Debug, Default)]
pub struct Outputs {
    queue: VecDeque<Output>,
    /// Memory of outputs that were carried out.
    buffers: Vec<Vec<u8>>,
}

/// Buffers that are kept for the next outputs, while a trace is read.
const MAX_BUFFERS: usize = 3;
/// Capacity of a buffer that is worth keeping, and of one that would be too much.
const KEPT_BUFFER_BYTES: core::ops::RangeInclusive<usize> = 32 << 10..=2 << 20;

impl Outputs {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the oldest output.
    pub fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    /// How many outputs wait.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Those that wait, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Output> {
        self.queue.iter()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes back the bytes of an [`Output::WriteFile`] or of a [`Body`] that are not needed any more, so that the next one
    /// need not find memory of its own. Nobody has to do this.
    pub fn recycle(&mut self, mut bytes: Vec<u8>) {
        if self.buffers.len() < MAX_BUFFERS && KEPT_BUFFER_BYTES.contains(&bytes.capacity()) {
            bytes.clear();
            self.buffers.push(bytes);
        }
    }

    /// An empty buffer with room for so many bytes.
    pub(crate) fn buffer(&mut self, bytes: usize) -> Vec<u8> {
        match self.buffers.iter().position(|buffer| buffer.capacity() >= bytes) {
            Some(found) => self.buffers.swap_remove(found),
            None => Vec::with_capacity(bytes),
        }
    }

    /// Nothing is read any more for now.
    pub(crate) fn forget_buffers(&mut self) {
        self.buffers = Vec::new();
    }

    #[inline(never)]
    pub(crate) fn push(&mut self, output: Output) {
        self.queue.push_back(output);
    }
}
