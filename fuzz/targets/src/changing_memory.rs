//! Memory that another process changes between any two loads.
#![expect(unsafe_code, reason = "the trait `Region` is unsafe to implement")]

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicUsize, Ordering};

use esatto_shm::abi::{PACKETS_OFFSET, PAGE_HEADER_SIZE, PageSize, WRITER_ID_OFFSET};
use esatto_shm::{PrivateRegion, Region};

/// Two pages that change before each access, as a script says.
pub(crate) struct ChangingMemory {
    memory: PrivateRegion,
    /// The rest of the script, last byte first: place and value of each change. After its end the
    /// memory stays as it is.
    changes: Mutex<Vec<u8>>,
    accesses_to_packets: AtomicUsize,
    accesses_to_ids: AtomicUsize,
}

impl ChangingMemory {
    pub(crate) fn new(memory: PrivateRegion, changes: &[u8]) -> Self {
        let changes = Mutex::new(changes.iter().rev().copied().collect());
        Self { memory, changes, accesses_to_packets: AtomicUsize::new(0), accesses_to_ids: AtomicUsize::new(0) }
    }

    /// Sets the counters of accesses to zero.
    pub(crate) fn begin_counting(&self) {
        self.accesses_to_packets.store(0, Ordering::Relaxed);
        self.accesses_to_ids.store(0, Ordering::Relaxed);
    }

    /// Returns the number of accesses to chunk headers: to `packets`, and to `writer_id`.
    pub(crate) fn header_accesses(&self) -> (usize, usize) {
        (self.accesses_to_packets.load(Ordering::Relaxed), self.accesses_to_ids.load(Ordering::Relaxed))
    }

    fn change(&self) {
        let mut changes = self.changes.lock().expect("no panic while it is held");
        let (Some(place), Some(value)) = (changes.pop(), changes.pop()) else { return };
        let page = usize::from(place & 1) * PageSize::MIN;
        match place >> 1 & 7 {
            // No change.
            0..=2 => {}
            // One state, or the layout.
            3 => drop(self.memory.atomic_u32(page).fetch_xor(1 << (value & 31), Ordering::Relaxed)),
            4 => {
                let words =
                    [0x1000_0003, 0x2000_000f, 0x3000_00ff, 0x4000_3fff, 0x5fff_ffff, 0, 0x1000_0001, 0x6000_0003];
                self.memory.atomic_u32(page).store(words[usize::from(value & 7)], Ordering::Relaxed);
            }
            // Bytes of the first chunk, header included.
            _ => {
                let at = page + PAGE_HEADER_SIZE + usize::from(place >> 4) * 4;
                self.memory.atomic_u32(at).store(u32::from(value) * 0x0101_0101, Ordering::Relaxed);
            }
        }
    }
}

impl fmt::Debug for ChangingMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangingMemory").field("memory", &self.memory).finish_non_exhaustive()
    }
}

// SAFETY: the memory is that of the region inside, which lives as long and never moves.
unsafe impl Region for ChangingMemory {
    fn len(&self) -> usize {
        self.memory.len()
    }

    fn atomic_u32(&self, offset: usize) -> &AtomicU32 {
        self.change();
        self.memory.atomic_u32(offset)
    }

    fn atomic_u16(&self, offset: usize) -> &AtomicU16 {
        self.change();
        // Chunks are multiples of 4 long and begin after the page header, so 2 bytes further is
        // `packets`.
        let field = if offset % 4 == PACKETS_OFFSET % 4 { &self.accesses_to_packets } else { &self.accesses_to_ids };
        const { assert!(PACKETS_OFFSET % 4 != WRITER_ID_OFFSET % 4) };
        field.fetch_add(1, Ordering::Relaxed);
        self.memory.atomic_u16(offset)
    }

    fn read_into(&self, offset: usize, out: &mut [u8]) {
        // In two pieces, so that the two halves of the copy do not fit together.
        let (first, second) = out.split_at_mut(out.len() / 2);
        self.change();
        self.memory.read_into(offset, first);
        self.change();
        self.memory.read_into(offset + first.len(), second);
    }

    unsafe fn write_from(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller's promise.
        unsafe { self.memory.write_from(offset, bytes) };
    }
}
