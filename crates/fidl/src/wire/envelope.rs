//! Envelopes: the values in tables and unions. Each has 8 bytes: the value itself if it has at most
//! 4, or else the length of the objects out of line; the number of handles; a marker.

use super::{Decoder, Encoder, Wire};
use crate::{DecodeError, EncodeError, Reason};

/// Values up to this size are in their envelope.
const MAX_INLINE: usize = 4;

/// Marker of an envelope that holds the value itself.
const INLINE: u16 = 1;

/// Content of the 8 bytes.
struct Counts {
    bytes: u32,
    handles: u16,
    is_inline: bool,
}

impl<'v> Encoder<'_, 'v> {
    /// Writes the member of a table or union into the envelope at `at`.
    ///
    /// # Errors
    ///
    /// The value has no encoding.
    pub fn envelope<T: Wire>(&mut self, value: &'v T::Value, at: usize, name: &'static str) -> Result<(), EncodeError> {
        self.write_envelope::<T>(value, at).map_err(|error| error.within(name))
    }

    fn write_envelope<T: Wire>(&mut self, value: &'v T::Value, at: usize) -> Result<(), EncodeError> {
        let (bytes_before, handles_before) = self.counts();
        self.deeper(at, |encoder| {
            if T::SIZE <= MAX_INLINE {
                encoder.put(at + 6, INLINE.to_le_bytes());
                T::encode(value, encoder, at)
            } else {
                encoder.object::<T>(value)
            }
        })?;
        let (bytes, handles) = self.counts();
        if T::SIZE > MAX_INLINE {
            let length = u32::try_from(bytes - bytes_before).map_err(|_| EncodeError::new(Reason::TooLong, at))?;
            self.put(at, length.to_le_bytes());
        }
        let handles = u16::try_from(handles - handles_before).map_err(|_| EncodeError::new(Reason::HandleLimit, at))?;
        self.put(at + 4, handles.to_le_bytes());
        Ok(())
    }
}

impl Decoder<'_> {
    /// Reads the member of a table or union from the envelope at `at`. Returns `None` if it is
    /// empty.
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the type.
    pub fn envelope<T: Wire>(&mut self, at: usize, name: &'static str) -> Result<Option<T::Value>, DecodeError> {
        if self.is_empty_envelope(at) {
            return Ok(None);
        }
        self.read_envelope::<T>(at).map(Some).map_err(|error| error.within(name))
    }

    /// Reads the member of a union from the envelope at `at`.
    ///
    /// # Errors
    ///
    /// The envelope is empty, or the bytes are no encoding of the type.
    pub fn present_envelope<T: Wire>(&mut self, at: usize, name: &'static str) -> Result<T::Value, DecodeError> {
        self.envelope::<T>(at, name)?.ok_or_else(|| DecodeError::new(Reason::Absent, at))
    }

    fn read_envelope<T: Wire>(&mut self, at: usize) -> Result<T::Value, DecodeError> {
        let counts = self.envelope_counts(at)?;
        if counts.is_inline != (T::SIZE <= MAX_INLINE) {
            return Err(DecodeError::new(Reason::EnvelopePlace, at));
        }
        let (next_before, handles_before) = self.counts();
        let value = self.deeper(at, |decoder| {
            if counts.is_inline {
                decoder.zeros(at + T::SIZE, MAX_INLINE - T::SIZE)?;
                T::decode(decoder, at)
            } else {
                let start = decoder.claim(T::SIZE, at)?;
                T::decode(decoder, start)
            }
        })?;
        let (next, handles) = self.counts();
        let actual = (next - next_before) as u64;
        if !counts.is_inline && u64::from(counts.bytes) != actual {
            return Err(DecodeError::new(Reason::EnvelopeBytes { counted: counts.bytes, actual }, at));
        }
        let actual = handles_before - handles;
        if usize::from(counts.handles) != actual {
            return Err(DecodeError::new(Reason::EnvelopeHandles { counted: counts.handles, actual }, at));
        }
        Ok(value)
    }

    /// Skips the envelope of a member that this program does not know, and closes its handles.
    ///
    /// # Errors
    ///
    /// The envelope contradicts itself, or the message.
    pub fn unknown_envelope(&mut self, at: usize) -> Result<(), DecodeError> {
        if self.is_empty_envelope(at) {
            return Ok(());
        }
        let counts = self.envelope_counts(at)?;
        self.deeper(at, |decoder| {
            if !counts.is_inline {
                // An object out of line has at least 8 bytes.
                if counts.bytes % 8 != 0 || counts.bytes == 0 {
                    let actual = u64::from(counts.bytes).next_multiple_of(8).max(8);
                    return Err(DecodeError::new(Reason::EnvelopeBytes { counted: counts.bytes, actual }, at));
                }
                let length = usize::try_from(counts.bytes).map_err(|_| DecodeError::new(Reason::TooFewBytes, at))?;
                decoder.claim(length, at)?;
            }
            decoder.close_handles(usize::from(counts.handles), at)
        })
    }

    pub(crate) fn is_empty_envelope(&self, at: usize) -> bool {
        self.get(at) == [0; 8]
    }

    fn envelope_counts(&self, at: usize) -> Result<Counts, DecodeError> {
        let marker = u16::from_le_bytes(self.get(at + 6));
        if marker > INLINE {
            return Err(DecodeError::new(Reason::EnvelopeMarker(marker), at + 6));
        }
        let (bytes, handles) = (u32::from_le_bytes(self.get(at)), u16::from_le_bytes(self.get(at + 4)));
        Ok(Counts { bytes, handles, is_inline: marker == INLINE })
    }
}
