//! Memory as a tracing writer sees it: each message goes where nothing was written for long.

use std::hint::black_box;

/// Bytes for each message.
pub(crate) const SLOT: usize = 512;

/// Bytes in use: more than the caches hold.
const WORKING_SET: usize = 64 << 20;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Slot([u8; SLOT]);

/// A working set of slots that are used in turn.
#[derive(Debug)]
pub(crate) struct Ring {
    slots: Vec<Slot>,
    next: usize,
}

impl Ring {
    pub(crate) fn new() -> Self {
        // Not zeros: the first write to a page costs time, and the first side would pay for it.
        Self { slots: vec![Slot([1; SLOT]); WORKING_SET / SLOT], next: 0 }
    }

    /// Lets `write` write into the next slot, then reads all of the slot back.
    #[inline(always)]
    pub(crate) fn turn(&mut self, write: impl FnOnce(&mut [u8]) -> usize) {
        let slot = &mut self.slots[self.next];
        black_box(write(black_box(&mut slot.0)));
        read_back(slot);
        self.next = (self.next + 1) % (WORKING_SET / SLOT);
    }
}

/// Each word takes in the one before, so the compiler cannot drop any written bytes.
#[inline(always)]
fn read_back(slot: &mut Slot) {
    let mut last = black_box(0x5eed_u64);
    let (first, rest) = slot.0.split_at_mut(8);
    first.copy_from_slice(&last.to_ne_bytes());
    for word in rest.chunks_exact_mut(8) {
        last ^= u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        word.copy_from_slice(&last.to_ne_bytes());
    }
    black_box(last);
    black_box(slot);
}
