//! Unions: an ordinal and an envelope.

use super::{Decoder, Encoder, Place, envelope};
use crate::{DecodeError, Reason};

impl Encoder<'_, '_> {
    /// Writes the ordinal of a union. Returns the place of its envelope.
    #[inline]
    pub fn union(&mut self, at: usize, ordinal: u64) -> usize {
        self.put(at, ordinal.to_le_bytes());
        at + 8
    }
}

impl Decoder<'_> {
    /// Reads the ordinal of a union. Its envelope follows. Returns 0 if the union is absent.
    ///
    /// # Errors
    ///
    /// An absent union has an envelope, or a present one has none.
    #[inline]
    pub fn union(&self, place: Place<'_>) -> Result<u64, DecodeError> {
        let ordinal = u64::from_le_bytes(place.array()?);
        let envelope = place.part(8, 8)?;
        match (ordinal, envelope::is_empty(envelope)?) {
            (0, false) => Err(DecodeError::new(Reason::UnknownOrdinal(0), place.offset())),
            (ordinal, true) if ordinal != 0 => Err(DecodeError::new(Reason::Absent, envelope.offset())),
            _ => Ok(ordinal),
        }
    }
}
