//! Shares of users: how many connections and how much memory each user may have.
//!
//! Each connection has its bounds ([`Client`](crate::client::Client)), but a user may open many. So
//! this module adds up all connections of one user. If memory becomes scarce, the user who holds
//! the most loses connections.

use core::fmt;
use std::collections::HashMap;

use esatto_ipc::{Family, Peer};
use esatto_shm::size::DEFAULT_SIZE;

/// Largest number of connections, with any limit of descriptors.
const MAX_CONNECTIONS: usize = 8192;
/// Smallest number of connections, with any limit of descriptors.
const MIN_CONNECTIONS: usize = 16;
/// Descriptors that are not for connections: half of all, within these bounds.
///
/// They are for listeners, trace files and their clones, the 253 descriptors that one message can
/// bring, and those that wait to be closed. Without a free descriptor, the kernel closes the
/// descriptors that it cannot deliver, in the thread that receives.
const RESERVED_DESCRIPTORS: core::ops::RangeInclusive<usize> = 64..=512;
/// Descriptors that one connection may need: the socket, the shared memory, a copy of its
/// descriptor that is sent to the producer, and one that came with a call.
const DESCRIPTORS_PER_CONNECTION: usize = 4;
/// One in so many connections is reserved for root and the user of this service.
const RESERVED_PART: usize = 16;
/// Shared memory of all producers together, in bytes, touched or not.
///
/// Each owner has a share of it ([`share_of`]). Beyond its share, a producer gets the default size,
/// and memory that it brings along is not adopted. The default size is not limited. The bound is
/// enough for 256 producers with the largest memory, 32 MiB.
const MAX_SHARED_BYTES: usize = 8 << 30;

/// User whose connections are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A user of this machine.
    Uid(i32),
    /// All other machines: their claims about users prove nothing.
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

/// Returns how much of `max` an owner may have while all others have `others`.
///
/// A share is half of the amount that all other users leave, rounded up. So every newcomer gets
/// something and takes nothing from others. Root and the user of the service (`is_trusted`) may
/// have the whole rest.
pub(crate) fn share_of(max: usize, others: usize, is_trusted: bool) -> usize {
    let left = max.saturating_sub(others);
    if is_trusted { left } else { left.div_ceil(2) }
}

/// Reason why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// So many connections are open: all that there can be.
    All(usize),
    /// This owner has so many connections, and that is its share.
    Of(Owner, usize),
    /// So many connections are open, and the rest is reserved.
    Reserved(usize),
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(count) => write!(f, "{count} connections are open"),
            Self::Of(owner, count) => {
                write!(f, "{owner} has {count} connections, and its share is half of those that other users leave")
            }
            Self::Reserved(count) => write!(f, "{count} connections are open, and the rest is reserved for root"),
        }
    }
}

/// Connections and memory of one owner.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    connections: usize,
    /// Bytes queued for its connections, and bytes received from them but not handled.
    held_bytes: usize,
    shared_bytes: usize,
}

/// Connections and memory of all users.
#[derive(Debug)]
pub(crate) struct UserShares {
    max_connections: usize,
    /// Bytes that may be held for all clients together.
    max_held_bytes: usize,
    /// The owner that exceeded its share last, if it still does.
    hoarder: Option<Owner>,
    /// The user of this service, who like root may have all connections.
    uid: i32,
    all: Usage,
    usage: HashMap<Owner, Usage>,
}

impl UserShares {
    /// Creates shares of `max_connections` connections and `max_held_bytes` bytes, for a service
    /// that runs as user `uid`.
    pub(crate) fn new(max_connections: usize, uid: i32, max_held_bytes: usize) -> Self {
        let (all, usage) = (Usage::default(), HashMap::new());
        Self { max_connections, max_held_bytes, hoarder: None, uid, all, usage }
    }

