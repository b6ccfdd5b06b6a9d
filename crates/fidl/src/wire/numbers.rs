//! `bool` and numbers.

use super::{Decoder, Encoder, Wire};
use crate::{DecodeError, EncodeError, Reason};

macro_rules! number {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            type Value = Self;
            const SIZE: usize = size_of::<Self>();
            const ALIGN: usize = size_of::<Self>();

            #[inline]
            fn encode<'v>(value: &'v Self, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
                encoder.put(at, value.to_le_bytes());
                Ok(())
            }

            #[inline]
            fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<Self, DecodeError> {
                Ok(Self::from_le_bytes(decoder.get(at)))
            }

            fn encode_all<'v>(
                values: &'v [Self],
                encoder: &mut Encoder<'_, 'v>,
                at: usize,
            ) -> Result<(), EncodeError> {
                let bytes = encoder.slice(at, values.len() * Self::SIZE);
                for (place, value) in bytes.chunks_exact_mut(Self::SIZE).zip(values) {
                    place.copy_from_slice(&value.to_le_bytes());
                }
                Ok(())
            }

            fn decode_all(
                decoder: &mut Decoder<'_>,
                at: usize,
                count: usize,
                values: &mut Vec<Self>,
            ) -> Result<(), DecodeError> {
                let chunks = decoder.slice(at, count * Self::SIZE).chunks_exact(Self::SIZE);
                values.extend(chunks.map(|chunk| {
                    let mut bytes = [0; size_of::<Self>()];
                    bytes.copy_from_slice(chunk);
                    Self::from_le_bytes(bytes)
                }));
                Ok(())
            }
        }
    )*};
}

number!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

impl Wire for bool {
    type Value = Self;
    const SIZE: usize = 1;
    const ALIGN: usize = 1;

    #[inline]
    fn encode<'v>(value: &'v Self, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        encoder.put(at, [u8::from(*value)]);
        Ok(())
    }

    #[inline]
    fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<Self, DecodeError> {
        match decoder.get(at) {
            [0] => Ok(false),
            [1] => Ok(true),
            [byte] => Err(DecodeError::new(Reason::Bool(byte), at)),
        }
    }
}
