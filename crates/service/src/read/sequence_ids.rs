//! The packet sequence ids of a session (`docs/spec/service.md §1`).

use std::collections::{HashMap, VecDeque};

use crate::api::Peer;
use crate::buffer::Identity;
use crate::fair_share::{Bounds, Pool};
use crate::ids::ProducerId;

/// Packet sequences of a producer that a session always remembers.
const SEQUENCE_IDS_PER_PRODUCER: u64 = 64;

/// Packet sequences that a session remembers of all producers beyond that.
///
/// A user gets at most half of what is left, and a producer at most half of what is left for its
/// user. If a producer has more sequences, the session forgets those that it has not used for the
/// longest time.
const MAX_SEQUENCE_IDS: usize = 1 << 17;

const SEQUENCE_IDS: Bounds = Bounds { each: SEQUENCE_IDS_PER_PRODUCER, pool: MAX_SEQUENCE_IDS as u64 };

/// Packet sequence ids. 1 is the service; writers get ids from 2 on in the order of their first
/// packets.
#[derive(Clone, Debug)]
pub(crate) struct SequenceIds {
    /// By machine, producer and writer.
    ids: HashMap<(u32, u16, u16), Sequence>,
    /// By machine and producer.
    producers: HashMap<(u32, u16), Sequences>,
    /// Sequences that the producers were charged.
    pool: Pool,
    last: u32,
    /// A producer got no sequence more since the last search for disconnected producers.
    is_short: bool,
    /// Ids that were given out since then.
    added: usize,
    forgotten: u64,
}

/// One packet sequence.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    id: u32,
    /// A read pass has returned a packet of it.
    is_read: bool,
    /// It was used again since it was new, or since it was considered for removal.
    is_used: bool,
}

/// The packet sequences of a producer.
#[derive(Clone, Debug)]
struct Sequences {
    /// The client that is charged: the first producer that had this number.
    peer: Peer,
    /// Writers, with the next candidate for removal first.
    writers: VecDeque<u16>,
}

impl Default for SequenceIds {
    fn default() -> Self {
        Self {
            ids: HashMap::new(),
            producers: HashMap::new(),
            pool: Pool::default(),
            last: 1,
            is_short: false,
            added: 0,
            forgotten: 0,
        }
    }
}

impl SequenceIds {
    /// Forgets the sequences of disconnected producers, if there are very many or if a producer got
    /// no more. Data that such a producer left in a buffer then become a new sequence. Returns the
    /// number of sequences that were visited.
    pub(crate) fn prune(&mut self, is_connected: impl Fn(ProducerId) -> bool) -> usize {
        let looked_at = self.ids.len();
        // Each new id pays for a few visits.
        if !(self.is_short || looked_at > MAX_SEQUENCE_IDS) || self.added < looked_at / 8 {
            return 0;
        }
        self.ids.retain(|&(_, producer, _), _| is_connected(ProducerId(producer)));
        let pool = &mut self.pool;
        self.producers.retain(|&(_, producer), sequences| {
            let stays = is_connected(ProducerId(producer));
            if !stays {
                let held = sequences.writers.len() as u64;
                pool.give_back(SEQUENCE_IDS, &sequences.peer, held, held);
            }
            stays
        });
        (self.is_short, self.added) = (false, 0);
        looked_at
    }

    pub(crate) fn of(&mut self, identity: &Identity, producer: u16, writer: u16) -> u32 {
        self.entry(identity, producer, writer).id
    }

    /// Returns the id of a packet that is read, and whether it is the first of its sequence.
    pub(crate) fn of_packet(&mut self, identity: &Identity, producer: u16, writer: u16) -> (u32, bool) {
        let sequence = self.entry(identity, producer, writer);
        (sequence.id, !core::mem::replace(&mut sequence.is_read, true))
    }

    fn entry(&mut self, identity: &Identity, producer: u16, writer: u16) -> &mut Sequence {
        let key = (identity.machine_id, producer, writer);
        let is_known = self.ids.contains_key(&key);
        if !is_known {
            self.make_room(identity, producer, writer);
        }
        let last = &mut self.last;
        let sequence = self.ids.entry(key).or_insert_with(|| {
            *last = last.checked_add(1).unwrap_or(2);
            Sequence { id: *last, is_read: false, is_used: false }
        });
        sequence.is_used = is_known;
        sequence
    }

