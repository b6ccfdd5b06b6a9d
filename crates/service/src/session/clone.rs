//! Clones of sessions while they are being made (`docs/spec/service.md §20`).

use super::Session;
use super::triggers::Received;
use super::unread_events::{Event, UnreadEvents};
use crate::api::{CallId, FileId};
use crate::buffer::CentralBuffer;
use crate::ids::SessionId;

/// Number of a clone that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CloneId(pub(crate) u64);

/// Buffers that a clone takes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferGroup {
    /// Buffers with `transfer_on_clone`, whose data sources may be slow.
    Moved,
    Copied,
}

impl BufferGroup {
    pub(crate) fn of(session: &Session, index: usize) -> Self {
        let buffer = session.config.buffers.get(index);
        if buffer.is_some_and(|buffer| buffer.transfer_on_clone == Some(true)) { Self::Moved } else { Self::Copied }
    }
}

/// A clone that waits for data sources to flush.
#[derive(Debug)]
pub(crate) struct PendingClone {
    pub(crate) source: SessionId,
    pub(crate) call: CallId,
    pub(crate) uid: i32,
    /// Bytes that are charged for it.
    pub(crate) bytes: u64,
    pub(crate) skips_filter: bool,
    pub(crate) trigger: Option<Received>,
    /// The file of the clone, which continues after a copy of the source's file.
    pub(crate) file: Option<FileId>,
    pub(crate) started_ns: u64,
    /// Groups that have not flushed yet.
    pub(crate) waits_for: Vec<BufferGroup>,
    /// All flushes succeeded.
    pub(crate) is_flushed: bool,
    /// Buffers by index, `None` until their group has flushed.
    pub(crate) buffers: Vec<Option<Taken>>,
}

impl PendingClone {
    /// Returns the user that is charged for the memory of the clone, and the bytes.
    pub(crate) fn charge(&self) -> (i32, u64) {
        (self.uid, self.bytes)
    }
}

/// A buffer of the source, or its copy.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) buffer: CentralBuffer,
    /// BOOTTIME at which it was taken.
    pub(crate) at_ns: u64,
    /// Later data of the source was also taken. This buffer cannot go back, because a reader may
    /// have seen the later data.
    pub(crate) is_followed: bool,
}

/// Data that only clones have.
#[derive(Debug)]
pub(crate) struct CloneFacts {
    /// The trigger that the consumer names as the reason of the clone.
    pub(crate) trigger: Option<Received>,
    /// The call that the service answers when the file is complete.
    pub(crate) reply: Option<CallId>,
}

impl UnreadEvents {
    /// Returns the unread events of a clone: everything that the source has told at its start, and
    /// the events that it was not yet asked for.
    pub(crate) fn for_clone(&self, started_ns: u64) -> Self {
        // At the same time, it comes before the end of a flush that had no producer to ask.
        let is_behind = |(at_ns, event): &(u64, Event)| {
            *at_ns > started_ns || *at_ns == started_ns && *event == Event::AllDataSourcesFlushed
        };
        let mut events = self.events.clone();
        let position = events.iter().position(is_behind).unwrap_or(events.len());
        events.insert(position, (started_ns, Event::CloneStarted));
        Self {
            events,
            sync_marker: false,
            stats: true,
            first_read_done: false,
            told: Default::default(),
            ..self.clone()
        }
    }
}
