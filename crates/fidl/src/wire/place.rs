//! [`Place`]: the bytes of an object.

use crate::{DecodeError, Reason};

/// Bytes of an object that is being read.
#[derive(Clone, Copy, Debug)]
pub struct Place<'b> {
    bytes: &'b [u8],
    /// Offset in the message.
    at: usize,
}

impl<'b> Place<'b> {
    #[inline]
    pub(crate) fn new(bytes: &'b [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Returns the offset in the message.
    #[inline]
    #[must_use]
    pub fn offset(self) -> usize {
        self.at
    }

    /// Returns the bytes.
    #[inline]
    #[must_use]
    pub fn bytes(self) -> &'b [u8] {
        self.bytes
    }

    /// Returns the first `N` bytes as a place. The compiler knows its size then, so that reading
    /// the members of a struct costs one check.
    ///
    /// # Errors
    ///
    /// There are fewer bytes.
    #[inline]
    pub fn sized<const N: usize>(self) -> Result<Self, DecodeError> {
        self.bytes.first_chunk::<N>().map(|bytes| Self { bytes, at: self.at }).ok_or_else(|| self.too_short())
    }

    /// Returns the first `N` bytes.
    ///
    /// # Errors
    ///
    /// There are fewer bytes.
    #[inline]
    pub fn array<const N: usize>(self) -> Result<[u8; N], DecodeError> {
        self.bytes.first_chunk().copied().ok_or_else(|| self.too_short())
    }

    /// Returns `size` bytes from `offset`.
    ///
    /// # Errors
    ///
    /// There are fewer bytes.
    #[inline]
    pub fn part(self, offset: usize, size: usize) -> Result<Self, DecodeError> {
        let bytes = self.bytes.get(offset..).and_then(|bytes| bytes.get(..size));
        bytes.map(|bytes| Self { bytes, at: self.at + offset }).ok_or_else(|| self.too_short())
    }

    /// Checks that padding is 0.
    ///
    /// # Errors
    ///
    /// A byte is not 0.
    #[inline]
    pub fn zeros(self, offset: usize, length: usize) -> Result<(), DecodeError> {
        let padding = self.part(offset, length)?;
        let are_zero = match [0; 8].get(..length) {
            Some(zeros) => padding.bytes == zeros,
            None => padding.bytes.iter().all(|byte| *byte == 0),
        };
        if are_zero { Ok(()) } else { Err(padding.not_zero()) }
    }

    #[cold]
    fn not_zero(self) -> DecodeError {
        let index = self.bytes.iter().position(|byte| *byte != 0).unwrap_or(0);
        DecodeError::new(Reason::Padding(self.bytes.get(index).copied().unwrap_or(0)), self.at + index)
    }

    #[cold]
    fn too_short(self) -> DecodeError {
        DecodeError::new(Reason::TooFewBytes, self.at)
    }
}