    /// Charges a producer with one sequence more. If its share is used up, it loses another
    /// sequence.
    fn make_room(&mut self, identity: &Identity, producer: u16, writer: u16) {
        let Self { ids, producers, pool, is_short, forgotten, .. } = self;
        let Identity { uid, pid, machine_id } = *identity;
        let new = || Sequences { peer: Peer { uid, pid, machine_id }, writers: VecDeque::new() };
        let sequences = producers.entry((machine_id, producer)).or_insert_with(new);
        if !pool.take(SEQUENCE_IDS, &sequences.peer, sequences.writers.len() as u64, 1) {
            *is_short = true;
            *forgotten += 1;
            // The loop ends, because one round clears all marks. Each mark pays for one step.
            while let Some(candidate) = sequences.writers.pop_front() {
                let key = (machine_id, producer, candidate);
                let is_used = ids.get_mut(&key).map(|sequence| core::mem::replace(&mut sequence.is_used, false));
                if is_used != Some(true) {
                    ids.remove(&key);
                    break;
                }
                sequences.writers.push_back(candidate);
            }
        }
        sequences.writers.push_back(writer);
        self.added += 1;
    }

    /// Iterates over the charged clients and the number of their sequences.
    pub(crate) fn holders(&self) -> impl Iterator<Item = (&Peer, u64)> {
        self.producers.values().map(|sequences| (&sequences.peer, sequences.writers.len() as u64))
    }

    /// Returns the number of sequences that were forgotten, because their producers had their
    /// share.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Estimates the memory of the table.
    pub(crate) fn bytes(&self) -> u64 {
        let of_sequence = size_of::<((u32, u16, u16), Sequence)>() + size_of::<u16>();
        let of_producer = size_of::<((u32, u16), Sequences)>();
        (self.ids.len() * of_sequence + self.producers.len() * of_producer) as u64
    }

    /// Returns the same ids for a new trace, of which no packet has been read.
    pub(crate) fn restarted(&self) -> Self {
        let mut restarted = self.clone();
        restarted.ids.values_mut().for_each(|sequence| sequence.is_read = false);
        restarted
    }

    /// Checks that each sequence is charged once.
    ///
    /// # Panics
    ///
    /// If they are not.
    pub(crate) fn assert_consistent(&self) {
        let held = || self.producers.values().map(|sequences| sequences.writers.len());
        assert_eq!(self.ids.len(), held().sum::<usize>(), "sequences that no producer has");
        let charged = held().map(|held| (held as u64).saturating_sub(SEQUENCE_IDS.in_force().each)).sum();
        assert!(self.pool.holds(charged), "sequences are charged that nobody has, or the reverse");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(uid: i32) -> Identity {
        Identity { uid, pid: None, machine_id: 0 }
    }

    #[test]
    fn sequences_of_disconnected_producers_are_forgotten() {
        let mut ids = SequenceIds::default();
        for producer in 1..=5 {
            for writer in 1..=32767 {
                assert!(ids.of_packet(&user(producer.into()), producer, writer).1);
            }
        }
        ids.assert_consistent();
        assert!(ids.ids.len() > 90_000 && ids.forgotten() > 0, "{} {}", ids.ids.len(), ids.forgotten());
        let held = ids.producers[&(0, 5)].writers.len();
        assert_eq!(ids.prune(|producer| producer == ProducerId(5)), 5 * 32767 - ids.forgotten() as usize);
        ids.assert_consistent();
        assert_eq!(ids.ids.len(), held);
        assert_eq!(ids.of_packet(&user(5), 5, 32767), (5 * 32767 + 1, false), "those that stay keep their numbers");
        assert_eq!(ids.of(&user(1), 1, 1), 5 * 32767 + 2, "numbers are not used twice");
        assert_eq!(ids.prune(|_| false), 0, "a look is paid for by those that came");
    }

    #[test]
    fn each_user_and_each_producer_has_a_share_of_the_sequences() {
        let mut ids = SequenceIds::default();
        let mut name_all = |user: Identity, producer: u16, count: u16| {
            for writer in 1..=count {
                ids.of_packet(&user, producer, writer);
            }
            ids.assert_consistent();
            ids.producers[&(0, producer)].writers.len()
        };
        assert_eq!(name_all(user(1), 1, 32767), 32767, "one alone has all that it can use");
        let greedy: usize = (2..200).map(|producer| name_all(user(1), producer, 10_000)).sum();
        assert!(greedy <= MAX_SEQUENCE_IDS / 2 + 200 * 64, "{greedy}");
        assert_eq!(name_all(user(1), 200, 64), 64, "a newcomer of this user");
        assert_eq!(name_all(user(2), 201, 10_000), 10_000, "a newcomer of another user");
        assert!(ids.ids.len() <= MAX_SEQUENCE_IDS + 201 * 64);
    }

    #[test]
    fn the_sequence_that_was_unused_longest_is_forgotten() {
        let mut ids = SequenceIds::default();
        for writer in 1..=u16::MAX {
            ids.of_packet(&user(1), 1, writer);
            // Like the main thread of a program that starts and ends other threads.
            assert_eq!(ids.of(&user(1), 1, 1), 2, "after {writer} writers");
        }
        assert!(ids.forgotten() > 10_000, "{}", ids.forgotten());
        ids.assert_consistent();
    }
}
