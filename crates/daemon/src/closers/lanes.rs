//! Lanes: the descriptors that wait to be closed, and the order in which threads take them.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::time::Instant;

use esatto_ipc::sys::ThreadId;

use crate::user_shares::Owner;

/// Lanes of ordinary users that may close a descriptor at the same time, without the stuck ones.
/// Each keeps a thread. Descriptors in other lanes wait for a free thread.
pub(super) const MAX_THREADS: usize = 14;

/// Descriptors that are closed one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    pub(super) owner: Owner,
    pub(super) kind: Kind,
}

/// Kind of the descriptors in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Connections in which descriptors may wait.
    Connections,
    /// Connections in which no descriptor waits.
    EmptyConnections,
    /// Descriptors that connections passed.
    Passed,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Connections, Self::EmptyConnections, Self::Passed];
}

/// The lanes, and the threads that work on them.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    pub(super) queues: HashMap<Lane, Queue>,
    /// Lanes in which a descriptor waits and none is being closed: trusted lanes, lanes of ordinary
    /// users, and lanes of ordinary users who have a stuck descriptor.
    pub(super) trusted: VecDeque<Lane>,
    pub(super) others: VecDeque<Lane>,
    pub(super) suspects: VecDeque<Lane>,
    /// Lanes of ordinary users that are closing a descriptor, without the stuck ones.
    pub(super) busy_others: usize,
    /// Stuck lanes of ordinary users, at most [`MAX_STUCK_THREADS`](super::MAX_STUCK_THREADS).
    pub(super) stuck: usize,
    pub(super) threads: usize,
    pub(super) idle: usize,
}

/// The descriptors of a lane.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) waiting: VecDeque<OwnedFd>,
    /// The thread that closes a descriptor of this lane, and when it began.
    pub(super) closing: Option<(ThreadId, Instant)>,
    /// That thread is stuck, and does not count.
    pub(super) is_stuck: bool,
    /// Time since which the lane holds [`MAX_PASSED`](super::MAX_PASSED) or more.
    pub(super) full_since: Option<Instant>,
}

impl Queue {
    /// Number of open descriptors.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.closing.is_some())
    }
}

impl Lanes {
    /// Returns whether there is work for a free thread.
    pub(super) fn has_work(&self) -> bool {
        let is_somebody_waiting = !self.others.is_empty() || !self.suspects.is_empty();
        !self.trusted.is_empty() || (is_somebody_waiting && self.busy_others < MAX_THREADS)
    }

    /// Marks a lane as stuck, so that it no longer counts. Other lanes of its owner come after the
    /// lanes of all other owners.
    pub(super) fn set_stuck(&mut self, lane: Lane) {
        let Some(queue) = self.queues.get_mut(&lane) else { return };
        queue.is_stuck = true;
        self.stuck += 1;
        self.busy_others -= 1;
        let is_of_owner = |other: &Lane| other.owner == lane.owner;
        let (of_owner, others) = self.others.drain(..).partition::<VecDeque<Lane>, _>(is_of_owner);
        self.others = others;
        self.suspects.extend(of_owner);
    }

    /// Returns whether a lane of this owner is stuck.
    pub(super) fn has_stuck(&self, owner: Owner) -> bool {
        let is_stuck = |kind| self.queues.get(&Lane { owner, kind }).is_some_and(|queue| queue.is_stuck);
        Kind::ALL.into_iter().any(is_stuck)
    }

    /// Takes the next lane for a free thread, if it may work on one.
    pub(super) fn next_lane(&mut self) -> Option<Lane> {
        let lane = self.trusted.pop_front();
        if lane.is_some() || self.busy_others == MAX_THREADS {
            return lane;
        }
        let lane = self.others.pop_front().or_else(|| self.suspects.pop_front())?;
        self.busy_others += 1;
        Some(lane)
    }
}
