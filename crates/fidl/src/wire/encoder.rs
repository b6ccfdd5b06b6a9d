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

/// Bytes of new objects. Copying a number of them that the compiler knows is faster than filling.
static ZEROS: [u8; 256] = [0; 256];

impl<'b, 'v> Encoder<'b, 'v> {
    /// Begins a message after the given bytes and handles.
    #[inline]
    pub fn new(bytes: &'b mut Vec<u8>, handles: &'b mut Vec<BorrowedFd<'v>>) -> Self {
        let start = bytes.len();
        Self { bytes, handles, start, depth: 0 }
    }

    /// Writes an object after the last one.
    ///
    /// # Errors
    ///
    /// The value has no encoding.
    #[inline]
    pub fn object<T: Wire>(&mut self, value: &'v T::Value) -> Result<(), EncodeError> {
        let at = self.claim(T::SIZE)?;
        T::put(value, self.slice(at, T::SIZE));
        if T::HAS_REST { T::encode_rest(value, self, at) } else { Ok(()) }
    }

    /// Writes what the member of a struct has beside its bytes in place, which are at `at`.
    ///
    /// # Errors
    ///
    /// The value has no encoding.
    #[inline]
    pub fn rest<T: Wire>(&mut self, value: &'v T::Value, at: usize, name: &'static str) -> Result<(), EncodeError> {
        if !T::HAS_REST {
            return Ok(());
        }
        T::encode_rest(value, self, at).map_err(|error| error.within(name))
    }

    /// Adds an object of `size` bytes, all 0, at the next multiple of 8. Returns its offset.
    #[inline]
    pub(crate) fn claim(&mut self, size: usize) -> Result<usize, EncodeError> {
        let at = self.bytes.len() - self.start;
        let Some(padded) = size.checked_next_multiple_of(8).filter(|padded| fits(at, *padded)) else {
            return Err(EncodeError::new(Reason::TooLong, at));
        };
        match ZEROS.get(..padded) {
            Some(zeros) => self.bytes.extend_from_slice(zeros),
            None => self.bytes.resize(self.bytes.len() + padded, 0),
        }
        Ok(at)
    }

    /// Adds an object with these bytes, and 0 up to the next multiple of 8.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        let at = self.bytes.len() - self.start;
        let Some(padded) = bytes.len().checked_next_multiple_of(8).filter(|padded| fits(at, *padded)) else {
            return Err(EncodeError::new(Reason::TooLong, at));
        };
        let end = self.bytes.len() + padded;
        self.bytes.extend_from_slice(bytes);
        // A store of 8 bytes is faster than one of as many as are missing.
        self.bytes.extend_from_slice(&[0; 8]);
        self.bytes.truncate(end);
        Ok(())
    }

    /// Overwrites bytes of an object.
    #[inline]
    pub(crate) fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        if let Some(place) = self.slice(at, N).first_chunk_mut() {
            *place = bytes;
        }
    }

    /// Returns bytes of an object.
    #[inline]
    pub(crate) fn slice(&mut self, at: usize, length: usize) -> &mut [u8] {
        let start = self.start + at;
        self.bytes.get_mut(start..).and_then(|bytes| bytes.get_mut(..length)).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn handle(&mut self, fd: BorrowedFd<'v>, at: usize) -> Result<(), EncodeError> {
        if self.handles.len() >= usize::from(u16::MAX) {
            return Err(EncodeError::new(Reason::HandleLimit, at));
        }
        self.handles.push(fd);
        Ok(())
    }

    /// Returns the bytes and handles so far.
    #[inline]
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.bytes.len(), self.handles.len())
    }

    /// Runs `encode` one level deeper.
    #[inline]
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

/// Returns true if a message of `at` bytes may grow by `more`.
#[inline]
fn fits(at: usize, more: usize) -> bool {
    at.checked_add(more).is_some_and(|end| u32::try_from(end).is_ok())
}
