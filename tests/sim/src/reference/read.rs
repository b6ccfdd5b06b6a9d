//! Packets come out of it (`docs/spec/trace-buffer.md` §9, §11, §12).

use super::{Expected, FIRST_CONTINUES, LAST_CONTINUES, Life, NEEDS_PATCHING, Record, Reference, fragment, loss};

/// What one step at the oldest chunk of a sequence did.
enum Step {
    Packet(Expected),
    Consumed,
    Waits,
}

impl Reference {
    /// §9.
    pub fn begin_read(&mut self) {
        self.pass += 1;
        self.cursor = Some((self.write, false));
    }

    /// The packet that comes next in this pass (§11).
    pub fn next_packet(&mut self) -> Option<Expected> {
        loop {
            let (at, record, key) = self.next_chunk()?;
            if self.sequences[&key].waits_in != self.pass {
                match self.step(key) {
                    Step::Packet(packet) => return Some(packet),
                    Step::Consumed => continue,
                    Step::Waits => self.sequences.get_mut(&key).expect("it has chunks").waits_in = self.pass,
                }
            }
            if let Some(cursor) = &mut self.cursor {
                cursor.0 = at + record.size;
            }
        }
    }

    fn next_chunk(&mut self) -> Option<(usize, Record, Life)> {
        let (mut at, mut wrapped) = self.cursor?;
        loop {
            let end = if wrapped { self.write } else { self.used };
            let found = if at < end {
                self.records.range(at..end).find_map(|(&at, record)| Some((at, *record, record.chunk?.0)))
            } else {
                None
            };
            if let Some(found) = found {
                self.cursor = Some((found.0, wrapped));
                return Some(found);
            }
            if wrapped {
                self.cursor = None;
                return None;
            }
            (at, wrapped) = (0, true);
        }
    }

    fn step(&mut self, key: Life) -> Step {
        let sequence = &self.sequences[&key];
        let Some(chunk) = sequence.chunks.front() else { return Step::Waits };
        let gap = sequence.lost_before(chunk);
        if chunk.is_read() {
            if chunk.incomplete {
                return Step::Waits;
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
            return Step::Waits;
        }
        let bytes = chunk.bytes[start..end].to_vec();
        if is_last && chunk.has(LAST_CONTINUES) {
            return self.join(key, gap, bytes);
        }
        self.lose(key, gap);
        self.consume(key, 0, end);
        self.returned(key, bytes)
    }

    /// A packet over several chunks.
    fn join(&mut self, key: Life, gap: u32, mut bytes: Vec<u8>) -> Step {
        let mut id = self.sequences[&key].chunks[0].id;
        let mut index = 0;
        let (reason, left) = loop {
            index += 1;
            let Some(next) = self.sequences[&key].chunks.get(index) else {
                self.stats.readaheads_failed += 1;
                return Step::Waits;
            };
            id = id.wrapping_add(1);
            if next.id != id {
                break (loss::PRESENT | loss::REASSEMBLY_GAP, index);
            }
            if next.is_empty() && !next.incomplete {
                continue;
            }
            if next.is_empty() {
                self.stats.readaheads_failed += 1;
                return Step::Waits;
            }
            if !next.has(FIRST_CONTINUES) || next.read != 0 {
                break (loss::PRESENT | loss::BROKEN_CHAIN, index);
            }
            if next.bytes.is_empty() {
                break (0, index + 1);
            }
            if next.has(NEEDS_PATCHING) {
                self.stats.readaheads_failed += 1;
                return Step::Waits;
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
