//! [`Str`]: strings.

use super::decoder::count;
use super::{Decoder, Encoder, OptionalWire, Place, UNBOUNDED, Wire, put_count};
use crate::{DecodeError, EncodeError, Reason};

/// `string:MAX`: UTF-8 of at most `MAX` bytes.
#[derive(Clone, Copy, Debug)]
pub enum Str<const MAX: u32 = UNBOUNDED> {}

impl<const MAX: u32> Wire for Str<MAX> {
    type Value = String;
    const SIZE: usize = 16;
    const ALIGN: usize = 8;
    const HAS_REST: bool = true;

    #[inline]
    fn put(value: &String, place: &mut [u8]) {
        put_count(value.len(), place);
    }

    #[inline]
    fn encode_rest<'v>(value: &'v String, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        let count = value.len() as u64;
        if count > u64::from(MAX) {
            return Err(EncodeError::new(Reason::TooMany { count, max: u64::from(MAX) }, at));
        }
        encoder.deeper(at, |encoder| encoder.append(value.as_bytes()))
    }

    #[inline]
    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<String, DecodeError> {
        Self::decode_optional(decoder, place)?.ok_or_else(|| DecodeError::new(Reason::Absent, place.offset()))
    }
}

impl<const MAX: u32> OptionalWire for Str<MAX> {
    type OptionalValue = Option<String>;
    const OPTIONAL_SIZE: usize = Self::SIZE;
    const OPTIONAL_ALIGN: usize = Self::ALIGN;

    #[inline]
    fn put_optional(value: &Option<String>, place: &mut [u8]) {
        if let Some(string) = value {
            Self::put(string, place);
        }
    }

    #[inline]
    fn encode_optional_rest<'v>(
        value: &'v Option<String>,
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError> {
        value.as_ref().map_or(Ok(()), |string| Self::encode_rest(string, encoder, at))
    }

    #[inline]
    fn decode_optional<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Option<String>, DecodeError> {
        let Some(count) = count(place, MAX)? else { return Ok(None) };
        let at = place.offset();
        decoder.deeper(at, |decoder| {
            let text = decoder.claim(count, at)?;
            match std::str::from_utf8(text.bytes()) {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(_) => Err(DecodeError::new(Reason::Utf8, text.offset())),
            }
        })
    }
}
