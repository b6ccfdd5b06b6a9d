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
mod sequences;
mod strings;
mod table;
mod union;

use std::os::fd::{BorrowedFd, OwnedFd};

pub use self::decoder::Decoder;
pub use self::encoder::Encoder;
pub use self::indirect::{Boxed, OnHeap, Optional, OptionalWire};
pub use self::sequences::{Array, Vector};
pub use self::strings::Str;
pub use self::table::{TableReader, TableWriter};
use crate::{DecodeError, EncodeError};

/// Bound of a string or vector without one: the most that the format can count.
pub const UNBOUNDED: u32 = u32::MAX;

/// Levels of objects out of line that a message may have.
pub const MAX_DEPTH: u32 = 32;

/// Type of the wire format.
pub trait Wire {
    /// The type in Rust.
    type Value;

    /// Size in place, in bytes.
    const SIZE: usize;

    /// Alignment in place, in bytes: 1, 2, 4 or 8.
    const ALIGN: usize;

    /// Writes a value into the [`SIZE`](Self::SIZE) bytes at `at`, which are 0, and the objects
    /// that it refers to after the last object.
    ///
    /// # Errors
    ///
    /// The value has no encoding, because a bound of its type is exceeded, for example.
    fn encode<'v>(value: &'v Self::Value, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError>;

    /// Reads a value from the [`SIZE`](Self::SIZE) bytes at `at`, which exist.
    ///
    /// # Errors
    ///
    /// The bytes are no encoding of the type.
    fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<Self::Value, DecodeError>;

    /// Writes values one after the other from `at`.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    fn encode_all<'v>(values: &'v [Self::Value], encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        values.iter().enumerate().try_for_each(|(index, value)| Self::encode(value, encoder, at + index * Self::SIZE))
    }

    /// Reads `count` values that follow each other from `at`, and adds them to `values`.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    fn decode_all(
        decoder: &mut Decoder<'_>,
        at: usize,
        count: usize,
        values: &mut Vec<Self::Value>,
    ) -> Result<(), DecodeError> {
        values.reserve_exact(count);
        for index in 0..count {
            values.push(Self::decode(decoder, at + index * Self::SIZE)?);
        }
        Ok(())
    }
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
pub fn encode<T: Wire>(value: &T::Value, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut handles = Vec::new();
    let start = bytes.len();
    encode_with_handles::<T>(value, bytes, &mut handles)?;
    if handles.is_empty() {
        return Ok(());
    }
    bytes.truncate(start);
    Err(EncodeError::new(crate::Reason::HandleLimit, 0))
}

/// Adds the encoding of a value to `bytes`, and its handles to `handles`.
///
/// # Errors
///
/// The value has no encoding. `bytes` and `handles` are as before then.
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
pub fn decode<T: Wire>(bytes: &[u8], handles: Vec<OwnedFd>) -> Result<T::Value, DecodeError> {
    let mut decoder = Decoder::new(bytes, handles);
    let at = decoder.claim(T::SIZE, 0)?;
    let value = T::decode(&mut decoder, at)?;
    decoder.finish()?;
    Ok(value)
}
