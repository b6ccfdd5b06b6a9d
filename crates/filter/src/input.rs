//! [`Input`]: a message that lies in pieces.

use esatto_protozero::wire;

/// Reader of bytes in several slices, in order.
#[derive(Debug)]
pub(crate) struct Input<'a> {
    /// Rest of the current slice. Empty only at the end of the input.
    rest: &'a [u8],
    later: &'a [&'a [u8]],
    position: usize,
}

impl<'a> Input<'a> {
    pub(crate) fn new(slices: &'a [&'a [u8]]) -> Self {
        let mut input = Self { rest: &[], later: slices, position: 0 };
        input.advance(0);
        input
    }

    /// Number of bytes consumed so far.
    #[inline]
    pub(crate) const fn position(&self) -> usize {
        self.position
    }

    /// Reads a varint that ends before the position `end`. After `None` the input must not be used
    /// any more.
    #[inline]
    pub(crate) fn varint(&mut self, end: usize) -> Option<u64> {
        let bytes = self.contiguous(end);
        if let [byte @ 0..=0x7f, ..] = *bytes {
            self.advance(1);
            return Some(byte.into());
        }
        if let Some((value, size)) = wire::decode_varint(bytes) {
            self.advance(size);
            return Some(value);
        }
        self.varint_in_pieces(end)
    }

    #[cold]
    #[inline(never)]
    fn varint_in_pieces(&mut self, end: usize) -> Option<u64> {
        let mut bytes = [0; wire::MAX_VARINT_SIZE];
        for size in 1..=wire::MAX_VARINT_SIZE {
            let byte = self.byte(end)?;
            bytes[size - 1] = byte;
            if byte < 0x80 {
                return wire::decode_varint(&bytes[..size]).map(|(value, _)| value);
            }
        }
        None
    }

    /// Reads `N` bytes before the position `end`. Returns `None` if there are fewer; the input must
    /// not be used any more then.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, end: usize) -> Option<[u8; N]> {
        if let Some(bytes) = self.contiguous(end).first_chunk() {
            let bytes = *bytes;
            self.advance(N);
            return Some(bytes);
        }
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.byte(end)?;
        }
        Some(bytes)
    }

    /// Consumes `size` bytes in pieces. The input must have them.
    #[inline]
    pub(crate) fn consume(&mut self, mut size: usize, mut piece: impl FnMut(&[u8])) {
        while size > 0 && !self.rest.is_empty() {
            let bytes = &self.rest[..size.min(self.rest.len())];
            piece(bytes);
            size -= bytes.len();
            self.advance(bytes.len());
        }
    }

    #[inline]
    fn byte(&mut self, end: usize) -> Option<u8> {
        let byte = *self.contiguous(end).first()?;
        self.advance(1);
        Some(byte)
    }

    /// Returns the bytes in one piece before the position `end`.
    #[inline]
    fn contiguous(&self, end: usize) -> &'a [u8] {
        &self.rest[..self.rest.len().min(end - self.position)]
    }

    /// `size` must not be larger than the rest of the slice.
    #[inline]
    fn advance(&mut self, size: usize) {
        self.position += size;
        self.rest = &self.rest[size..];
        while let ([], [next, later @ ..]) = (self.rest, self.later) {
            (self.rest, self.later) = (next, later);
        }
    }
}
