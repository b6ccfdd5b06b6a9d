//! Reading of packets (`docs/spec/trace-buffer.md` §9, §11, §12).

use super::{
    Expected, FIRST_CONTINUES, LAST_CONTINUES, Life, NEEDS_PATCHING, Reference, Sequence, before, fragment, loss,
};

/// The result of one step at the oldest chunk of a sequence.
enum Step {
    Packet(Expected),
    Consumed,
    Waits { for_rest: bool },
}

impl Reference {
    /// Begins a pass (§9). Sequences that wait for the rest of a packet are counted again.
    pub fn begin_read(&mut self) {
        self.stats.readaheads_failed +=
            self.sequences.values().filter(|sequence| sequence.waits == Some(true)).count() as u64;
        self.pass = Some(None);
    }

    /// Continues a pass that has not ended.
    pub fn resume_read(&mut self) {
        if self.pass.is_none() {
            self.begin_read();
        }
    }

    /// Returns the next packet of this pass (§11).
    pub fn next_packet(&mut self) -> Option<Expected> {
        loop {
            let key = self.next_turn()?;
            match self.step(key) {
                Step::Packet(packet) => return Some(packet),
                Step::Consumed => {}
                Step::Waits { for_rest } => {
                    self.sequences.get_mut(&key).expect("it has chunks").waits = Some(for_rest);
                }
            }
        }
    }

    /// Reads one sequence after the other, each up to its last chunk when its turn began.
    fn next_turn(&mut self) -> Option<Life> {
        let turn = self.pass?;
        let is_ready = |sequence: &Sequence| sequence.waits.is_none() && !sequence.chunks.is_empty();
        if let Some((life, until)) = turn {
            let sequence = self.sequences.get(&life).filter(|sequence| is_ready(sequence));
            if sequence.is_some_and(|sequence| !before(until, sequence.chunks[0].id)) {
                return Some(life);
            }
        }
        let ready = || self.sequences.iter().filter(|(_, sequence)| is_ready(sequence));
        let behind = ready().find(|(life, _)| turn.is_none_or(|(turn, _)| **life > turn));
        let next = behind.or_else(|| ready().next());
        self.pass = next.map(|(&life, sequence)| Some((life, sequence.chunks.back().expect("it is ready").id)));
        next.map(|(&life, _)| life)
    }

    fn step(&mut self, key: Life) -> Step {
        let sequence = &self.sequences[&key];
        let Some(chunk) = sequence.chunks.front() else { return Step::Waits { for_rest: false } };
        let gap = sequence.lost_before(chunk);
        if gap != 0 && sequence.consumed.is_none() {
            // Perhaps no chunk is, because the sequence was forgotten.
            self.told_early.insert((key.0, key.1));
        }
        if chunk.is_read() {
            if chunk.incomplete {
                return Step::Waits { for_rest: false };
            }
            self.lose(key, gap);
            self.leave(key);
            return Step::Consumed;
        }
        let Ok((start, len)) = fragment(&chunk.bytes, chunk.read) else {
            self.stats.abi_violations += 1;
            self.lose(key, gap | loss::PRESENT | loss::CHUNK_CORRUPTED);
            self.consume(key, 0, usize::MAX);
            return Step::Consumed;
        };
        let end = start + len;
        let is_last = end >= chunk.bytes.len();
        if chunk.read == 0 && chunk.has(FIRST_CONTINUES) {
            self.lose(key, gap | loss::PRESENT | loss::ORPHAN);
            self.consume(key, 0, end);
            return Step::Consumed;
        }
        if is_last && chunk.has(NEEDS_PATCHING) {
            return Step::Waits { for_rest: false };
        }
        let bytes = chunk.bytes[start..end].to_vec();
        if is_last && chunk.has(LAST_CONTINUES) {
            return self.join(key, gap, bytes);
        }
        self.lose(key, gap);
        self.consume(key, 0, end);
        self.returned(key, bytes)
    }

    /// Reads a packet over several chunks.
    fn join(&mut self, key: Life, gap: u32, mut bytes: Vec<u8>) -> Step {
        let mut id = self.sequences[&key].chunks[0].id;
        let mut index = 0;
        let (reason, left) = loop {
            index += 1;
            let Some(next) = self.sequences[&key].chunks.get(index) else {
                return self.wait_for_rest(key, index);
            };
            id = id.wrapping_add(1);
            if next.id != id {
                break (loss::PRESENT | loss::REASSEMBLY_GAP, index);
            }
            if next.is_empty() && !next.incomplete {
                continue;
            }
            if next.is_empty() {
                return self.wait_for_rest(key, index);
            }
            if !next.has(FIRST_CONTINUES) || next.read != 0 {
                break (loss::PRESENT | loss::BROKEN_CHAIN, index);
            }
            if next.bytes.is_empty() {
                break (0, index + 1);
            }
            if next.has(NEEDS_PATCHING) {
                return self.wait_for_rest(key, index);
            }
            let Ok((start, len)) = fragment(&next.bytes, 0) else {
                self.stats.abi_violations += 1;
                self.consume(key, index, usize::MAX);
                break (loss::PRESENT | loss::CHUNK_CORRUPTED, index);
            };
            bytes.extend_from_slice(&next.bytes[start..start + len]);
            if start + len >= next.bytes.len() && next.has(LAST_CONTINUES) {
                continue;
            }
            self.lose(key, gap);
            self.leave_whole(key, index);
            self.consume(key, 0, start + len);
            self.stats.readaheads_succeeded += 1;
            return self.returned(key, bytes);
        };
        self.stats.readaheads_failed += 1;
        self.leave_whole(key, left);
        self.lose(key, gap | reason);
        Step::Consumed
    }

    /// Notes the chunks that the packet has so far.
    fn wait_for_rest(&mut self, key: Life, chunks: usize) -> Step {
        self.stats.readaheads_failed += 1;
        let sequence = self.sequences.get_mut(&key).expect("it has chunks");
        sequence.begun = Some((sequence.chunks[0].id, sequence.chunks[chunks - 1].id));
        Step::Waits { for_rest: true }
    }

    fn leave_whole(&mut self, key: Life, chunks: usize) {
        for _ in 0..chunks {
            if !self.sequences[&key].chunks[0].is_read() {
                self.consume(key, 0, usize::MAX);
            }
            self.leave(key);
        }
    }

    fn returned(&mut self, key: Life, bytes: Vec<u8>) -> Step {
        if bytes.is_empty() {
            return Step::Consumed;
        }
        let loss = core::mem::take(&mut self.sequences.get_mut(&key).expect("it has chunks").loss);
        Step::Packet(Expected { key: (key.0, key.1), loss, bytes })
    }

    pub(super) fn lose(&mut self, key: Life, reasons: u32) {
        self.sequences.get_mut(&key).expect("it has chunks").loss |= reasons;
        if reasons != 0 {
            self.hand_down(key);
        }
    }

    fn consume(&mut self, key: Life, index: usize, to: usize) {
        let chunk = &mut self.sequences.get_mut(&key).expect("it has chunks").chunks[index];
        chunk.read = to.min(chunk.bytes.len());
        if chunk.is_read() {
            self.stats.chunks_read += 1;
            self.stats.bytes_read += chunk.size() as u64;
        }
    }
}
