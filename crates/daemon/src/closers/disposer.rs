//! The way in which the connections of a user close their descriptors.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use esatto_ipc::{Admission, Disposal};
use rustix::net::{RecvFlags, recv};

use super::lanes::{Kind, Lane};
use super::{Closers, MAX_PASSED};
use crate::user_shares::Owner;

/// Time for which a user's descriptors may be at their bound: the machine may just be busy.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Takes the descriptors of one user's connections, to close them.
#[derive(Debug)]
pub(super) struct Disposer {
    pub(super) closers: Closers,
    pub(super) owner: Owner,
}

impl Disposal for Disposer {
    fn close_passed(&self, fd: OwnedFd) {
        self.closers.close(Lane { owner: self.owner, kind: Kind::Passed }, fd);
    }

    fn close_connection(&self, fd: OwnedFd) {
        // The connection is shut down, so nothing more arrives. This only looks at it and receives
        // nothing.
        let nothing_waits =
            recv(&fd, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT).is_ok_and(|(_, n)| n == 0);
        let kind = if nothing_waits { Kind::EmptyConnections } else { Kind::Connections };
        self.closers.close(Lane { owner: self.owner, kind }, fd);
    }

    fn admission(&self) -> Admission {
        let shared = &self.closers.shared;
        // There is nearly always nothing to count.
        let is_exhausted = shared.is_exhausted.load(Ordering::Relaxed);
        if shared.passed.load(Ordering::Relaxed) < MAX_PASSED && !is_exhausted {
            return Admission::Granted;
        }
        let lanes = shared.lock();
        if is_exhausted && lanes.has_stuck(self.owner) {
            return Admission::Denied;
        }
        let lane = Lane { owner: self.owner, kind: Kind::Passed };
        match lanes.queues.get(&lane).and_then(|queue| queue.full_since) {
            None => Admission::Granted,
            Some(since) if since.elapsed() < PATIENCE => Admission::Later,
            Some(_) => Admission::Denied,
        }
    }
}
