//! [`Optional`] and [`Boxed`]: what may be absent.

use core::marker::PhantomData;

use super::{Decoder, Encoder, Place, Wire, put};
use crate::{DecodeError, EncodeError, Reason};

/// `T:optional`, of a string, a vector, a handle, an end of a protocol, or a union.
#[derive(Clone, Copy, Debug)]
pub struct Optional<T>(PhantomData<T>);

/// `box<T>`, of a struct: out of line if it is there.
#[derive(Clone, Copy, Debug)]
pub struct Boxed<T>(PhantomData<T>);

/// `T` in place, whose value is on the heap because its type contains itself.
#[derive(Clone, Copy, Debug)]
pub struct OnHeap<T>(PhantomData<T>);

/// Type with an encoding for being absent.
pub trait OptionalWire {
    /// The type in Rust.
    type OptionalValue;

    /// Size in place, in bytes.
    const OPTIONAL_SIZE: usize;

    /// Alignment in place, in bytes.
    const OPTIONAL_ALIGN: usize;

    /// As [`Wire::put`].
    fn put_optional(value: &Self::OptionalValue, place: &mut [u8]);

    /// As [`Wire::encode_rest`].
    ///
    /// # Errors
    ///
    /// The value has no encoding.
    fn encode_optional_rest<'v>(
        value: &'v Self::OptionalValue,
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError>;

    /// As [`Wire::decode`].
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the type.
    fn decode_optional<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Self::OptionalValue, DecodeError>;
}

impl<T: OptionalWire> Wire for Optional<T> {
    type Value = T::OptionalValue;
    const SIZE: usize = T::OPTIONAL_SIZE;
    const ALIGN: usize = T::OPTIONAL_ALIGN;
    const HAS_REST: bool = true;

    #[inline]
    fn put(value: &T::OptionalValue, place: &mut [u8]) {
        T::put_optional(value, place);
    }

    #[inline]
    fn encode_rest<'v>(
        value: &'v T::OptionalValue,
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError> {
        T::encode_optional_rest(value, encoder, at)
    }

    #[inline]
    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<T::OptionalValue, DecodeError> {
        T::decode_optional(decoder, place)
    }
}

impl<T: Wire> Wire for Boxed<T> {
    type Value = Option<Box<T::Value>>;
    const SIZE: usize = 8;
    const ALIGN: usize = 8;
    const HAS_REST: bool = true;

    #[inline]
    fn put(value: &Option<Box<T::Value>>, place: &mut [u8]) {
        if value.is_some() {
            put::<u64>(&u64::MAX, place, 0);
        }
    }

    fn encode_rest<'v>(
        value: &'v Option<Box<T::Value>>,
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError> {
        let Some(value) = value else { return Ok(()) };
        encoder.deeper(at, |encoder| encoder.object::<T>(value))
    }

    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Option<Box<T::Value>>, DecodeError> {
        let at = place.offset();
        match u64::from_le_bytes(place.array()?) {
            0 => Ok(None),
            u64::MAX => decoder.deeper(at, |decoder| decoder.object::<T>(at).map(|value| Some(Box::new(value)))),
            marker => Err(DecodeError::new(Reason::Presence(marker), at)),
        }
    }
}

impl<T: Wire> Wire for OnHeap<T> {
    type Value = Box<T::Value>;
    const SIZE: usize = T::SIZE;
    const ALIGN: usize = T::ALIGN;
    const HAS_REST: bool = T::HAS_REST;

    fn put(value: &Box<T::Value>, place: &mut [u8]) {
        T::put(value, place);
    }

    fn encode_rest<'v>(value: &'v Box<T::Value>, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        T::encode_rest(value, encoder, at)
    }

    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Box<T::Value>, DecodeError> {
        T::decode(decoder, place).map(Box::new)
    }
}