    /// Returns how many connections a process with this limit of descriptors can have.
    pub(crate) fn max_connections(max_descriptors: usize) -> usize {
        let reserved = (max_descriptors / 2).clamp(*RESERVED_DESCRIPTORS.start(), *RESERVED_DESCRIPTORS.end());
        let affordable = max_descriptors.saturating_sub(reserved) / DESCRIPTORS_PER_CONNECTION;
        affordable.clamp(MIN_CONNECTIONS, MAX_CONNECTIONS)
    }

    /// Counts one more connection, or returns why there cannot be one. `closing` counts the owner's
    /// earlier connections that are not closed yet.
    pub(crate) fn admit(&mut self, owner: Owner, closing: usize) -> Result<(), Full> {
        let (max, all) = (self.max_connections, self.all.connections);
        if all >= max {
            return Err(Full::All(all));
        }
        if !self.is_trusted(owner) {
            let own = self.usage.get(&owner).map_or(0, |usage| usage.connections);
            let may_have = share_of(max - max / RESERVED_PART, all - own, false);
            if own + closing >= may_have {
                return Err(if may_have == 0 { Full::Reserved(all) } else { Full::Of(owner, own + closing) });
            }
        }
        let usage = self.usage.entry(owner).or_default();
        usage.connections += 1;
        self.all.connections += 1;
        Ok(())
    }

    /// Returns whether this owner has no share because it may have all: root and the user of this
    /// service.
    pub(crate) fn is_trusted(&self, owner: Owner) -> bool {
        owner == Owner::Uid(0) || owner == Owner::Uid(self.uid)
    }

    /// Counts one connection less, which held so many bytes and shared so much memory.
    pub(crate) fn leave(&mut self, owner: Owner, held_bytes: usize, shared_bytes: usize) {
        self.count_held(owner, held_bytes, 0);
        self.all.connections -= 1;
        self.all.shared_bytes -= shared_bytes;
        if let Some(usage) = self.usage.get_mut(&owner) {
            usage.connections -= 1;
            usage.shared_bytes -= shared_bytes;
            if usage.connections == 0 {
                self.usage.remove(&owner);
            }
        }
    }

    /// Notes that a connection holds `to` bytes instead of `from`.
    pub(crate) fn count_held(&mut self, owner: Owner, from: usize, to: usize) {
        self.all.held_bytes = self.all.held_bytes + to - from;
        let is_trusted = self.is_trusted(owner);
        let Some(usage) = self.usage.get_mut(&owner) else { return };
        usage.held_bytes = usage.held_bytes + to - from;
        if !is_trusted && usage.held_bytes > self.max_held_bytes / 2 {
            self.hoarder = Some(owner);
        }
    }

    /// Counts shared memory of a connection until the connection ends. Returns false if it is too
    /// much.
    pub(crate) fn share_memory(&mut self, owner: Owner, bytes: usize) -> bool {
        if !self.may_share_memory(owner, bytes) {
            return false;
        }
        let Some(usage) = self.usage.get_mut(&owner) else { return false };
        usage.shared_bytes += bytes;
        self.all.shared_bytes += bytes;
        true
    }

    /// Returns whether an owner may share so many more bytes. The default size is always allowed.
    pub(crate) fn may_share_memory(&self, owner: Owner, bytes: usize) -> bool {
        let Some(usage) = self.usage.get(&owner) else { return false };
        let others = self.all.shared_bytes - usage.shared_bytes;
        let may_have = share_of(MAX_SHARED_BYTES, others, self.is_trusted(owner));
        bytes <= DEFAULT_SIZE || usage.shared_bytes.saturating_add(bytes) <= may_have
    }

    /// Bytes that may be held for all clients together.
    pub(crate) fn max_held_bytes(&self) -> usize {
        self.max_held_bytes
    }

