//! Envelopes: the values in tables and unions. Each has 8 bytes: the value itself if it has at most
//! 4, or else the length of the objects out of line; the number of handles; a marker.

use super::{Decoder, Encoder, Place, Wire};
use crate::{DecodeError, EncodeError, Reason};

/// Values up to this size are in their envelope.
const MAX_INLINE: usize = 4;

/// Marker of an envelope that holds the value itself.
const INLINE: u16 = 1;

/// The 8 bytes, as a number.
#[derive(Clone, Copy)]
struct Header(u64);

impl Header {
    const fn new(bytes: u32, handles: u16, marker: u16) -> Self {
        Self(bytes as u64 | (handles as u64) << 32 | (marker as u64) << 48)
    }

    fn bytes(self) -> u32 {
        let [a, b, c, d, ..] = self.0.to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    fn handles(self) -> u16 {
        let [_, _, _, _, a, b, _, _] = self.0.to_le_bytes();
        u16::from_le_bytes([a, b])
    }

    fn marker(self) -> u16 {
        let [.., a, b] = self.0.to_le_bytes();
        u16::from_le_bytes([a, b])
    }

    fn is_inline(self) -> bool {
        self.marker() == INLINE
    }
}

/// Returns the envelope of a value that is out of line, and refers to nothing.
const fn plain<T: Wire>() -> Option<Header> {
    if T::HAS_REST || T::SIZE <= MAX_INLINE || T::SIZE > 1 << 30 {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, reason = "the condition above")]
    Some(Header::new(T::SIZE.next_multiple_of(8) as u32, 0, 0))
}

impl<'v> Encoder<'_, 'v> {
    /// Writes the member of a table or union into the envelope at `at`.
    ///
    /// # Errors
    ///
    /// The value has no encoding.
    #[inline]
    pub fn envelope<T: Wire>(&mut self, value: &'v T::Value, at: usize, name: &'static str) -> Result<(), EncodeError> {
        self.write_envelope::<T>(value, at).map_err(|error| error.within(name))
    }

    #[inline]
    fn write_envelope<T: Wire>(&mut self, value: &'v T::Value, at: usize) -> Result<(), EncodeError> {
        let header = if let Some(header) = const { plain::<T>() } {
            self.deeper(at, |encoder| encoder.object::<T>(value))?;
            header
        } else if T::SIZE <= MAX_INLINE {
            let mut place = [0; MAX_INLINE];
            T::put(value, place.get_mut(..T::SIZE).unwrap_or_default());
            let mut handles = 0;
            if T::HAS_REST {
                let (_, before) = self.counts();
                self.deeper(at, |encoder| T::encode_rest(value, encoder, at))?;
                handles = self.handles_since(before, at)?;
            } else {
                self.deeper(at, |_| Ok(()))?;
            }
            Header::new(u32::from_le_bytes(place), handles, INLINE)
        } else {
            let (bytes_before, handles_before) = self.counts();
            self.deeper(at, |encoder| encoder.object::<T>(value))?;
            let bytes = u32::try_from(self.counts().0 - bytes_before);
            let bytes = bytes.map_err(|_| EncodeError::new(Reason::TooLong, at))?;
            Header::new(bytes, self.handles_since(handles_before, at)?, 0)
        };
        self.put(at, header.0.to_le_bytes());
        Ok(())
    }

    #[inline]
    fn handles_since(&self, before: usize, at: usize) -> Result<u16, EncodeError> {
        u16::try_from(self.counts().1 - before).map_err(|_| EncodeError::new(Reason::HandleLimit, at))
    }
}

impl<'b> Decoder<'b> {
    /// Reads the member of a table or union from its envelope. Returns `None` if it is empty.
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the type.
    #[inline]
    pub fn envelope<T: Wire>(&mut self, place: Place<'b>, name: &'static str) -> Result<Option<T::Value>, DecodeError> {
        let header = header(place)?;
        if header.0 == 0 {
            return Ok(None);
        }
        self.read_envelope::<T>(place, header).map(Some).map_err(|error| error.within(name))
    }

