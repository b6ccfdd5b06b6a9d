//! [`Decoder`]: a message that is being read.

use std::os::fd::OwnedFd;
use std::vec;

use super::{MAX_DEPTH, Place, Wire};
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
    #[inline]
    #[must_use]
    pub fn new(bytes: &'b [u8], handles: Vec<OwnedFd>) -> Self {
        Self { bytes, next: 0, handles: handles.into_iter(), depth: 0 }
    }

    /// Reads the member of a struct whose bytes are `place`.
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the type.
    #[inline]
    pub fn member<T: Wire>(
        &mut self,
        place: Place<'b>,
        offset: usize,
        name: &'static str,
    ) -> Result<T::Value, DecodeError> {
        T::decode(self, place.part(offset, T::SIZE)?).map_err(|error| error.within(name))
    }

    /// Reads the next object. `at` is the place that refers to it.
    #[inline]
    pub(crate) fn object<T: Wire>(&mut self, at: usize) -> Result<T::Value, DecodeError> {
        let place = self.claim(T::SIZE, at)?;
        T::decode(self, place)
    }

    /// Takes the next object, of `size` bytes, and checks its padding. `at` is the place that
    /// refers to it.
    #[inline]
    pub(crate) fn claim(&mut self, size: usize, at: usize) -> Result<Place<'b>, DecodeError> {
        let start = self.next;
        let padded = size.checked_next_multiple_of(8);
        let rest = self.bytes.get(start..).unwrap_or_default();
        let Some((object, padded)) = padded.and_then(|padded| Some((rest.get(..padded)?, padded))) else {
            return Err(DecodeError::new(Reason::TooFewBytes, at));
        };
        let object = Place::new(object, start);
        if padded != size {
            object.zeros(size, padded - size)?;
        }
        self.next = start + padded;
        object.part(0, size)
    }

    /// Fails if the message is not over, or has handles that nobody took.
    #[inline]
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

    #[inline]
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
    #[inline]
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.next, self.handles.len())
    }

    /// Runs `decode` one level deeper.
    #[inline]
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
}

/// Reads the count and the presence marker of a string, a vector or a table. Returns `None` if it
/// is absent.
#[inline]
pub(super) fn count(place: Place<'_>, max: u32) -> Result<Option<usize>, DecodeError> {
    let place = place.sized::<16>()?;
    let count = u64::from_le_bytes(place.array()?);
    let marker = u64::from_le_bytes(place.part(8, 8)?.array()?);
    if marker == u64::MAX && count <= u64::from(max) {
        if let Ok(count) = usize::try_from(count) {
            return Ok(Some(count));
        }
    }
    not_there(place.offset(), count, marker, max)
}

#[cold]
fn not_there(at: usize, count: u64, marker: u64, max: u32) -> Result<Option<usize>, DecodeError> {
    match marker {
        0 if count == 0 => Ok(None),
        0 => Err(DecodeError::new(Reason::LengthOfAbsent(count), at)),
        u64::MAX => Err(DecodeError::new(Reason::TooMany { count, max: u64::from(max) }, at)),
        marker => Err(DecodeError::new(Reason::Presence(marker), at + 8)),
    }
}
