//! Who is connected, and how much waits for whom: bounds that no user can push the others over.
//!
//! A connection has bounds of its own ([`Client`](crate::client::Client)), but anybody may have many. So what
//! connections of one user take together is counted too, and the user who takes most is the one who has to give.

use core::fmt;
use std::collections::HashMap;

use esatto_ipc::{Family, Peer};

/// More connections than this are not accepted, whatever the limit of descriptors is.
const MAX_CONNECTIONS: usize = 8192;
/// And never fewer than this.
const MIN_CONNECTIONS: usize = 16;
/// Descriptors that are not for connections: trace files, listeners, what comes attached to calls.
const RESERVED_DESCRIPTORS: usize = 64;
/// A socket and its shared memory.
const DESCRIPTORS_PER_CONNECTION: usize = 2;
/// Whose connections are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A user of this machine.
    Uid(i32),
    /// All that come over a network: what they say about themselves proves nothing.
    Remote,
}

impl Owner {
    pub(crate) fn of(peer: &Peer) -> Self {
        match peer.family {
            Family::Unix => Self::Uid(peer.uid),
            _ => Self::Remote,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uid(uid) => write!(f, "uid {uid}"),
            Self::Remote => f.write_str("other machines"),
        }
    }
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// So many are open.
    All(usize),
    /// So many of this one are.
    Of(Owner, usize),
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(count) => write!(f, "{count} connections are open"),
            Self::Of(owner, count) => write!(f, "{owner} has {count} connections, half of all there may be"),
        }
    }
}

/// What the connections of one owner take.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    connections: usize,
    queued_bytes: usize,
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Census {
    max_connections: usize,
    /// What may wait for all clients together.
    max_queued_bytes: usize,
    /// The user of this service, who like root may have all connections.
    uid: i32,
    all: Share,
    shares: HashMap<Owner, Share>,
}

impl Census {
    /// For a process with this limit of descriptors, that runs as this user, and keeps this much for its clients.
    pub(crate) fn new(max_descriptors: usize, uid: i32, max_queued_bytes: usize) -> Self {
        let affordable = max_descriptors.saturating_sub(RESERVED_DESCRIPTORS) / DESCRIPTORS_PER_CONNECTION;
        let max_connections = affordable.clamp(MIN_CONNECTIONS, MAX_CONNECTIONS);
        Self { max_connections, max_queued_bytes, uid, all: Share::default(), shares: HashMap::new() }
    }

    /// Counts one more connection, or says why there cannot be one.
    pub(crate) fn admit(&mut self, owner: Owner) -> Result<(), Full> {
        if self.all.connections >= self.max_connections {
            return Err(Full::All(self.all.connections));
        }
        let share = self.shares.entry(owner).or_default();
        let is_trusted = owner == Owner::Uid(0) || owner == Owner::Uid(self.uid);
        if share.connections >= self.max_connections / 2 && !is_trusted {
            return Err(Full::Of(owner, share.connections));
        }
        share.connections += 1;
        self.all.connections += 1;
        Ok(())
    }

    /// One connection less, for which so much was counted.
    pub(crate) fn leave(&mut self, owner: Owner, queued_bytes: usize) {
        self.count_queued(owner, queued_bytes, 0);
        self.all.connections -= 1;
        if let Some(share) = self.shares.get_mut(&owner) {
            share.connections -= 1;
            if share.connections == 0 {
                self.shares.remove(&owner);
            }
        }
    }

    /// Now `to` bytes wait on a connection for which `from` were counted.
    pub(crate) fn count_queued(&mut self, owner: Owner, from: usize, to: usize) {
        self.all.queued_bytes = self.all.queued_bytes + to - from;
        if let Some(share) = self.shares.get_mut(&owner) {
            share.queued_bytes = share.queued_bytes + to - from;
        }
    }

    /// What may wait for all clients together, in bytes.
    pub(crate) fn max_queued_bytes(&self) -> usize {
        self.max_queued_bytes
    }

    /// If more waits than may: whose connections it waits on, for the most part.
    pub(crate) fn overdrawn(&self) -> Option<Owner> {
        if self.all.queued_bytes <= self.max_queued_bytes {
            return None;
        }
        self.shares.iter().max_by_key(|(_, share)| share.queued_bytes).map(|(owner, _)| *owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: Owner = Owner::Uid(1000);
    const BOB: Owner = Owner::Uid(1001);
    const MAX_QUEUED_BYTES: usize = 6000;

    #[test]
    fn nobody_gets_more_than_half_but_root_and_we() {
        let mut census = Census::new(RESERVED_DESCRIPTORS + 2 * 40, 77, 0);
        for owner in [ALICE, Owner::Remote] {
            for _ in 0..20 {
                census.admit(owner).unwrap();
            }
            assert_eq!(census.admit(owner), Err(if owner == ALICE { Full::Of(owner, 20) } else { Full::All(40) }));
            if owner == ALICE {
                // One goes, one comes.
                census.leave(owner, 0);
                census.admit(owner).unwrap();
            }
        }
        for owner in [Owner::Uid(0), Owner::Uid(77)] {
            let mut census = Census::new(0, 77, 0);
            assert_eq!((0..20).filter(|_| census.admit(owner).is_ok()).count(), MIN_CONNECTIONS);
        }
    }

    #[test]
    fn the_one_for_whom_most_waits_has_to_give() {
        let mut census = Census::new(1000, 77, MAX_QUEUED_BYTES);
        census.admit(ALICE).unwrap();
        census.admit(ALICE).unwrap();
        census.admit(BOB).unwrap();
        census.count_queued(ALICE, 0, MAX_QUEUED_BYTES / 3);
        census.count_queued(BOB, 0, MAX_QUEUED_BYTES / 2);
        assert_eq!(census.overdrawn(), None);
        census.count_queued(ALICE, 0, MAX_QUEUED_BYTES / 3);
        assert_eq!(census.overdrawn(), Some(ALICE));
        census.leave(ALICE, MAX_QUEUED_BYTES / 3);
        assert_eq!(census.overdrawn(), None);
        census.leave(ALICE, MAX_QUEUED_BYTES / 3);
        census.leave(BOB, MAX_QUEUED_BYTES / 2);
        assert!(census.shares.is_empty() && census.all.queued_bytes == 0 && census.all.connections == 0);
    }
}
