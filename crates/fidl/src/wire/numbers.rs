//! `bool` and numbers.

use super::{Decoder, Encoder, Place, Wire};
use crate::{DecodeError, EncodeError, Reason};

/// Integer of up to 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    size: usize,
    is_signed: bool,
}

impl Number {
    const fn of(size: usize, is_signed: bool) -> Option<Self> {
        if size <= 4 { Some(Self { size, is_signed }) } else { None }
    }

    /// Reads the number from the bytes of an envelope.
    pub(crate) fn read(self, bytes: [u8; 4]) -> i64 {
        let unused = 32 - 8 * self.size;
        let high = u32::from_le_bytes(bytes) << unused;
        if self.is_signed {
            i64::from(i32::from_le_bytes(high.to_le_bytes()) >> unused)
        } else {
            i64::from(high >> unused)
        }
    }
}

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
            number!(kind $number);
        }
    )*};
    // Bytes are an object as they are.
    (elements u8) => {
        fn encode_elements<'v>(values: &'v [u8], encoder: &mut Encoder<'_, 'v>, _: usize) -> Result<(), EncodeError> {
            encoder.append(values)
        }
    };
    (elements $number:ident) => {};
    (kind f32) => {};
    (kind f64) => {};
    (kind $number:ident) => {
        const NUMBER: Option<Number> = Number::of(size_of::<Self>(), Self::MIN != 0);
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_sign() {
        let read = |number: Option<Number>, bytes| number.map(|number| number.read(bytes));
        assert_eq!(read(i32::NUMBER, [0xfe, 0xff, 0xff, 0xff]), Some(-2));
        assert_eq!(read(u32::NUMBER, [0xfe, 0xff, 0xff, 0xff]), Some(0xffff_fffe));
        assert_eq!(read(i8::NUMBER, [0xfe, 1, 2, 3]), Some(-2));
        assert_eq!(read(u16::NUMBER, [0xfe, 1, 2, 3]), Some(0x1fe));
        assert_eq!([i64::NUMBER, u64::NUMBER, f32::NUMBER, bool::NUMBER], [None; 4]);
    }
}
