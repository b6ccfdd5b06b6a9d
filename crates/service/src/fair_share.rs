//! Fair shares of what all clients use together: instances of a session, bytes of descriptors.
//!
//! A single limit for all clients would let the first one take everything. Here each client always
//! gets a small amount. Beyond that it takes from a pool, and no holder gets more than it leaves
//! for all other holders. So a greedy user ends up with half of the pool, a second one with a
//! quarter, and a newcomer always gets a share.

use core::cell::Cell;

use esatto_map::LargeMap;

use crate::api::Peer;

/// A user or a machine that a share of a pool is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    /// A user of this machine.
    User(i32),
    /// All other machines together, because nothing proves what they say about their users and
    /// themselves.
    Remote,
    /// One of the other machines.
    Machine(u32),
}

/// Iterates over the holders that a client is charged to, the outermost first.
fn holders(peer: &Peer) -> impl Iterator<Item = Holder> + use<> {
    let (first, second) = match peer.machine_id {
        0 => (Holder::User(peer.uid), None),
        id => (Holder::Remote, Some(Holder::Machine(id))),
    };
    core::iter::once(first).chain(second)
}

/// Limits of a shared resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Amount that each client always gets.
    pub(crate) each: u64,
    /// Amount that all clients together get beyond that.
    pub(crate) pool: u64,
}

std::thread_local! {
    static ARE_SMALL: Cell<bool> = const { Cell::new(false) };
}

/// Shrinks the pools of everything that is counted one by one, for services of this thread. A
/// simulation then reaches their ends in few steps. Without debug assertions nothing changes.
pub(crate) fn make_small(are_small: bool) {
    ARE_SMALL.set(are_small);
}

impl Bounds {
    /// Returns these limits, or small ones in a simulation.
    pub(crate) fn in_force(self) -> Self {
        const LARGEST_OF_ALL: u64 = 1 << 20;
        if !cfg!(debug_assertions) || self.pool > LARGEST_OF_ALL || !ARE_SMALL.get() {
            return self;
        }
        Self { each: self.each.min(4), pool: self.pool.min(256) }
    }
}

/// A pool, and the shares of its holders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    taken: u64,
    /// Holders with a share.
    by_holder: LargeMap<Holder, u64>,
}

impl Pool {
    /// Gives `amount` more to a client that has `held`. Returns false if that exceeds its share.
    pub(crate) fn take(&mut self, bounds: Bounds, peer: &Peer, held: u64, amount: u64) -> bool {
        let bounds = bounds.in_force();
        let after = held.saturating_add(amount).saturating_sub(bounds.each);
        let extra = after - held.saturating_sub(bounds.each);
        if extra == 0 {
            return true;
        }
        let Some(mut left) = bounds.pool.checked_sub(self.taken.saturating_add(extra)) else { return false };
        let of_holders = holders(peer).map(|holder| self.by_holder.get(&holder).copied().unwrap_or(0) + extra);
        for share in of_holders.chain([after]) {
            match left.checked_sub(share) {
                Some(rest) => left = rest,
                None => return false,
            }
        }
        self.taken += extra;
        for holder in holders(peer) {
            *self.by_holder.get_or_default(holder) += extra;
        }
        true
    }

    /// Takes `amount` back from a client that has `held`.
    pub(crate) fn give_back(&mut self, bounds: Bounds, peer: &Peer, held: u64, amount: u64) {
        let bounds = bounds.in_force();
        let extra = held.saturating_sub(bounds.each) - held.saturating_sub(amount).saturating_sub(bounds.each);
        if extra == 0 {
            return;
        }
        self.taken = self.taken.saturating_sub(extra);
        for holder in holders(peer) {
            let share = self.by_holder.get_or_default(holder);
            *share = share.saturating_sub(extra);
            if *share == 0 {
                self.by_holder.remove(&holder);
            }
        }
    }

    /// Tells whether exactly this amount is taken.
    pub(crate) fn holds(&self, amount: u64) -> bool {
        self.taken == amount && (amount > 0 || self.by_holder.is_empty())
    }

    /// Tells whether nothing is taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.holds(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { each: 4, pool: 1000 };

    fn local(uid: i32) -> Peer {
        Peer { uid, pid: None, machine_id: 0 }
    }

    /// Takes one by one until the pool refuses.
    fn take_all(pool: &mut Pool, peer: &Peer) -> u64 {
        (0..).find(|&held| !pool.take(BOUNDS, peer, held, 1)).expect("an end")
    }

    #[test]
    fn each_user_and_each_client_leaves_room_for_another() {
        let mut pool = Pool::default();
        let first: Vec<u64> = (0..50).map(|_| take_all(&mut pool, &local(1))).collect();
        assert_eq!(first[..4], [4 + 333, 4 + 111, 4 + 37, 4 + 12]);
        assert!(first.iter().all(|&count| count >= BOUNDS.each), "{first:?}");
        let second = take_all(&mut pool, &local(2));
        assert!(second >= 160, "another user gets {second}");
        let remote = take_all(&mut pool, &Peer { uid: 1, pid: None, machine_id: 7 });
        assert!(remote >= 60, "another machine gets {remote}");
    }

    #[test]
    fn made_up_machines_share_the_part_of_one_user() {
        let mut pool = Pool::default();
        let remote: u64 = (1..1000).map(|machine_id| take_all(&mut pool, &Peer { machine_id, ..local(0) })).sum();
        assert!(remote <= 999 * BOUNDS.each + BOUNDS.pool / 2, "{remote}");
        assert!(take_all(&mut pool, &local(1)) > 100);
    }

    #[test]
    fn a_returned_share_can_be_taken_again() {
        let mut pool = Pool::default();
        for _ in 0..3 {
            let held = take_all(&mut pool, &local(1));
            for left in (0..held).rev() {
                pool.give_back(BOUNDS, &local(1), left + 1, 1);
            }
            assert!(pool.is_empty());
        }
        assert!(pool.take(BOUNDS, &local(1), 0, 100));
        assert!(!pool.take(BOUNDS, &local(1), 100, u64::MAX), "sums do not overflow");
        pool.give_back(BOUNDS, &local(1), 100, 100);
        assert!(pool.is_empty());
    }
}
