//! [`Str`]: strings.

use super::{Decoder, Encoder, OptionalWire, UNBOUNDED, Wire};
use crate::{DecodeError, EncodeError, Reason};

/// `string:MAX`: UTF-8 of at most `MAX` bytes.
#[derive(Clone, Copy, Debug)]
pub enum Str<const MAX: u32 = UNBOUNDED> {}

impl<const MAX: u32> Wire for Str<MAX> {
    type Value = String;
    const SIZE: usize = 16;
    const ALIGN: usize = 8;

    fn encode<'v>(value: &'v String, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        let count = value.len() as u64;
        if count > u64::from(MAX) {
            return Err(EncodeError::new(Reason::TooMany { count, max: u64::from(MAX) }, at));
        }
        encoder.put(at, count.to_le_bytes());
        encoder.put(at + 8, u64::MAX.to_le_bytes());
        encoder.deeper(at, |encoder| encoder.append(value.as_bytes()))
    }

    fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<String, DecodeError> {
        Self::decode_optional(decoder, at)?.ok_or_else(|| DecodeError::new(Reason::Absent, at))
    }
}

impl<const MAX: u32> OptionalWire for Str<MAX> {
    type OptionalValue = Option<String>;
    const OPTIONAL_SIZE: usize = Self::SIZE;
    const OPTIONAL_ALIGN: usize = Self::ALIGN;

    fn encode_optional<'v>(
        value: &'v Option<String>,
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError> {
        value.as_ref().map_or(Ok(()), |string| Self::encode(string, encoder, at))
    }

    fn decode_optional(decoder: &mut Decoder<'_>, at: usize) -> Result<Option<String>, DecodeError> {
        let Some(count) = decoder.count(at, MAX)? else { return Ok(None) };
        decoder.deeper(at, |decoder| {
            let start = decoder.claim(count, at)?;
            let text = std::str::from_utf8(decoder.slice(start, count));
            text.map(|text| Some(text.to_owned())).map_err(|_| DecodeError::new(Reason::Utf8, start))
        })
    }
}
