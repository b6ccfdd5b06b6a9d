//! [`ServerCounters`]: what has gone wrong with the clients of a server.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a [`Server`](super::Server), over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerCounters {
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that are served now.
    pub open: u64,
    /// Attempts to accept or serve a connection that failed because the process lacked descriptors,
    /// memory or threads.
    pub failed_accepts: u64,
    /// Connections that lost their place to others because they never asked for a service.
    pub evicted: u64,
    /// Connections that ended for another reason than that the client closed it.
    pub broken: u64,
    /// Requests that were answered with an error because they were not valid, or beyond a limit.
    pub refused: u64,
    /// Frames that were empty or no protobuf message.
    pub malformed: u64,
    /// Descriptors that no frame announced or no call took.
    pub unexpected_fds: u64,
}

/// The counters while they count.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) accepted: AtomicU64,
    pub(crate) open: AtomicU64,
    pub(crate) failed_accepts: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) broken: AtomicU64,
    refused: AtomicU64,
    malformed: AtomicU64,
    unexpected_fds: AtomicU64,
}

/// Counts of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) refused: u64,
    pub(super) malformed: u64,
    pub(super) unexpected_fds: u64,
}

impl Counters {
    /// Adds what a connection has counted since `before`.
    pub(super) fn add(&self, before: Counts, now: Counts) {
        let add = |counter: &AtomicU64, count: u64| {
            counter.fetch_add(count, Ordering::Relaxed);
        };
        add(&self.refused, now.refused - before.refused);
        add(&self.malformed, now.malformed - before.malformed);
        add(&self.unexpected_fds, now.unexpected_fds - before.unexpected_fds);
    }

    pub(super) fn read(&self) -> ServerCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ServerCounters {
            accepted: read(&self.accepted),
            open: read(&self.open),
            failed_accepts: read(&self.failed_accepts),
            evicted: read(&self.evicted),
            broken: read(&self.broken),
            refused: read(&self.refused),
            malformed: read(&self.malformed),
            unexpected_fds: read(&self.unexpected_fds),
        }
    }
}
