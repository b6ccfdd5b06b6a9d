//! [`Vector`] and [`Array`].

use core::marker::PhantomData;

use super::{Decoder, Encoder, OptionalWire, UNBOUNDED, Wire};
use crate::{DecodeError, EncodeError, Reason};

/// `vector<T>:MAX`: at most `MAX` elements.
#[derive(Clone, Copy, Debug)]
pub struct Vector<T, const MAX: u32 = UNBOUNDED>(PhantomData<T>);

/// `array<T, N>`: exactly `N` elements.
#[derive(Clone, Copy, Debug)]
pub struct Array<T, const N: usize>(PhantomData<T>);

impl<T: Wire, const MAX: u32> Wire for Vector<T, MAX> {
    type Value = Vec<T::Value>;
    const SIZE: usize = 16;
    const ALIGN: usize = 8;

    fn encode<'v>(value: &'v Vec<T::Value>, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        let count = value.len() as u64;
        if count > u64::from(MAX) {
            return Err(EncodeError::new(Reason::TooMany { count, max: u64::from(MAX) }, at));
        }
        encoder.put(at, count.to_le_bytes());
        encoder.put(at + 8, u64::MAX.to_le_bytes());
        encoder.deeper(at, |encoder| {
            let size = value.len().checked_mul(T::SIZE).ok_or_else(|| EncodeError::new(Reason::TooLong, at))?;
            let start = encoder.claim(size)?;
            T::encode_all(value, encoder, start)
        })
    }

    fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<Vec<T::Value>, DecodeError> {
        Self::decode_optional(decoder, at)?.ok_or_else(|| DecodeError::new(Reason::Absent, at))
    }
}

impl<T: Wire, const MAX: u32> OptionalWire for Vector<T, MAX> {
    type OptionalValue = Option<Vec<T::Value>>;
    const OPTIONAL_SIZE: usize = 16;
    const OPTIONAL_ALIGN: usize = 8;

    fn encode_optional<'v>(
        value: &'v Option<Vec<T::Value>>,
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError> {
        value.as_ref().map_or(Ok(()), |vector| Self::encode(vector, encoder, at))
    }

    fn decode_optional(decoder: &mut Decoder<'_>, at: usize) -> Result<Option<Vec<T::Value>>, DecodeError> {
        let Some(count) = decoder.count(at, MAX)? else { return Ok(None) };
        decoder.deeper(at, |decoder| {
            let size = count.checked_mul(T::SIZE).ok_or_else(|| DecodeError::new(Reason::TooFewBytes, at))?;
            // The bytes are there before memory is taken for the elements.
            let start = decoder.claim(size, at)?;
            let mut values = Vec::new();
            T::decode_all(decoder, start, count, &mut values)?;
            Ok(Some(values))
        })
    }
}

impl<T: Wire, const N: usize> Wire for Array<T, N> {
    type Value = [T::Value; N];
    const SIZE: usize = T::SIZE * N;
    const ALIGN: usize = T::ALIGN;

    fn encode<'v>(value: &'v [T::Value; N], encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        T::encode_all(value, encoder, at)
    }

    fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<[T::Value; N], DecodeError> {
        let mut values = Vec::new();
        T::decode_all(decoder, at, N, &mut values)?;
        // `decode_all` adds N values, so that this cannot fail.
        values.try_into().map_err(|_| DecodeError::new(Reason::TooFewBytes, at))
    }
}
