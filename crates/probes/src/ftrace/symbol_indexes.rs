//! [`SymbolIndexes`]: the indexes that stand for addresses of the kernel in packets.

/// Addresses of one read. At the next packet after so many, the indexes begin again.
pub(crate) const MAX_ADDRESSES: usize = 1 << 16;

/// Slots of the smallest table.
const FIRST_SLOTS: usize = 256;

/// Indexes of addresses, from 1 on in the order of their appearance.
#[derive(Debug, Default)]
pub(crate) struct SymbolIndexes {
    /// Addresses by index − 1.
    addresses: Vec<u64>,
    /// Hash table of indexes; 0 is a free slot. Its length is a power of two, at least twice the
    /// number of addresses.
    slots: Vec<u32>,
}

impl SymbolIndexes {
    /// Returns the index of an address.
    #[inline]
    pub(crate) fn index_of(&mut self, address: u64) -> u32 {
        if self.addresses.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash(address) & mask;
        loop {
            match self.slots[slot] {
                0 => break,
                index if self.addresses[index as usize - 1] == address => return index,
                _ => slot = (slot + 1) & mask,
            }
        }
        self.addresses.push(address);
        self.slots[slot] = self.addresses.len() as u32;
        self.slots[slot]
    }

    /// Returns the addresses in the order of their indexes.
    pub(crate) fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    pub(crate) fn clear(&mut self) {
        if !self.addresses.is_empty() {
            self.addresses.clear();
            self.slots.fill(0);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(FIRST_SLOTS);
        self.slots.clear();
        self.slots.resize(len, 0);
        for (index, address) in (1..).zip(&self.addresses) {
            let mut slot = hash(*address) & (len - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (len - 1);
            }
            self.slots[slot] = index;
        }
    }
}

/// Mixes the bits of an address: those of pointers differ mostly in the middle.
fn hash(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}
