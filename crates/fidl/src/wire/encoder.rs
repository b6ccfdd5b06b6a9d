//! [`Encoder`]: a message that is being written.

use std::os::fd::BorrowedFd;

use super::{MAX_DEPTH, Wire};
use crate::{EncodeError, Reason};

/// Message that is being written. Offsets count from its first byte.
#[derive(Debug)]
pub struct Encoder<'b, 'v> {
    bytes: &'b mut Vec<u8>,
    handles: &'b mut Vec<BorrowedFd<'v>>,
    /// Byte of `bytes` at which the message begins.
    start: usize,
    depth: u32,
}

impl<'b, 'v> Encoder<'b, 'v> {
    /// Begins a message after the given bytes and handles.
    pub fn new(bytes: &'b mut Vec<u8>, handles: &'b mut Vec<BorrowedFd<'v>>) -> Self {
        let start = bytes.len();
        Self { bytes, handles, start, depth: 0 }
    }

    /// Writes an object after the last one.
    ///
    /// # Errors
    ///
    /// The value has no encoding.
    pub fn object<T: Wire>(&mut self, value: &'v T::Value) -> Result<(), EncodeError> {
        let at = self.claim(T::SIZE)?;
        T::encode(value, self, at)
    }

    /// Writes the member of a struct.
    ///
    /// # Errors
    ///
    /// The value has no encoding.
    #[inline]
    pub fn member<T: Wire>(&mut self, value: &'v T::Value, at: usize, name: &'static str) -> Result<(), EncodeError> {
        T::encode(value, self, at).map_err(|error| error.within(name))
    }

    /// Adds an object of `size` bytes, all 0, at the next multiple of 8. Returns its offset.
    pub(crate) fn claim(&mut self, size: usize) -> Result<usize, EncodeError> {
        let at = self.bytes.len() - self.start;
        let end = size.checked_next_multiple_of(8).and_then(|size| self.bytes.len().checked_add(size));
        let end = end.filter(|end| u32::try_from(*end - self.start).is_ok());
        self.bytes.resize(end.ok_or_else(|| EncodeError::new(Reason::TooLong, at))?, 0);
        Ok(at)
    }

    /// Adds an object with these bytes, and 0 up to the next multiple of 8.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        let at = self.bytes.len() - self.start;
        if u32::try_from(at.saturating_add(bytes.len()).saturating_add(7)).is_err() {
            return Err(EncodeError::new(Reason::TooLong, at));
        }
        self.bytes.extend_from_slice(bytes);
        let padding = bytes.len().next_multiple_of(8) - bytes.len();
        self.bytes.extend_from_slice(&[0; 8][..padding]);
        Ok(())
    }

    /// Overwrites bytes of an object.
    #[inline]
    pub fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        let start = self.start + at;
        self.bytes[start..start + N].copy_from_slice(&bytes);
    }

    /// Returns bytes of an object.
    pub(crate) fn slice(&mut self, at: usize, length: usize) -> &mut [u8] {
        let start = self.start + at;
        &mut self.bytes[start..start + length]
    }

    pub(crate) fn handle(&mut self, fd: BorrowedFd<'v>, at: usize) -> Result<(), EncodeError> {
        if self.handles.len() >= usize::from(u16::MAX) {
            return Err(EncodeError::new(Reason::HandleLimit, at));
        }
        self.handles.push(fd);
        Ok(())
    }

    /// Returns the bytes and handles so far.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.bytes.len(), self.handles.len())
    }

    /// Runs `encode` one level deeper.
    pub(crate) fn deeper(
        &mut self,
        at: usize,
        encode: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        if self.depth == MAX_DEPTH {
            return Err(EncodeError::new(Reason::TooDeep, at));
        }
        self.depth += 1;
        encode(self)?;
        self.depth -= 1;
        Ok(())
    }
}
