//! Clones of sessions while they are being made (`docs/spec/service.md §20`).

use super::Session;
use super::news::{Event, News};
use super::triggers::Received;
use crate::api::{CallId, FileId};
use crate::buffer::CentralBuffer;
use crate::ids::SessionId;

/// A snapshot being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CloneId(pub(crate) u64);

/// Buffers that are taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferGroup {
    /// Those with `transfer_on_clone`: their data sources may be slow.
    Moved,
    Copied,
}

impl BufferGroup {
    pub(crate) fn of(session: &Session, index: usize) -> Self {
        let buffer = session.config.buffers.get(index);
        if buffer.is_some_and(|buffer| buffer.transfer_on_clone == Some(true)) { Self::Moved } else { Self::Copied }
    }
}

/// A snapshot that waits for data sources to flush.
#[derive(Debug)]
pub(crate) struct PendingClone {
    pub(crate) source: SessionId,
    pub(crate) call: CallId,
    pub(crate) uid: i32,
    /// What it can take of the memory.
    pub(crate) bytes: u64,
    pub(crate) skips_filter: bool,
    pub(crate) trigger: Option<Received>,
    /// What goes on where the file of the source ends now.
    pub(crate) file: Option<FileId>,
    pub(crate) started_ns: u64,
    /// Groups that were not flushed yet.
    pub(crate) waits_for: Vec<BufferGroup>,
    /// All flushes succeeded.
    pub(crate) is_flushed: bool,
    /// By index; none before its group was flushed.
    pub(crate) buffers: Vec<Option<Taken>>,
}

impl PendingClone {
    /// Who is charged with the memory of the clone, and with how much.
    pub(crate) fn charge(&self) -> (i32, u64) {
        (self.uid, self.bytes)
    }
}

/// A buffer of the source, or its copy.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) buffer: CentralBuffer,
    /// BOOTTIME.
    pub(crate) at_ns: u64,
    /// What the source recorded behind it was taken out, too: it cannot go back, for a reader may
    /// have seen what follows.
    pub(crate) is_followed: bool,
}

/// What makes a session a clone.
#[derive(Debug)]
pub(crate) struct CloneFacts {
    /// For which the clone was made, as its consumer says.
    pub(crate) trigger: Option<Received>,
    /// The call to be answered when the file is complete.
    pub(crate) reply: Option<CallId>,
}

impl News {
    /// What the first read of a clone has to say: everything again, and what the source was not yet
    /// asked for.
    pub(crate) fn for_clone(&self, started_ns: u64) -> Self {
        // At one time it comes before the end of a flush that had nobody to ask.
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
