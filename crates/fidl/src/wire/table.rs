//! Tables: a vector of envelopes, one for each ordinal from 1 to the last that is there.

use super::{Decoder, Encoder, UNBOUNDED, Wire};
use crate::{DecodeError, EncodeError, Reason};

/// Table that is being written.
#[derive(Clone, Copy, Debug)]
pub struct TableWriter {
    start: usize,
}

/// Table that is being read. Members come in the order of their ordinals.
#[derive(Clone, Copy, Debug)]
pub struct TableReader {
    start: usize,
    count: usize,
    /// Envelopes that are read.
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
    pub fn table(
        &mut self,
        at: usize,
        last: usize,
        members: impl FnOnce(&mut Self, TableWriter) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.put(at, (last as u64).to_le_bytes());
        self.put(at + 8, u64::MAX.to_le_bytes());
        self.deeper(at, |encoder| {
            let start = encoder.claim(last * 8)?;
            members(encoder, TableWriter { start })
        })
    }

    /// Writes a member of a table, if it is there.
    ///
    /// # Errors
    ///
    /// The value has no encoding.
    pub fn table_member<T: Wire>(
        &mut self,
        table: TableWriter,
        ordinal: usize,
        value: Option<&'v T::Value>,
        name: &'static str,
    ) -> Result<(), EncodeError> {
        match value {
            Some(value) => self.envelope::<T>(value, table.start + (ordinal - 1) * 8, name),
            None => Ok(()),
        }
    }
}

impl Decoder<'_> {
    /// Reads a table at `at`. `members` reads those that it knows with
    /// [`table_member`](Self::table_member) in the order of their ordinals. The others are skipped.
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the table.
    pub fn table<T>(
        &mut self,
        at: usize,
        members: impl FnOnce(&mut Self, &mut TableReader) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let count = self.count(at, UNBOUNDED)?.ok_or_else(|| DecodeError::new(Reason::Absent, at))?;
        self.deeper(at, |decoder| {
            let size = count.checked_mul(8).ok_or_else(|| DecodeError::new(Reason::TooFewBytes, at))?;
            let start = decoder.claim(size, at)?;
            let mut table = TableReader { start, count, read: 0, is_last_empty: false };
            let value = members(decoder, &mut table)?;
            decoder.skip_members(&mut table, count)?;
            if table.is_last_empty {
                return Err(DecodeError::new(Reason::EmptyEnvelope, start + size - 8));
            }
            Ok(value)
        })
    }

    /// Reads the member `ordinal`, which is higher than the last one.
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the member.
    pub fn table_member<T: Wire>(
        &mut self,
        table: &mut TableReader,
        ordinal: usize,
        name: &'static str,
    ) -> Result<Option<T::Value>, DecodeError> {
        if ordinal > table.count {
            return Ok(None);
        }
        self.skip_members(table, ordinal - 1)?;
        let value = self.envelope::<T>(table.start + (ordinal - 1) * 8, name)?;
        table.read = ordinal;
        table.is_last_empty = value.is_none();
        Ok(value)
    }

    /// Skips members that this program does not know, up to this ordinal.
    fn skip_members(&mut self, table: &mut TableReader, ordinal: usize) -> Result<(), DecodeError> {
        while table.read < ordinal {
            let at = table.start + table.read * 8;
            table.is_last_empty = self.is_empty_envelope(at);
            self.unknown_envelope(at)?;
            table.read += 1;
        }
        Ok(())
    }
}
