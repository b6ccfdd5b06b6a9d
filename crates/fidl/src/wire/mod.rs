//! Bytes ↔ values: FIDL's wire format, version 2.
//!
//! A message is a primary object of fixed size, then the objects that it refers to, each at a
//! multiple of 8 bytes, in the order in which a walk meets them. There are no pointers: a marker
//! says if an object is there.
//!
//! | FIDL | [`Wire`] type | value |
//! |---|---|---|
//! | `bool`, `int8` … `float64` | [`bool`], [`i8`] … [`f64`] | itself |
//! | `string:N` | [`Str<N>`](Str) | [`String`] |
//! | `vector<T>:N` | [`Vector<T, N>`](Vector) | `Vec<T>` |
//! | `array<T, N>` | [`Array<T, N>`](Array) | `[T; N]` |
//! | `T:optional` | [`Optional<T>`](Optional) | `Option<T>`, or `Option<Box<T>>` of a union |
//! | `box<T>` | [`Boxed<T>`](Boxed) | `Option<Box<T>>` |
//! | handles and ends of protocols | [`Handle`](crate::Handle), [`ClientEnd`](crate::ClientEnd), [`ServerEnd`](crate::ServerEnd) | itself |
//! | structs, tables, unions, enums, bits | the generated type | itself |
//!
//! A bound of [`UNBOUNDED`] is none.

mod decoder;
mod encoder;
mod envelope;
mod indirect;
mod numbers;
mod place;
mod sequences;
mod strings;
mod table;
mod union;

use std::os::fd::{BorrowedFd, OwnedFd};

pub use self::decoder::Decoder;
pub use self::encoder::Encoder;
pub use self::indirect::{Boxed, OnHeap, Optional, OptionalWire};
pub use self::numbers::Number;
pub use self::place::Place;
pub use self::sequences::{Array, Vector};
pub use self::strings::Str;
pub use self::table::{TableReader, TableWriter};
use crate::{DecodeError, EncodeError, Reason};

/// Bound of a string or vector without one: the most that the format can count.
pub const UNBOUNDED: u32 = u32::MAX;

/// Levels of objects out of line that a message may have.
pub const MAX_DEPTH: u32 = 32;

/// Type of the wire format.
///
/// A value is written in two steps. [`put`](Self::put) writes the bytes of a whole object, with all
/// that its members have in place. Then [`encode_rest`](Self::encode_rest) writes what they refer
/// to, member by member; numbers and structs of them have nothing to write.
pub trait Wire {
    /// The type in Rust.
    type Value;

    /// Size in place, in bytes.
    const SIZE: usize;

    /// Alignment in place, in bytes: 1, 2, 4 or 8.
    const ALIGN: usize;

    /// False if all values are encoded by [`put`](Self::put) alone.
    const HAS_REST: bool;

    /// The kind of number that a value is, if it is one of up to 4 bytes: an integer, an enum or
    /// bits.
    const NUMBER: Option<Number> = None;

    /// Writes the bytes of a value in place. `place` has [`SIZE`](Self::SIZE) bytes, which are 0.
    fn put(value: &Self::Value, place: &mut [u8]);

    /// Writes what a value, whose bytes in place are at `at`, has beside them: objects after the
    /// last object, and handles.
    ///
    /// # Errors
    ///
    /// The value has no encoding, because a bound of its type is exceeded, for example.
    fn encode_rest<'v>(value: &'v Self::Value, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        let _ = (value, encoder, at);
        Ok(())
    }

    /// Reads a value from its [`SIZE`](Self::SIZE) bytes in place.
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the type.
    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Self::Value, DecodeError>;

    /// Writes the bytes in place of values that follow each other.
    #[inline]
    fn put_all(values: &[Self::Value], place: &mut [u8]) {
        for (value, place) in values.iter().zip(place.chunks_exact_mut(Self::SIZE.max(1))) {
            Self::put(value, place);
        }
    }

    /// Writes the elements of a vector, which is at `at`, as an object.
    ///
    /// # Errors
    ///
    /// As [`encode_rest`](Self::encode_rest).
    #[inline]
    fn encode_elements<'v>(
        values: &'v [Self::Value],
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError> {
        let size = values.len().checked_mul(Self::SIZE).ok_or_else(|| EncodeError::new(Reason::TooLong, at))?;
        let start = encoder.claim(size)?;
        Self::put_all(values, encoder.slice(start, size));
        encode_rests::<Self>(values, encoder, start)
    }

    /// Reads the values that follow each other in `place`, and adds them to `values`.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    #[inline]
    fn decode_all<'b>(
        decoder: &mut Decoder<'b>,
        place: Place<'b>,
        values: &mut Vec<Self::Value>,
    ) -> Result<(), DecodeError> {
        let chunks = place.bytes().chunks_exact(Self::SIZE.max(1));
        values.reserve_exact(chunks.len());
        let mut at = place.offset();
        for chunk in chunks {
            values.push(Self::decode(decoder, Place::new(chunk, at))?);
            at += Self::SIZE;
        }
        Ok(())
    }

    /// Reads an array.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    fn decode_array<'b, const N: usize>(
        decoder: &mut Decoder<'b>,
        place: Place<'b>,
    ) -> Result<[Self::Value; N], DecodeError> {
        let mut values = Vec::new();
        Self::decode_all(decoder, place, &mut values)?;
        values.try_into().map_err(|_| DecodeError::new(Reason::TooFewBytes, place.offset()))
    }
}

