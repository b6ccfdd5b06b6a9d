//! [`Optional`] and [`Boxed`]: what may be absent.

use core::marker::PhantomData;

use super::{Decoder, Encoder, Wire};
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

    /// As [`Wire::encode`].
    ///
    /// # Errors
    ///
    /// The value has no encoding.
    fn encode_optional<'v>(
        value: &'v Self::OptionalValue,
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError>;

    /// As [`Wire::decode`].
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the type.
    fn decode_optional(decoder: &mut Decoder<'_>, at: usize) -> Result<Self::OptionalValue, DecodeError>;
}

impl<T: OptionalWire> Wire for Optional<T> {
    type Value = T::OptionalValue;
    const SIZE: usize = T::OPTIONAL_SIZE;
    const ALIGN: usize = T::OPTIONAL_ALIGN;

    fn encode<'v>(value: &'v T::OptionalValue, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        T::encode_optional(value, encoder, at)
    }

    fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<T::OptionalValue, DecodeError> {
        T::decode_optional(decoder, at)
    }
}

impl<T: Wire> Wire for Boxed<T> {
    type Value = Option<Box<T::Value>>;
    const SIZE: usize = 8;
    const ALIGN: usize = 8;

    fn encode<'v>(
        value: &'v Option<Box<T::Value>>,
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError> {
        let Some(value) = value else { return Ok(()) };
        encoder.put(at, u64::MAX.to_le_bytes());
        encoder.deeper(at, |encoder| encoder.object::<T>(value))
    }

    fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<Option<Box<T::Value>>, DecodeError> {
        match u64::from_le_bytes(decoder.get(at)) {
            0 => Ok(None),
            u64::MAX => decoder.deeper(at, |decoder| {
                let start = decoder.claim(T::SIZE, at)?;
                T::decode(decoder, start).map(|value| Some(Box::new(value)))
            }),
            marker => Err(DecodeError::new(Reason::Presence(marker), at)),
        }
    }
}

impl<T: Wire> Wire for OnHeap<T> {
    type Value = Box<T::Value>;
    const SIZE: usize = T::SIZE;
    const ALIGN: usize = T::ALIGN;

    fn encode<'v>(value: &'v Box<T::Value>, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        T::encode(value, encoder, at)
    }

    fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<Box<T::Value>, DecodeError> {
        T::decode(decoder, at).map(Box::new)
    }
}
