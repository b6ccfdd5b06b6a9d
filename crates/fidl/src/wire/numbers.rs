//! `bool` and numbers.

use super::{Decoder, Encoder, Place, Wire};
use crate::{DecodeError, EncodeError, Reason};

macro_rules! number {
    ($($number:ident),*) => {$(
        impl Wire for $number {
            type Value = Self;
            const SIZE: usize = size_of::<Self>();
            const ALIGN: usize = size_of::<Self>();
            const HAS_REST: bool = false;

            #[inline]
            fn put(value: &Self, place: &mut [u8]) {
                if let Some(place) = place.first_chunk_mut() {
                    *place = value.to_le_bytes();
                }
            }

            #[inline]
            fn decode<'b>(_: &mut Decoder<'b>, place: Place<'b>) -> Result<Self, DecodeError> {
                place.array().map(Self::from_le_bytes)
            }

            fn decode_all<'b>(_: &mut Decoder<'b>, place: Place<'b>, values: &mut Vec<Self>) -> Result<(), DecodeError> {
                let chunks = place.bytes().chunks_exact(Self::SIZE);
                values.extend(chunks.map(|chunk| {
                    let mut bytes = [0; size_of::<Self>()];
                    bytes.copy_from_slice(chunk);
                    Self::from_le_bytes(bytes)
                }));
                Ok(())
            }

            #[inline]
            fn decode_array<'b, const N: usize>(
                _: &mut Decoder<'b>,
                place: Place<'b>,
            ) -> Result<[Self; N], DecodeError> {
                let place = place.part(0, N * Self::SIZE)?;
                let mut values = [Self::default(); N];
                for (value, chunk) in values.iter_mut().zip(place.bytes().chunks_exact(Self::SIZE)) {
                    if let Some(bytes) = chunk.first_chunk() {
                        *value = Self::from_le_bytes(*bytes);
                    }
                }
                Ok(values)
            }
            number!(elements $number);
        }
    )*};
    // Bytes are an object as they are.
    (elements u8) => {
        fn encode_elements<'v>(values: &'v [u8], encoder: &mut Encoder<'_, 'v>, _: usize) -> Result<(), EncodeError> {
            encoder.append(values)
        }
    };
    (elements $number:ident) => {};
}

number!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

impl Wire for bool {
    type Value = Self;
    const SIZE: usize = 1;
    const ALIGN: usize = 1;
    const HAS_REST: Self = false;

    #[inline]
    fn put(value: &Self, place: &mut [u8]) {
        super::put::<u8>(&u8::from(*value), place, 0);
    }

    #[inline]
    fn decode<'b>(_: &mut Decoder<'b>, place: Place<'b>) -> Result<Self, DecodeError> {
        match place.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [byte] => Err(DecodeError::new(Reason::Bool(byte), place.offset())),
        }
    }
}
