//! [`ByteSet`]: a set of bytes, and its form in a pattern.

use core::fmt::Write as _;

/// Set of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByteSet([u128; 2]);

impl ByteSet {
    /// Makes the set of the bytes that `is_in` selects.
    pub(super) fn of(is_in: impl Fn(&u8) -> bool) -> Self {
        let mut set = Self::default();
        (0..=u8::MAX).filter(|byte| is_in(byte)).for_each(|byte| set.insert(byte));
        set
    }

    pub(super) fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 7)] |= 1 << (byte & 0x7f);
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }

    pub(super) const fn complement(self) -> Self {
        Self([!self.0[0], !self.0[1]])
    }

    pub(super) fn contains(self, byte: u8) -> bool {
        self.0[usize::from(byte >> 7)] >> (byte & 0x7f) & 1 == 1
    }

    /// Writes the set as a class of ranges, in which nothing needs to be quoted.
    pub(super) fn write(self, out: &mut String) {
        if self == Self::default() {
            out.push_str(r"[^\x00-\xff]");
            return;
        }
        out.push('[');
        let mut byte = 0u16;
        while byte < 256 {
            let start = byte;
            while byte < 256 && self.contains((byte & 0xff) as u8) {
                byte += 1;
            }
            // Writing to a string cannot fail.
            let _ = match byte - start {
                0 => Ok(()),
                1 => write!(out, "\\x{start:02x}"),
                _ => write!(out, "\\x{start:02x}-\\x{:02x}", byte - 1),
            };
            byte += u16::from(byte == start);
        }
        out.push(']');
    }
}
