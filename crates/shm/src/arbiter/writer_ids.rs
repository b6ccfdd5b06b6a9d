//! Writer ids (`docs/spec/shared-memory.md` §8).

use crate::abi::MAX_WRITER_ID;

const WORDS: usize = (MAX_WRITER_ID as usize + 1) / 64;

/// Writer ids of one producer: 1 to 32767, one bit each.
///
/// The next id is the first free one after the last one assigned, and wraps. So a freed id is
/// reused as late as possible. After an early reuse, the service's buffer would take the first
/// chunks of the new writer for repetitions of the old writer's chunks.
#[derive(Debug)]
pub(crate) struct WriterIds {
    used: Box<[u64; WORDS]>,
    last: u16,
    live: u16,
}

impl WriterIds {
    pub(crate) fn new() -> Self {
        Self { used: Box::new([0; WORDS]), last: 0, live: 0 }
    }

    /// Assigns the next id. Returns `None` if all are in use.
    pub(crate) fn allocate(&mut self) -> Option<u16> {
        if self.live == MAX_WRITER_ID {
            return None;
        }
        let mut id = self.last;
        loop {
            id = if id == MAX_WRITER_ID { 1 } else { id + 1 };
            let (word, bit) = place(id);
            if self.used[word] & bit == 0 {
                self.used[word] |= bit;
                self.last = id;
                self.live += 1;
                return Some(id);
            }
        }
    }

    /// Frees an id.
    pub(crate) fn release(&mut self, id: u16) {
        let (word, bit) = place(id);
        if self.used[word] & bit != 0 {
            self.used[word] &= !bit;
            self.live -= 1;
        }
    }
}

fn place(id: u16) -> (usize, u64) {
    (usize::from(id) / 64, 1 << (id % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_ids_are_reused_as_late_as_possible() {
        let mut ids = WriterIds::new();
        assert_eq!([1, 2, 3].map(|_| ids.allocate().unwrap()), [1, 2, 3]);
        ids.release(2);
        assert_eq!(ids.allocate(), Some(4));
        for want in 5..=MAX_WRITER_ID {
            assert_eq!(ids.allocate(), Some(want));
        }
        assert_eq!(ids.allocate(), Some(2), "wraps to the only free one");
        assert_eq!(ids.allocate(), None);
        ids.release(77);
        ids.release(77);
        assert_eq!(ids.allocate(), Some(77));
        assert_eq!(ids.allocate(), None);
    }
}
