//! [`Vector`] and [`Array`].

use core::marker::PhantomData;

use super::decoder::count;
use super::{Decoder, Encoder, OptionalWire, Place, UNBOUNDED, Wire, put_count};
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
    const HAS_REST: bool = true;

    #[inline]
    fn put(value: &Vec<T::Value>, place: &mut [u8]) {
        put_count(value.len(), place);
    }

    #[inline]
    fn encode_rest<'v>(value: &'v Vec<T::Value>, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        let count = value.len() as u64;
        if count > u64::from(MAX) {
            return Err(EncodeError::new(Reason::TooMany { count, max: u64::from(MAX) }, at));
        }
        encoder.deeper(at, |encoder| T::encode_elements(value, encoder, at))
    }

    #[inline]
    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Vec<T::Value>, DecodeError> {
        Self::decode_optional(decoder, place)?.ok_or_else(|| DecodeError::new(Reason::Absent, place.offset()))
    }
}

impl<T: Wire, const MAX: u32> OptionalWire for Vector<T, MAX> {
    type OptionalValue = Option<Vec<T::Value>>;
    const OPTIONAL_SIZE: usize = 16;
    const OPTIONAL_ALIGN: usize = 8;

    #[inline]
    fn put_optional(value: &Option<Vec<T::Value>>, place: &mut [u8]) {
        if let Some(vector) = value {
            Self::put(vector, place);
        }
    }

    #[inline]
    fn encode_optional_rest<'v>(
        value: &'v Option<Vec<T::Value>>,
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError> {
        value.as_ref().map_or(Ok(()), |vector| Self::encode_rest(vector, encoder, at))
    }

    #[inline]
    fn decode_optional<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Option<Vec<T::Value>>, DecodeError> {
        let Some(count) = count(place, MAX)? else { return Ok(None) };
        let at = place.offset();
        decoder.deeper(at, |decoder| {
            let size = count.checked_mul(T::SIZE).ok_or_else(|| DecodeError::new(Reason::TooFewBytes, at))?;
            // The bytes are there before memory is taken for the elements.
            let elements = decoder.claim(size, at)?;
            let mut values = Vec::new();
            T::decode_all(decoder, elements, &mut values)?;
            Ok(Some(values))
        })
    }
}

impl<T: Wire, const N: usize> Wire for Array<T, N> {
    type Value = [T::Value; N];
    const SIZE: usize = T::SIZE * N;
    const ALIGN: usize = T::ALIGN;
    const HAS_REST: bool = T::HAS_REST;

    #[inline]
    fn put(value: &[T::Value; N], place: &mut [u8]) {
        T::put_all(value, place);
    }

    #[inline]
    fn encode_rest<'v>(value: &'v [T::Value; N], encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        super::encode_rests::<T>(value, encoder, at)
    }

    #[inline]
    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<[T::Value; N], DecodeError> {
        T::decode_array(decoder, place)
    }
}
