//! Room for new chunks, and the overwriting of old ones (`docs/spec/trace-buffer.md` §4, §5).

use super::{FIRST_CONTINUES, LAST_CONTINUES, Life, Record, Reference, TAKEN_ALONG, fragment, loss};

impl Reference {
    /// Makes room for a chunk (§4, §5).
    pub(super) fn make_room(&mut self, size: usize) -> Option<usize> {
        if self.write + size > self.capacity {
            if self.discards {
                self.closed = true;
                return None;
            }
            let used = self.used;
            self.clear(self.write, used);
            if used > self.write {
                self.pad(self.write, used - self.write);
            }
            self.write = 0;
            self.stats.write_wrap_count += 1;
        }
        let (start, end) = (self.write, self.write + size);
        let cleared_to = self.clear(start, end);
        if end >= self.used {
            self.used = end;
        } else if cleared_to > end {
            self.pad(end, cleared_to - end);
        }
        Some(start)
    }

    pub(super) fn clear(&mut self, from: usize, to: usize) -> usize {
        let mut at = from;
        while at < to.min(self.used) {
            let record = self.records[&at];
            match record.chunk {
                Some((key, id)) => {
                    let chunks = &self.sequences[&key].chunks;
                    let index = chunks.iter().position(|chunk| chunk.id == id).expect("it is stored");
                    if index > TAKEN_ALONG {
                        self.erase_alone(key, index);
                    } else {
                        let mut rest = TAKEN_ALONG;
                        while self.records[&at].chunk.is_some() {
                            self.erase_first(key, &mut rest);
                        }
                    }
                }
                None => self.stats.padding_bytes_cleared += record.size as u64,
            }
            self.records.remove(&at);
            at += record.size;
        }
        at
    }

    pub(super) fn pad(&mut self, offset: usize, size: usize) {
        self.records.insert(offset, Record { size, chunk: None });
        self.stats.padding_bytes_written += size as u64;
    }

    /// Overwrites a chunk whose sequence has too many chunks before it (§4).
    pub(super) fn erase_alone(&mut self, key: Life, index: usize) {
        let is_unread = self.sequences[&key].chunks[index].has_unread();
        if is_unread {
            self.count_overwritten(key, index);
        }
        let sequence = self.sequences.get_mut(&key).expect("it has chunks");
        let is_newest = index + 1 == sequence.chunks.len();
        let chunk = sequence.chunks.remove(index).expect("it is there");
        if is_newest {
            if is_unread {
                sequence.loss |= loss::PRESENT | loss::OVERWRITE;
            }
            if chunk.lost_behind != 0 {
                sequence.loss |= loss::PRESENT | chunk.lost_behind;
            }
            if sequence.loss != 0 {
                self.told_early.insert((key.0, key.1));
            }
        }
        sequence.waits = None;
        sequence.begun =
            sequence.begun.filter(|&(first, last)| chunk.id.wrapping_sub(first) > last.wrapping_sub(first));
        self.left += 1;
    }

    /// The erasing read (§4).
    pub(super) fn erase_first(&mut self, key: Life, rest: &mut usize) {
        let first = &self.sequences[&key].chunks[0];
        let mut continues = !first.is_read() && first.has(LAST_CONTINUES);
        let mut id = first.id;
        if first.has_unread() {
            self.overwritten(key, 0);
        } else {
            let gap = self.sequences[&key].lost_before(&self.sequences[&key].chunks[0]);
            if gap != 0 && self.sequences[&key].consumed.is_none() {
                self.told_early.insert((key.0, key.1));
            }
            self.lose(key, gap);
        }
        self.leave(key);
        while continues && *rest > 0 {
            *rest -= 1;
            let sequence = self.sequences.get_mut(&key).expect("it has chunks");
            let Some(next) = sequence.chunks.front_mut() else { return };
            id = id.wrapping_add(1);
            if next.id != id {
                return;
            }
            if next.is_empty() {
                if next.incomplete {
                    return;
                }
                self.leave(key);
                continue;
            }
            if !next.has(FIRST_CONTINUES) || next.read != 0 {
                return;
            }
            let end = fragment(&next.bytes, 0).map_or(usize::MAX, |(start, len)| start + len);
            if end < next.bytes.len() {
                next.read = end;
                return;
            }
            next.read = next.bytes.len();
            continues = next.has(LAST_CONTINUES);
            let incomplete = next.incomplete;
            if !next.bytes.is_empty() {
                self.overwritten(key, 0);
            }
            if incomplete {
                return;
            }
            self.leave(key);
        }
    }

    pub(super) fn overwritten(&mut self, key: Life, at: usize) {
        self.count_overwritten(key, at);
        let sequence = self.sequences.get_mut(&key).expect("it has chunks");
        sequence.loss |= loss::PRESENT | loss::OVERWRITE;
    }

    pub(super) fn count_overwritten(&mut self, key: Life, at: usize) {
        self.stats.chunks_overwritten += 1;
        self.stats.bytes_overwritten += self.sequences[&key].chunks[at].size() as u64;
    }

    /// Makes the first chunk of a sequence free space.
    pub(super) fn leave(&mut self, key: Life) {
        let sequence = self.sequences.get_mut(&key).expect("it has chunks");
        let chunk = sequence.chunks.pop_front().expect("it has chunks");
        (sequence.waits, sequence.begun) = (None, None);
        self.left += 1;
        self.empty += usize::from(sequence.chunks.is_empty());
        self.records.insert(chunk.offset, Record { size: chunk.size(), chunk: None });
        sequence.consumed = Some((chunk.id, chunk.bytes.len(), chunk.incomplete));
        if chunk.lost_behind != 0 {
            sequence.loss |= loss::PRESENT | chunk.lost_behind;
        }
        self.hand_down(key);
    }
}
