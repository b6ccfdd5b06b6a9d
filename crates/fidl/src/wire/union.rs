//! Unions: an ordinal and an envelope.

use super::{Decoder, Encoder};
use crate::{DecodeError, Reason};

impl Encoder<'_, '_> {
    /// Writes the ordinal of a union. Returns the place of its envelope.
    pub fn union(&mut self, at: usize, ordinal: u64) -> usize {
        self.put(at, ordinal.to_le_bytes());
        at + 8
    }
}

impl Decoder<'_> {
    /// Reads the ordinal of a union at `at`. Its envelope is at `at + 8`. Returns 0 if the union is
    /// absent.
    ///
    /// # Errors
    ///
    /// An absent union has an envelope, or a present one has none.
    pub fn union(&self, at: usize) -> Result<u64, DecodeError> {
        let ordinal = u64::from_le_bytes(self.get(at));
        match (ordinal, self.is_empty_envelope(at + 8)) {
            (0, false) => Err(DecodeError::new(Reason::UnknownOrdinal(0), at)),
            (ordinal, true) if ordinal != 0 => Err(DecodeError::new(Reason::Absent, at + 8)),
            _ => Ok(ordinal),
        }
    }
}
