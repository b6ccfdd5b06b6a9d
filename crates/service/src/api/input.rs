//! Inputs of the service: calls, and other events that its owner reports.

use super::ids::{CallId, ClientId, FileId, TimerId};
use super::{ConsumerCall, MemoryKind, Peer, ProducerCall, RelayCall};
use crate::shared_buffer::SharedBuffer;

/// An event that the owner reports to the service.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A client connected to the producer port.
    ProducerConnected {
        /// Its connection.
        client: ClientId,
        /// Its identity, which the transport vouches for.
        peer: Peer,
        /// The way in which its chunks reach the service.
        memory: MemoryKind,
    },
    /// A call on the producer port.
    ProducerCall {
        /// The call that the service answers.
        call: CallId,
        /// The method and its request.
        method: ProducerCall<'a>,
        /// For `InitializeConnection`: memory of the producer itself, which the owner has mapped
        /// and checked (seals, size > 0). Its page size is the hint of the request. The service
        /// checks the sizes.
        offered: Option<Box<dyn SharedBuffer>>,
    },
    /// The connection of a producer ended.
    ProducerDisconnected(ClientId),
    /// The answer to [`Output::CreateSharedBuffer`](crate::Output::CreateSharedBuffer). `None`:
    /// there is no memory, and the service disconnects the producer.
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
        /// Its identity, which the transport vouches for.
        peer: Peer,
    },
    /// A call on the consumer port.
    ConsumerCall {
        /// The call that the service answers.
        call: CallId,
        /// The method and its request.
        method: ConsumerCall<'a>,
        /// The call brought a file descriptor. The owner keeps it until it has carried out the
        /// call's outputs. [`Output::AdoptFile`](crate::Output::AdoptFile) takes it; otherwise the
        /// owner closes it.
        file_attached: bool,
    },
    /// The connection of a consumer ended.
    ConsumerDisconnected(ClientId),
    /// The owner is about to end. The service flushes and stops all sessions, and refuses new ones.
    /// It needs further inputs for that, until [`Service::is_done`](crate::Service::is_done).
    StopSessions {
        /// Longest time that a session waits for the last flush, and again for its stop.
        timeout_ms: u32,
    },
    /// A client connected to the relay port. It may also be connected to the producer port, under
    /// the same name.
    RelayConnected {
        /// Its connection.
        client: ClientId,
        /// The identity that it claims.
        peer: Peer,
    },
    /// A call on the relay port. The clocks of [`Now`](crate::Now) are the host's side of a clock
    /// synchronisation, so the owner reads them when the call arrives.
    RelayCall {
        /// The call that the service answers.
        call: CallId,
        /// The method and its request.
        method: RelayCall<'a>,
    },
    /// The connection of a relay ended.
    RelayDisconnected(ClientId),
    /// A relay told the machine name of a producer or a relay. This input comes after the
    /// connection and before its first call.
    MachineNamed {
        /// The connection.
        client: ClientId,
        /// The name that the relay claims.
        name: &'a [u8],
    },
    /// The client can take more bytes; the answer to
    /// [`Output::AwaitReady`](crate::Output::AwaitReady).
    Ready(ClientId),
    /// Local time minus UTC, in minutes. The owner reports it before each call that may begin a
    /// trace, because it changes with the seasons.
    TimezoneOffset(Option<i32>),
    /// A timer expired.
    TimerExpired(TimerId),
    /// The answer to [`Output::CreateFile`](crate::Output::CreateFile); the text says why it
    /// failed.
    FileOpened {
        /// The file.
        file: FileId,
        /// The result.
        result: Result<(), String>,
    },
    /// The answer to [`Output::SetPriority`](crate::Output::SetPriority); the text says why it
    /// failed.
    PrioritySet {
        /// The number of the change.
        change: u64,
        /// The result.
        result: Result<(), String>,
    },
    /// The answer to [`Output::CopyFile`](crate::Output::CopyFile); the text says why it failed.
    FileCopied {
        /// The file that received the copy.
        file: FileId,
        /// The result.
        result: Result<(), String>,
    },
    /// The owner is about to end and waits for trace files no longer. Their sessions are told to be
    /// incomplete.
    FilesGivenUp,
    /// The answer to [`Output::WriteFile`](crate::Output::WriteFile); the text says why it failed.
    /// The owner repeats short writes until all bytes are written.
    FileWritten {
        /// The file.
        file: FileId,
        /// The result.
        result: Result<(), String>,
    },
}