/// Writes a member of a struct, whose bytes are `place`, at `offset`.
#[inline]
pub fn put<T: Wire>(value: &T::Value, place: &mut [u8], offset: usize) {
    if let Some(place) = place.get_mut(offset..).and_then(|place| place.get_mut(..T::SIZE)) {
        T::put(value, place);
    }
}

/// Writes the count and the presence marker of a string, a vector or a table.
#[inline]
fn put_count(count: usize, place: &mut [u8]) {
    put::<u64>(&(count as u64), place, 0);
    put::<u64>(&u64::MAX, place, 8);
}

/// Writes what values that follow each other from `at` have beside their bytes in place.
#[inline]
fn encode_rests<'v, T: Wire + ?Sized>(
    values: &'v [T::Value],
    encoder: &mut Encoder<'_, 'v>,
    at: usize,
) -> Result<(), EncodeError> {
    if T::HAS_REST {
        for (index, value) in values.iter().enumerate() {
            T::encode_rest(value, encoder, at + index * T::SIZE)?;
        }
    }
    Ok(())
}

/// Prints the names of the bits that are set, and the rest as a number: `READ | WRITE | 0x80`.
///
/// # Errors
///
/// Those of the formatter.
pub fn debug_bits(formatter: &mut core::fmt::Formatter<'_>, bits: u64, names: &[(&str, u64)]) -> core::fmt::Result {
    let mut rest = bits;
    let mut separator = "";
    for (name, bit) in names {
        if bits & bit != 0 {
            write!(formatter, "{separator}{name}")?;
            separator = " | ";
            rest &= !bit;
        }
    }
    if rest != 0 || bits == 0 {
        write!(formatter, "{separator}{rest:#x}")?;
    }
    Ok(())
}

/// Adds the encoding of a value without handles to `bytes`.
///
/// # Errors
///
/// The value has no encoding, or it has handles. `bytes` is as before then.
#[inline]
pub fn encode<T: Wire>(value: &T::Value, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut handles = Vec::new();
    let start = bytes.len();
    encode_with_handles::<T>(value, bytes, &mut handles)?;
    if handles.is_empty() {
        return Ok(());
    }
    bytes.truncate(start);
    Err(EncodeError::new(Reason::HandleLimit, 0))
}

/// Adds the encoding of a value to `bytes`, and its handles to `handles`.
///
/// # Errors
///
/// The value has no encoding. `bytes` and `handles` are as before then.
#[inline]
pub fn encode_with_handles<'v, T: Wire>(
    value: &'v T::Value,
    bytes: &mut Vec<u8>,
    handles: &mut Vec<BorrowedFd<'v>>,
) -> Result<(), EncodeError> {
    let (start, first_handle) = (bytes.len(), handles.len());
    let mut encoder = Encoder::new(bytes, handles);
    let encoded = encoder.object::<T>(value);
    if encoded.is_err() {
        bytes.truncate(start);
        handles.truncate(first_handle);
    }
    encoded
}

/// Reads the value of a whole message without a header. Handles that the message does not name are
/// an error, and closed.
///
/// # Errors
///
/// The bytes are no encoding of the type. All handles are closed then.
#[inline]
pub fn decode<T: Wire>(bytes: &[u8], handles: Vec<OwnedFd>) -> Result<T::Value, DecodeError> {
    let mut decoder = Decoder::new(bytes, handles);
    let value = decoder.object::<T>(0)?;
    decoder.finish()?;
    Ok(value)
}