    /// Returns the owner with the most held bytes, and the exceeded limit, if one is
    /// exceeded.
    pub(crate) fn overdrawn(&mut self) -> Option<(Owner, usize)> {
        let own_limit = self.max_held_bytes / 2;
        let of = |owner| self.usage.get(&owner).map_or(0, |usage| usage.held_bytes);
        self.hoarder = self.hoarder.filter(|owner| of(*owner) > own_limit);
        if let Some(owner) = self.hoarder {
            return Some((owner, own_limit));
        }
        if self.all.held_bytes <= self.max_held_bytes {
            return None;
        }
        let most = self.usage.iter().max_by_key(|(_, usage)| usage.held_bytes);
        most.map(|(owner, _)| (*owner, self.max_held_bytes))
    }
}

/// Returns the order in which connections of one owner are closed when too much is held for it.
///
/// First come those of the process for which the most is held, and of these the fullest. So a
/// process that spreads its bytes over many connections does not harm other processes of the same
/// user. Each connection comes with its process and the number of held bytes. Those without held
/// bytes stay open.
pub(crate) fn fullest_first<Id: Copy + Ord>(connections: impl Iterator<Item = (Id, Option<i32>, usize)>) -> Vec<Id> {
    let connections: Vec<_> = connections.filter(|&(_, _, held)| held > 0).collect();
    let mut of_process: HashMap<Option<i32>, usize> = HashMap::new();
    for &(_, pid, held) in &connections {
        *of_process.entry(pid).or_default() += held;
    }
    let mut ranked: Vec<_> = connections
        .into_iter()
        .map(|(id, pid, held)| (of_process.get(&pid).copied().unwrap_or(0), pid, held, id))
        .collect();
    ranked.sort_unstable_by(|one, other| other.cmp(one));
    ranked.into_iter().map(|(.., id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: Owner = Owner::Uid(1000);
    const BOB: Owner = Owner::Uid(1001);
    const MAX_HELD_BYTES: usize = 6000;

    #[test]
    fn a_user_gets_half_of_the_remaining_connections_and_root_all() {
        let mut shares = UserShares::new(64, 77, 0);
        let count = |shares: &mut UserShares, owner| (0..100).take_while(|_| shares.admit(owner, 0).is_ok()).count();
        // Four of 64 are reserved for root and the service's user.
        assert_eq!(count(&mut shares, ALICE), 30);
        assert_eq!(shares.admit(ALICE, 0), Err(Full::Of(ALICE, 30)));
        // One leaves and one enters, but only after the first is closed.
        shares.leave(ALICE, 0, 0);
        assert_eq!(shares.admit(ALICE, 1), Err(Full::Of(ALICE, 30)));
        shares.admit(ALICE, 0).unwrap();
        // All other machines together have the share of one user.
        assert_eq!(count(&mut shares, Owner::Remote), 15);
        assert_eq!(shares.admit(Owner::Remote, 0), Err(Full::Of(Owner::Remote, 15)));
        // Each newcomer gets fewer, down to one.
        let newcomers = [BOB, Owner::Uid(1002), Owner::Uid(1003), Owner::Uid(1004)];
        assert_eq!(newcomers.map(|owner| count(&mut shares, owner)), [8, 4, 2, 1]);
        assert_eq!(shares.admit(Owner::Uid(1005), 0), Err(Full::Reserved(60)));
        assert!(!shares.usage.contains_key(&Owner::Uid(1005)), "nothing is kept of who was refused");
        for owner in [Owner::Uid(0), Owner::Uid(77), Owner::Uid(0), Owner::Uid(77)] {
            shares.admit(owner, 0).unwrap();
        }
        assert_eq!(shares.admit(Owner::Uid(0), 0), Err(Full::All(64)));
    }

    #[test]
    fn two_greedy_users_leave_hundreds_of_connections_to_a_third() {
        // For the daemon, for the daemon with the descriptor limit of its unit, and for the relay.
        for (max, for_a_third) in [(MAX_CONNECTIONS, 960), (UserShares::max_connections(16_384), 465), (1024, 120)] {
            let mut shares = UserShares::new(max, 77, 0);
            let mut count = |owner| (0..max).take_while(|_| shares.admit(owner, 0).is_ok()).count();
            assert!(count(ALICE) >= 480, "one user alone has hundreds");
            count(Owner::Remote);
            assert_eq!(count(BOB), for_a_third, "of {max}");
        }
    }

    #[test]
    fn the_descriptor_limit_bounds_the_connections() {
        let numbers = [0, 224, 1024, 16_384, 1 << 20, usize::MAX].map(UserShares::max_connections);
        assert_eq!(numbers, [16, 28, 128, 3968, 8192, 8192]);
    }

    #[test]
    fn the_user_for_whom_most_is_held_loses_connections() {
        let mut shares = UserShares::new(1000, 77, MAX_HELD_BYTES);
        shares.admit(Owner::Uid(0), 0).unwrap();
        shares.admit(Owner::Uid(0), 0).unwrap();
        shares.admit(BOB, 0).unwrap();
        shares.count_held(Owner::Uid(0), 0, MAX_HELD_BYTES / 3);
        shares.count_held(BOB, 0, MAX_HELD_BYTES / 2);
        assert_eq!(shares.overdrawn(), None);
        shares.count_held(Owner::Uid(0), 0, MAX_HELD_BYTES / 3);
        assert_eq!(shares.overdrawn(), Some((Owner::Uid(0), MAX_HELD_BYTES)));
        shares.leave(Owner::Uid(0), MAX_HELD_BYTES / 3, 0);
        assert_eq!(shares.overdrawn(), None);
        shares.leave(Owner::Uid(0), MAX_HELD_BYTES / 3, 0);
        shares.leave(BOB, MAX_HELD_BYTES / 2, 0);
        assert!(shares.usage.is_empty() && shares.all.held_bytes == 0 && shares.all.connections == 0);
    }

    #[test]
    fn a_process_with_many_connections_loses_them_first() {
        // The honest process has the fullest connection.
        let connections = [(1, Some(10), 50), (2, Some(66), 30), (3, Some(66), 40), (4, Some(11), 0), (5, None, 20)];
        assert_eq!(fullest_first(connections.into_iter()), [3, 2, 1, 5]);
        assert_eq!(fullest_first([(1, Some(10), 0)].into_iter()), Vec::<i32>::new());
    }

    #[test]
    fn one_user_may_hold_half_of_the_bytes() {
        let mut shares = UserShares::new(1000, 77, MAX_HELD_BYTES);
        shares.admit(ALICE, 0).unwrap();
        shares.admit(ALICE, 0).unwrap();
        shares.admit(BOB, 0).unwrap();
        shares.count_held(BOB, 0, MAX_HELD_BYTES / 2);
        shares.count_held(ALICE, 0, 100);
        shares.count_held(ALICE, 0, MAX_HELD_BYTES / 2);
        assert_eq!(shares.overdrawn(), Some((ALICE, MAX_HELD_BYTES / 2)));
        shares.leave(ALICE, MAX_HELD_BYTES / 2, 0);
        assert_eq!(shares.overdrawn(), None);
    }

    #[test]
    fn shared_memory_of_one_user_leaves_some_for_other_users() {
        const LARGEST: usize = 32 << 20;
        let mut shares = UserShares::new(1000, 77, 0);
        for owner in [ALICE, BOB, Owner::Uid(0)] {
            shares.admit(owner, 0).unwrap();
        }
        let count =
            |shares: &mut UserShares, owner| (0..1000).take_while(|_| shares.share_memory(owner, LARGEST)).count();
        assert_eq!(count(&mut shares, ALICE), 128);
        assert_eq!(count(&mut shares, BOB), 64);
        assert_eq!(count(&mut shares, Owner::Uid(0)), 64);
        assert!(!shares.share_memory(BOB, DEFAULT_SIZE + 1));
        assert!(shares.share_memory(BOB, DEFAULT_SIZE), "every producer gets the default");
        shares.leave(ALICE, 0, 128 * LARGEST);
        assert_eq!(count(&mut shares, Owner::Uid(0)), 127);
        assert!(!shares.share_memory(Owner::Uid(1002), 1), "it is not connected");
    }
}
