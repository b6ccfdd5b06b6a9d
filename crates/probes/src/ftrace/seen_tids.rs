//! [`SeenTids`]: the threads that one read has met.

/// Largest thread id that Linux gives.
const MAX_TID: i32 = 4 * 1024 * 1024;

/// Bits that are always set: the idle thread is nothing new.
const IDLE: u64 = 1;

/// A set of thread ids that is cheap to ask: a bit per id.
#[derive(Debug)]
pub(crate) struct SeenTids {
    bits: Vec<u64>,
    /// Words in which a bit was set.
    used: Vec<u32>,
}

impl SeenTids {
    pub(crate) fn new() -> Self {
        Self { bits: vec![IDLE], used: Vec::new() }
    }

    /// Returns true if the id was not in the set, and adds it. The idle thread 0 and numbers that
    /// are no thread ids count as if they were in the set.
    #[inline]
    pub(crate) fn insert(&mut self, tid: i32) -> bool {
        let (word, bit) = ((tid as u32 / 64) as usize, 1 << (tid as u32 % 64));
        match self.bits.get(word) {
            Some(bits) if bits & bit != 0 => false,
            _ => self.insert_new(tid, word, bit),
        }
    }

    #[cold]
    fn insert_new(&mut self, tid: i32, word: usize, bit: u64) -> bool {
        if !(1..=MAX_TID).contains(&tid) {
            return false;
        }
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= bit;
        self.used.push(word as u32);
        true
    }

    pub(crate) fn clear(&mut self) {
        for word in self.used.drain(..) {
            self.bits[word as usize] = 0;
        }
        self.bits[0] |= IDLE;
    }
}
