//! Packets inside the copy of a chunk (`docs/spec/shared-memory.md` §6).

use crate::abi::{DROP_MARKER, FRAGMENT_SIZE_LEN};

/// Fragment in a chunk's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment<'a> {
    /// Bytes of a packet, or of a part of one. An empty fragment is no packet.
    Data(&'a [u8]),
    /// The writer gave up on this packet. Readers ignore everything after it in this chunk.
    Dropped,
    /// The size field is broken or points beyond the end, which is an ABI violation. Readers ignore
    /// everything after it.
    Invalid,
}

/// Iterates over the fragments of a copied payload.
///
/// Accepts any bytes and any count. Ends after the announced number of fragments, or after the
/// first [`Fragment::Dropped`] or [`Fragment::Invalid`].
///
/// ```
/// use esatto_shm::{Fragment, Fragments};
/// let payload = [2, b'a', b'b', 0x81, 0x80, 0x80, 0x00, b'c', 0, 0xee];
/// let mut fragments = Fragments::new(&payload, 3);
/// assert_eq!(fragments.next(), Some(Fragment::Data(b"ab")));
/// assert_eq!(fragments.next(), Some(Fragment::Data(b"c")));
/// assert_eq!(fragments.next(), Some(Fragment::Data(b"")));
/// assert_eq!(fragments.next(), None);
/// ```
#[derive(Clone, Debug)]
pub struct Fragments<'a> {
    payload: &'a [u8],
    at: usize,
    left: u16,
}

impl<'a> Fragments<'a> {
    /// Iterates over the first `count` fragments of `payload`.
    pub fn new(payload: &'a [u8], count: u16) -> Self {
        Self { payload, at: 0, left: count }
    }

    /// Returns the offset in the payload of the next size field, or where reading stopped.
    pub fn offset(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Fragments<'a> {
    type Item = Fragment<'a>;

    fn next(&mut self) -> Option<Fragment<'a>> {
        self.left = self.left.checked_sub(1)?;
        let rest = &self.payload[self.at..];
        let fragment = match parse_size(rest) {
            SizeField::Whole { size: DROP_MARKER, .. } => Fragment::Dropped,
            SizeField::Whole { size, used } => match rest[used..].get(..size as usize) {
                Some(data) => {
                    self.at += used + data.len();
                    return Some(Fragment::Data(data));
                }
                None => Fragment::Invalid,
            },
            SizeField::Torn | SizeField::TooLong => Fragment::Invalid,
        };
        self.left = 0;
        Some(fragment)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(usize::from(self.left)))
    }
}

/// Varint before a fragment.
pub(crate) enum SizeField {
    /// The value, and its length in bytes.
    Whole { size: u32, used: usize },
    /// The bytes end before the varint does.
    Torn,
    /// The varint does not end after four bytes.
    TooLong,
}

pub(crate) fn parse_size(bytes: &[u8]) -> SizeField {
    let mut size = 0;
    for (i, byte) in bytes.iter().take(FRAGMENT_SIZE_LEN).enumerate() {
        size |= u32::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return SizeField::Whole { size, used: i + 1 };
        }
    }
    if bytes.len() < FRAGMENT_SIZE_LEN { SizeField::Torn } else { SizeField::TooLong }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(payload: &[u8], count: u16) -> Vec<Fragment<'_>> {
        Fragments::new(payload, count).collect()
    }

    #[test]
    fn broken_sizes_end_the_chunk() {
        assert_eq!(all(&[], 1), [Fragment::Invalid]);
        assert_eq!(all(&[0x80], 2), [Fragment::Invalid]);
        assert_eq!(all(&[3, 1, 2], 2), [Fragment::Invalid]);
        assert_eq!(all(&[1, 9, 0x80, 0x80, 0x80, 0x80, 0], 3), [Fragment::Data(&[9]), Fragment::Invalid]);
        assert_eq!(all(&[0, 0xff, 0xff, 0xff, 0x7f, 1, 1], 3), [Fragment::Data(&[]), Fragment::Dropped]);
        assert_eq!(all(&[1, 2, 3], 0), []);
    }
}
