//! Outputs of the service: replies, commands and requests to its owner.

use std::collections::VecDeque;

use super::TimerClock;
use super::ids::{CallId, ClientId, FileId, TimerId};

/// A task for the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Answer a call successfully. Asynchronous commands to a producer are replies to its
    /// `GetAsyncCommand`.
    Reply(Reply),
    /// Answer a call with `success = false`. Nothing else follows for this call.
    Reject(CallId),
    /// Create a zeroed shared memory region for this producer, keep the descriptor for
    /// [`Attachment::SharedBuffer`], and feed
    /// [`Input::SharedBufferCreated`](crate::Input::SharedBufferCreated). The service never asks
    /// for emulated memory.
    CreateSharedBuffer {
        /// The producer.
        client: ClientId,
        /// Bytes of the whole region.
        size_bytes: usize,
        /// Bytes of a page.
        page_size_bytes: usize,
    },
    /// Close this connection. The owner then feeds its disconnect as usual.
    CloseClient {
        /// The connection.
        client: ClientId,
        /// The reason, for the log.
        reason: &'static str,
    },
    /// Feed [`Input::Ready`](crate::Input::Ready) when this client can take more bytes.
    AwaitReady(ClientId),
    /// Arm a timer.
    SetTimer {
        /// Its number.
        timer: TimerId,
        /// The clock of the deadline.
        clock: TimerClock,
        /// The absolute deadline.
        at_ns: u64,
    },
    /// Disarm a timer.
    CancelTimer(TimerId),
    /// Use the descriptor that came with this call as a trace file.
    AdoptFile {
        /// Its number.
        file: FileId,
        /// The call that brought it.
        call: CallId,
    },
    /// Create this file exclusively (read-write, mode 0644), and feed
    /// [`Input::FileOpened`](crate::Input::FileOpened).
    CreateFile {
        /// Its number.
        file: FileId,
        /// The path. A relative path starts at the working directory.
        path: Vec<u8>,
        /// The user of the consumer that names it. The owner must not lend him rights.
        uid: i32,
    },
    /// Append these bytes at the file's current offset, and feed
    /// [`Input::FileWritten`](crate::Input::FileWritten).
    WriteFile {
        /// The file.
        file: FileId,
        /// Whole packets, each with tag and length of `Trace.packet`.
        bytes: Vec<u8>,
    },
    /// Append to one file everything that the service has written to another, and feed
    /// [`Input::FileCopied`](crate::Input::FileCopied). This includes writes that are still under
    /// way. The copy must not delay other files, and later writes to `from` must not wait for `to`.
    CopyFile {
        /// The open file of a session.
        from: FileId,
        /// The file of its clone.
        to: FileId,
    },
    /// Give the process of the service this priority, or with `None` its original one, and feed
    /// [`Input::PrioritySet`](crate::Input::PrioritySet).
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
    /// The descriptor that the frame carries.
    pub attachment: Attachment,
}

/// An encoded response message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A message without fields, the reply to every commit. It needs no allocation.
    Empty,
    /// The bytes of the message.
    Encoded(Vec<u8>),
}

impl Body {
    /// Returns the bytes of the message.
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

/// The priority that the service runs with, ordered by strength.
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
    /// A step in the life of a session, or a producer came or went.
    Debug,
    /// A session began or ended.
    Info,
    /// A peer did something wrong, or a config has no effect.
    Warning,
    /// Data are lost, or will be.
    Error,
}

/// Queue of outputs. The caller of `handle` owns it, drains it and reuses it.
#[derive(Debug, Default)]
pub struct Outputs {
    queue: VecDeque<Output>,
    /// Memory of outputs that the owner has carried out.
    buffers: Vec<Vec<u8>>,
}

/// Buffers that the queue keeps for the next outputs while a consumer reads a trace.
const MAX_BUFFERS: usize = 3;
/// Capacities of the buffers that the queue keeps. Smaller ones are not worth it, and larger ones
/// take too much memory.
const KEPT_BUFFER_BYTES: core::ops::RangeInclusive<usize> = 32 << 10..=2 << 20;

impl Outputs {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes and returns the oldest output.
    pub fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    /// Returns the number of outputs.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Iterates over the outputs, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Output> {
        self.queue.iter()
    }

    /// Tells whether there is no output.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes back the bytes of an [`Output::WriteFile`] or of a [`Body`], so that the next one need
    /// not allocate. Owners may leave this out.
    pub fn recycle(&mut self, mut bytes: Vec<u8>) {
        if self.buffers.len() < MAX_BUFFERS && KEPT_BUFFER_BYTES.contains(&bytes.capacity()) {
            bytes.clear();
            self.buffers.push(bytes);
        }
    }

    /// Returns an empty buffer with room for this many bytes.
    pub(crate) fn buffer(&mut self, bytes: usize) -> Vec<u8> {
        match self.buffers.iter().position(|buffer| buffer.capacity() >= bytes) {
            Some(found) => self.buffers.swap_remove(found),
            None => Vec::with_capacity(bytes),
        }
    }

    /// Frees the kept buffers, because no consumer reads a trace at the moment.
    pub(crate) fn forget_buffers(&mut self) {
        self.buffers = Vec::new();
    }

    #[inline(never)]
    pub(crate) fn push(&mut self, output: Output) {
        self.queue.push_back(output);
    }
}
