//! The life of sequences: they begin, get new writers and are forgotten
//! (`docs/spec/trace-buffer.md` §7, §11, §15).

use std::collections::BTreeMap;

use super::{Key, Life, Reference, Sequence, loss};

impl Reference {
    pub(super) fn touch(&mut self, key: Key) -> Life {
        self.copies += 1;
        self.forget_if_crowded();
        let life = match self.current.get(&key) {
            Some(&life) => (key.0, key.1, life),
            None => {
                let life = self.begin_life(key);
                self.sequences.get_mut(&life).expect("it is there").may_be_known = self.has_forgotten;
                life
            }
        };
        self.sequences.get_mut(&life).expect("it is there").last_used = self.copies;
        life
    }

    /// Forgets the oldest sequences of the producers that have the most (§11).
    pub(super) fn forget_if_crowded(&mut self) {
        let kept = 1024;
        if self.empty <= kept + kept / 8 {
            return;
        }
        let is_ended = |sequence: &Sequence| sequence.chunks.is_empty() && sequence.is_ended;
        let ended = self.sequences.iter().filter(|(_, sequence)| is_ended(sequence));
        let mut ended: Vec<(u64, u32, Life)> =
            ended.map(|(&life, sequence)| (sequence.last_used, life.2, life)).collect();
        ended.sort_unstable();
        ended.truncate(self.empty - kept);
        for (_, _, life) in &ended {
            self.forget(*life);
        }
        if self.empty <= kept {
            return;
        }
        let mut of_producers: BTreeMap<u16, Vec<(u64, Life)>> = BTreeMap::new();
        for (&life, sequence) in self.sequences.iter().filter(|(_, sequence)| sequence.chunks.is_empty()) {
            of_producers.entry(life.0).or_default().push((sequence.last_used, life));
        }
        let kept_with = |share| of_producers.values().map(|empty| empty.len().min(share)).sum::<usize>();
        let share = (0..=kept).rev().find(|&share| kept_with(share) <= kept).unwrap_or(0);
        let mut surplus = Vec::new();
        for empty in of_producers.values_mut() {
            empty.sort_unstable();
            surplus.extend_from_slice(&empty[..empty.len().saturating_sub(share)]);
        }
        surplus.sort_unstable();
        for (_, life) in &surplus[..self.empty - kept] {
            self.forget(*life);
        }
        self.has_forgotten = true;
    }

    fn forget(&mut self, life: Life) {
        self.sequences.remove(&life);
        if self.current.get(&(life.0, life.1)) == Some(&life.2) {
            self.current.remove(&(life.0, life.1));
        }
        self.empty -= 1;
    }

    /// Notes that a writer has ended (§11).
    pub fn end(&mut self, key: Key) {
        if let Some(&life) = self.current.get(&key) {
            self.sequences.get_mut(&(key.0, key.1, life)).expect("it is there").is_ended = true;
        }
    }

    pub(super) fn begin_life(&mut self, key: Key) -> Life {
        self.forget_if_crowded();
        self.lives += 1;
        let life = (key.0, key.1, self.lives);
        self.current.insert(key, self.lives);
        self.sequences.insert(life, Sequence { last_used: self.copies, ..Sequence::default() });
        self.empty += 1;
        life
    }

    /// Notes that a writer id that was given back is used again (§7).
    pub fn renew(&mut self, key: Key) {
        let Some(&life) = self.current.get(&key) else { return };
        let sequence = self.sequences.get_mut(&(key.0, key.1, life)).expect("it is there");
        if sequence.chunks.is_empty() {
            sequence.ends();
            sequence.consumed = None;
            sequence.may_be_known = false;
            sequence.is_ended = false;
        } else {
            sequence.is_retired = true;
            sequence.is_ended = true;
            self.begin_life(key);
        }
    }

    /// Notes that a producer is gone.
    pub fn retire_producer(&mut self, producer: u16) {
        for (key, life) in self.current.iter().filter(|(key, _)| key.0 == producer) {
            self.sequences.get_mut(&(key.0, key.1, *life)).expect("it is there").is_ended = true;
        }
        self.current.retain(|key, _| key.0 != producer);
    }

    /// Notes that the content of another buffer is gone unread (§15). Returns the writers that lost
    /// something.
    pub fn inherit_loss(&mut self, gone: &Self) -> Vec<Key> {
        let mut losers = Vec::new();
        for (&(producer, writer, _), sequence) in &gone.sequences {
            let unread = if sequence.chunks.is_empty() { 0 } else { loss::PRESENT | loss::OVERWRITE };
            let key = (producer, writer);
            if sequence.loss | unread == 0 {
                continue;
            }
            let life = match self.current.get(&key) {
                Some(&life) => (producer, writer, life),
                None => {
                    self.copies += 1;
                    self.begin_life(key)
                }
            };
            self.sequences.get_mut(&life).expect("it is there").loss |= sequence.loss | unread;
            losers.push(key);
        }
        losers
    }

    /// The present writer of an id reports the loss of an earlier one that has no chunks left.
    pub(super) fn hand_down(&mut self, life: Life) {
        let sequence = self.sequences.get_mut(&life).expect("it is there");
        if sequence.is_retired && sequence.chunks.is_empty() {
            sequence.ends();
            let loss = core::mem::take(&mut sequence.loss);
            if let Some(&heir) = self.current.get(&(life.0, life.1)) {
                self.sequences.get_mut(&(life.0, life.1, heir)).expect("it is there").loss |= loss;
            }
        }
    }
}
