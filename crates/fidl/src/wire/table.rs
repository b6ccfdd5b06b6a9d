//! Tables: a vector of envelopes, one for each ordinal from 1 to the last that is there.

use super::decoder::count;
use super::{Decoder, Encoder, Place, UNBOUNDED, Wire};
use crate::{DecodeError, EncodeError, Reason};

/// Bytes of an envelope.
const ENVELOPE: usize = 8;

/// Table that is being written.
#[derive(Clone, Copy, Debug)]
pub struct TableWriter {
    start: usize,
}

/// Table that is being read. Members come in the order of their ordinals.
#[derive(Clone, Copy, Debug)]
pub struct TableReader<'b> {
    /// Envelopes that are not read.
    envelopes: Place<'b>,
    /// Ordinal of the last envelope that was read.
    read: usize,
    is_last_empty: bool,
}

impl<'v> Encoder<'_, 'v> {
    /// Writes a table at `at`. `last` is the highest ordinal that is there, or 0, and `members`
    /// writes them with [`table_member`](Self::table_member) in the order of their ordinals.
    ///
    /// # Errors
    ///
    /// A value has no encoding.
    #[inline]
    pub fn table(
        &mut self,
        at: usize,
        last: usize,
        members: impl FnOnce(&mut Self, TableWriter) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        super::put_count(last, self.slice(at, 16));
        self.deeper(at, |encoder| {
            let start = encoder.claim(last * ENVELOPE)?;
            members(encoder, TableWriter { start })
        })
    }

    /// Writes a member of a table, if it is there.
    ///
    /// # Errors
    ///
    /// The value has no encoding.
    #[inline]
    pub fn table_member<T: Wire>(
        &mut self,
        table: TableWriter,
        ordinal: usize,
        value: Option<&'v T::Value>,
        name: &'static str,
    ) -> Result<(), EncodeError> {
        match value {
            Some(value) => self.envelope::<T>(value, table.start + (ordinal - 1) * ENVELOPE, name),
            None => Ok(()),
        }
    }
}

impl<'b> TableReader<'b> {
    /// Takes the next envelope, if there is one.
    #[inline]
    fn next(&mut self) -> Option<Place<'b>> {
        let (envelope, rest) = self.envelopes.bytes().split_first_chunk::<ENVELOPE>()?;
        let at = self.envelopes.offset();
        self.envelopes = Place::new(rest, at + ENVELOPE);
        self.read += 1;
        Some(Place::new(envelope, at))
    }
}

impl<'b> Decoder<'b> {
    /// Reads a table. `members` reads those that it knows with
    /// [`table_member`](Self::table_member) in the order of their ordinals. The others are skipped.
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the table.
    #[inline]
    pub fn table<T>(
        &mut self,
        place: Place<'b>,
        members: impl FnOnce(&mut Self, &mut TableReader<'b>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let at = place.offset();
        let count = count(place, UNBOUNDED)?.ok_or_else(|| DecodeError::new(Reason::Absent, at))?;
        self.deeper(at, |decoder| {
            let size = count.checked_mul(ENVELOPE).ok_or_else(|| DecodeError::new(Reason::TooFewBytes, at))?;
            let envelopes = decoder.claim(size, at)?;
            let mut table = TableReader { envelopes, read: 0, is_last_empty: false };
            let value = members(decoder, &mut table)?;
            decoder.skip_members(&mut table, count)?;
            if table.is_last_empty {
                let last = envelopes.offset() + size - ENVELOPE;
                return Err(DecodeError::new(Reason::EmptyEnvelope, last));
            }
            Ok(value)
        })
    }

    /// Reads the member `ordinal`, which is higher than the last one.
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the member.
    #[inline]
    pub fn table_member<T: Wire>(
        &mut self,
        table: &mut TableReader<'b>,
        ordinal: usize,
        name: &'static str,
    ) -> Result<Option<T::Value>, DecodeError> {
        self.skip_members(table, ordinal - 1)?;
        let Some(envelope) = table.next() else { return Ok(None) };
        let value = self.envelope::<T>(envelope, name)?;
        table.is_last_empty = value.is_none();
        Ok(value)
    }

    /// Skips members that this program does not know, up to this ordinal.
    #[inline]
    fn skip_members(&mut self, table: &mut TableReader<'b>, ordinal: usize) -> Result<(), DecodeError> {
        while table.read < ordinal {
            let Some(envelope) = table.next() else { return Ok(()) };
            table.is_last_empty = self.unknown_envelope(envelope)?;
        }
        Ok(())
    }
}
