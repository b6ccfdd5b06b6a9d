//! [`PassedFds`]: descriptors that arrived, until the frame that carried them is handled.

use std::collections::VecDeque;

use crate::foreign_fd::ForeignFd;

/// Largest number of descriptors that wait for their frames. Reading pauses at each one, so an
/// honest peer never reaches it.
const MAX_WAITING_FDS: usize = 4;

/// Room of a stream that a descriptor takes beside its frame, so that a stream of descriptors
/// pauses before the client has none left.
pub(crate) const ROOM_OF_FD: usize = 16 << 10;

/// Returns the room of a stream that a reply takes (wire-protocol.md §23).
pub(crate) const fn room_of(len: usize, has_fd: bool) -> usize {
    if has_fd { len + ROOM_OF_FD } else { len }
}

/// Descriptors in the order of their arrival.
///
/// A peer that knows the extension says in each frame if it carries a descriptor. Of other peers,
/// the newest descriptor belongs to the call that takes it (wire-protocol.md §6).
#[derive(Debug, Default)]
pub(crate) struct PassedFds {
    /// Each with the number of bytes that had been received then. Its frame began before.
    waiting: VecDeque<(u64, ForeignFd)>,
    unexpected: u64,
}

impl PassedFds {
    /// Adds a descriptor. `received` is the number of bytes that have been received, those that
    /// came with it included. `is_exact` tells if the peer marks its frames.
    pub(crate) fn arrived(&mut self, fd: ForeignFd, received: u64, is_exact: bool) {
        if !is_exact {
            self.unexpected += self.waiting.drain(..).count() as u64;
        } else if self.waiting.len() >= MAX_WAITING_FDS {
            self.unexpected += 1;
            return;
        }
        self.waiting.push_back((received, fd));
    }

    /// Returns true if a descriptor waits.
    #[cfg(feature = "server")]
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the descriptor for a frame.
    pub(crate) fn take(&mut self, has_fd: bool, is_exact: bool) -> Option<ForeignFd> {
        if has_fd || !is_exact { self.waiting.pop_front().map(|(_, fd)| fd) } else { None }
    }

    /// Takes the newest descriptor of a peer that does not mark its frames.
    #[cfg(feature = "channel")]
    pub(crate) fn take_newest(&mut self) -> Option<ForeignFd> {
        self.waiting.pop_back().map(|(_, fd)| fd)
    }

    /// Puts a descriptor back that the call did not take, for the next one; closes it if the peer
    /// marks its frames.
    #[cfg(feature = "server")]
    pub(crate) fn put_back(&mut self, fd: Option<ForeignFd>, received: u64, is_exact: bool) {
        match fd {
            Some(_) if is_exact => self.unexpected += 1,
            Some(fd) => self.waiting.push_back((received, fd)),
            None => {}
        }
    }

    /// Closes descriptors of frames that were handled up to this byte, if the peer marks its
    /// frames.
    pub(crate) fn handled(&mut self, consumed: u64, is_exact: bool) {
        while is_exact && self.waiting.front().is_some_and(|&(received, _)| received <= consumed) {
            self.waiting.pop_front();
            self.unexpected += 1;
        }
    }

    /// Returns the number of descriptors that no frame announced or no call took.
    pub(crate) fn unexpected(&self) -> u64 {
        self.unexpected
    }
}
