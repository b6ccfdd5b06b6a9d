//! [`Decoder`]: a message that is being read.

use std::os::fd::OwnedFd;
use std::vec;

use super::{MAX_DEPTH, Wire};
use crate::{DecodeError, Reason};

/// Message that is being read. Offsets count from its first byte.
#[derive(Debug)]
pub struct Decoder<'b> {
    bytes: &'b [u8],
    /// Offset of the next object.
    next: usize,
    /// Handles that are not taken. Dropped ones are closed.
    handles: vec::IntoIter<OwnedFd>,
    depth: u32,
}

impl<'b> Decoder<'b> {
    /// Begins to read a message.
    #[must_use]
    pub fn new(bytes: &'b [u8], handles: Vec<OwnedFd>) -> Self {
        Self { bytes, next: 0, handles: handles.into_iter(), depth: 0 }
    }

    /// Reads the member of a struct.
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the type.
    #[inline]
    pub fn member<T: Wire>(&mut self, at: usize, name: &'static str) -> Result<T::Value, DecodeError> {
        T::decode(self, at).map_err(|error| error.within(name))
    }

    /// Takes the next object, of `size` bytes, and checks its padding. `at` is the place that
    /// refers to it. Returns its offset.
    pub(crate) fn claim(&mut self, size: usize, at: usize) -> Result<usize, DecodeError> {
        let start = self.next;
        let end = size.checked_next_multiple_of(8).and_then(|size| start.checked_add(size));
        let Some(end) = end.filter(|end| *end <= self.bytes.len()) else {
            return Err(DecodeError::new(Reason::TooFewBytes, at));
        };
        self.zeros(start + size, end - start - size)?;
        self.next = end;
        Ok(start)
    }

    /// Fails if the message is not over, or has handles that nobody took.
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        let rest = self.bytes.len() - self.next;
        if rest > 0 {
            return Err(DecodeError::new(Reason::TooManyBytes(rest), self.next));
        }
        match self.handles.len() {
            0 => Ok(()),
            count => Err(DecodeError::new(Reason::TooManyHandles(count), self.next)),
        }
    }

    /// Checks that padding is 0.
    ///
    /// # Errors
    ///
    /// A byte is not 0.
    #[inline]
    pub fn zeros(&self, at: usize, length: usize) -> Result<(), DecodeError> {
        match self.slice(at, length).iter().position(|byte| *byte != 0) {
            None => Ok(()),
            Some(index) => Err(DecodeError::new(Reason::Padding(self.bytes[at + index]), at + index)),
        }
    }

    /// Returns bytes of an object.
    ///
    /// # Panics
    ///
    /// The object has no such bytes.
    #[inline]
    #[must_use]
    pub fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes[at..at + N]);
        bytes
    }

    /// Returns bytes of an object, which outlive the decoder.
    #[inline]
    pub(crate) fn slice(&self, at: usize, length: usize) -> &'b [u8] {
        &self.bytes[at..at + length]
    }

    pub(crate) fn handle(&mut self, at: usize) -> Result<OwnedFd, DecodeError> {
        self.handles.next().ok_or_else(|| DecodeError::new(Reason::TooFewHandles, at))
    }

    /// Closes the next handles.
    pub(crate) fn close_handles(&mut self, count: usize, at: usize) -> Result<(), DecodeError> {
        for _ in 0..count {
            self.handle(at)?;
        }
        Ok(())
    }

    /// Returns the offset of the next object, and the number of handles that are left.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.next, self.handles.len())
    }

    /// Runs `decode` one level deeper.
    pub(crate) fn deeper<T>(
        &mut self,
        at: usize,
        decode: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth == MAX_DEPTH {
            return Err(DecodeError::new(Reason::TooDeep, at));
        }
        self.depth += 1;
        let decoded = decode(self)?;
        self.depth -= 1;
        Ok(decoded)
    }

    /// Reads the count and the presence marker of a string, a vector or a table. Returns `None` if
    /// it is absent.
    pub(crate) fn count(&self, at: usize, max: u32) -> Result<Option<usize>, DecodeError> {
        let count = u64::from_le_bytes(self.get(at));
        match u64::from_le_bytes(self.get(at + 8)) {
            0 if count == 0 => Ok(None),
            0 => Err(DecodeError::new(Reason::LengthOfAbsent(count), at)),
            u64::MAX => match usize::try_from(count) {
                Ok(small) if count <= u64::from(max) => Ok(Some(small)),
                _ => Err(DecodeError::new(Reason::TooMany { count, max: u64::from(max) }, at)),
            },
            marker => Err(DecodeError::new(Reason::Presence(marker), at + 8)),
        }
    }
}