    /// Reads the member of a union, whose bytes are `place`, from its envelope.
    ///
    /// # Errors
    ///
    /// The envelope is empty, or the bytes are no encoding of the type.
    #[inline]
    pub fn union_member<T: Wire>(&mut self, place: Place<'b>, name: &'static str) -> Result<T::Value, DecodeError> {
        let envelope = place.part(8, 8)?;
        self.envelope::<T>(envelope, name)?.ok_or_else(|| DecodeError::new(Reason::Absent, envelope.offset()))
    }

    #[inline]
    fn read_envelope<T: Wire>(&mut self, place: Place<'b>, header: Header) -> Result<T::Value, DecodeError> {
        let at = place.offset();
        if const { plain::<T>() }.is_some_and(|plain| plain.0 == header.0) {
            return self.deeper(at, |decoder| decoder.object::<T>(at));
        }
        if header.marker() > INLINE {
            return Err(DecodeError::new(Reason::EnvelopeMarker(header.marker()), at + 6));
        }
        if header.is_inline() != (T::SIZE <= MAX_INLINE) {
            return Err(DecodeError::new(Reason::EnvelopePlace, at));
        }
        let (next_before, handles_before) = self.counts();
        let value = self.deeper(at, |decoder| {
            if T::SIZE <= MAX_INLINE {
                place.zeros(T::SIZE, MAX_INLINE - T::SIZE)?;
                T::decode(decoder, place.part(0, T::SIZE)?)
            } else {
                decoder.object::<T>(at)
            }
        })?;
        let (next, handles) = self.counts();
        let actual = (next - next_before) as u64;
        if !header.is_inline() && u64::from(header.bytes()) != actual {
            return Err(DecodeError::new(Reason::EnvelopeBytes { counted: header.bytes(), actual }, at));
        }
        let actual = handles_before - handles;
        if usize::from(header.handles()) != actual {
            return Err(DecodeError::new(Reason::EnvelopeHandles { counted: header.handles(), actual }, at));
        }
        Ok(value)
    }

    /// Skips the envelope of a union member that this program does not know, and closes its
    /// handles. `place` has the bytes of the union.
    ///
    /// # Errors
    ///
    /// The envelope contradicts itself, or the message.
    pub fn unknown_union_member(&mut self, place: Place<'b>) -> Result<(), DecodeError> {
        self.unknown_envelope(place.part(8, 8)?).map(|_| ())
    }

    /// Skips the envelope of a member that this program does not know, and closes its handles.
    /// Returns true if it is empty.
    pub(super) fn unknown_envelope(&mut self, place: Place<'b>) -> Result<bool, DecodeError> {
        let (header, at) = (header(place)?, place.offset());
        if header.0 == 0 {
            return Ok(true);
        }
        if header.marker() > INLINE {
            return Err(DecodeError::new(Reason::EnvelopeMarker(header.marker()), at + 6));
        }
        self.deeper(at, |decoder| {
            if !header.is_inline() {
                // An object out of line has at least 8 bytes.
                let counted = header.bytes();
                if counted % 8 != 0 || counted == 0 {
                    let actual = u64::from(counted).next_multiple_of(8).max(8);
                    return Err(DecodeError::new(Reason::EnvelopeBytes { counted, actual }, at));
                }
                let length = usize::try_from(counted).map_err(|_| DecodeError::new(Reason::TooFewBytes, at))?;
                decoder.claim(length, at)?;
            }
            decoder.close_handles(usize::from(header.handles()), at)
        })?;
        Ok(false)
    }
}

#[inline]
fn header(place: Place<'_>) -> Result<Header, DecodeError> {
    place.array().map(|bytes| Header(u64::from_le_bytes(bytes)))
}

/// Returns true if the envelope is empty.
#[inline]
pub(super) fn is_empty(place: Place<'_>) -> Result<bool, DecodeError> {
    header(place).map(|header| header.0 == 0)
}
