//! Bodies of messages: what follows the header.

use core::convert::Infallible;
use core::marker::PhantomData;
use std::os::fd::{BorrowedFd, OwnedFd};

use esatto_ipc::observed::OwnError;

use crate::wire::{Decoder, Encoder, Number, Place, Wire, decode, encode_with_handles};
use crate::{DecodeError, EncodeError, Reason};

/// Body of a message.
pub trait Body: 'static {
    /// The type in Rust.
    type Value;

    /// Adds the body to a message.
    ///
    /// # Errors
    ///
    /// The value has no encoding.
    fn encode<'v>(
        value: &'v Self::Value,
        bytes: &mut Vec<u8>,
        handles: &mut Vec<BorrowedFd<'v>>,
    ) -> Result<(), EncodeError>;

    /// Reads the body of a message.
    ///
    /// # Errors
    ///
    /// The bytes are no encoding, or the peer lacks the method.
    fn decode(bytes: &[u8], handles: Vec<OwnedFd>) -> Result<Self::Value, BodyError>;

    /// Returns the error that the body carries, for hooks; `None` if it carries none.
    fn error(bytes: &[u8]) -> Option<OwnError> {
        let _ = bytes;
        None
    }
}

/// Reason why a body has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The bytes are no encoding of the body.
    Decode(DecodeError),
    /// The bindings of the peer answered, because they lack the method, for example.
    Framework(FrameworkError),
}

/// Answer of bindings instead of a program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameworkError(pub i32);

impl FrameworkError {
    /// The peer does not know the method.
    pub const UNKNOWN_METHOD: Self = Self(-2);
}

/// No body: `()`.
#[derive(Clone, Copy, Debug)]
pub enum Empty {}

/// Body that is a struct, table or union.
#[derive(Clone, Copy, Debug)]
pub struct Payload<T>(PhantomData<T>);

/// Response of a method with an error, or a flexible one: a union of the payload, the error of the
/// program, and that of the bindings. `S` is [`EmptyStruct`] for `()`, and `E` is [`Never`] for a
/// method without an error.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<S, E>(PhantomData<(S, E)>);

/// Response of a flexible method without an error.
#[derive(Clone, Copy, Debug)]
pub struct Flexible<S>(PhantomData<S>);

/// Empty struct, which has 1 byte.
#[derive(Clone, Copy, Debug)]
pub enum EmptyStruct {}

/// Type without values.
#[derive(Clone, Copy, Debug)]
pub enum Never {}

impl Body for Empty {
    type Value = ();

    fn encode<'v>((): &'v (), _: &mut Vec<u8>, _: &mut Vec<BorrowedFd<'v>>) -> Result<(), EncodeError> {
        Ok(())
    }

    fn decode(bytes: &[u8], handles: Vec<OwnedFd>) -> Result<(), BodyError> {
        let reason = match (bytes.len(), handles.len()) {
            (0, 0) => return Ok(()),
            (0, count) => Reason::TooManyHandles(count),
            (count, _) => Reason::TooManyBytes(count),
        };
        Err(BodyError::Decode(DecodeError::new(reason, 0)))
    }
}

impl<T: Wire + 'static> Body for Payload<T> {
    type Value = T::Value;

    fn encode<'v>(
        value: &'v T::Value,
        bytes: &mut Vec<u8>,
        handles: &mut Vec<BorrowedFd<'v>>,
    ) -> Result<(), EncodeError> {
        encode_with_handles::<T>(value, bytes, handles)
    }

    fn decode(bytes: &[u8], handles: Vec<OwnedFd>) -> Result<T::Value, BodyError> {
        decode::<T>(bytes, handles).map_err(BodyError::Decode)
    }
}

impl<S: Wire + 'static, E: Wire + 'static> Body for Outcome<S, E> {
    type Value = Result<S::Value, E::Value>;

    fn encode<'v>(
        value: &'v Self::Value,
        bytes: &mut Vec<u8>,
        handles: &mut Vec<BorrowedFd<'v>>,
    ) -> Result<(), EncodeError> {
        encode_with_handles::<ResultUnion<S, E>>(value, bytes, handles)
    }

    fn decode(bytes: &[u8], handles: Vec<OwnedFd>) -> Result<Self::Value, BodyError> {
        if let Some(error) = framework_error(bytes) {
            return error;
        }
        decode::<ResultUnion<S, E>>(bytes, handles).map_err(BodyError::Decode)
    }

    fn error(bytes: &[u8]) -> Option<OwnError> {
        result_error(bytes, E::NUMBER)
    }
}

impl<S: Wire + 'static> Body for Flexible<S> {
    type Value = S::Value;

    fn encode<'v>(
        value: &'v S::Value,
        bytes: &mut Vec<u8>,
        handles: &mut Vec<BorrowedFd<'v>>,
    ) -> Result<(), EncodeError> {
        encode_with_handles::<SuccessUnion<S>>(value, bytes, handles)
    }

    fn decode(bytes: &[u8], handles: Vec<OwnedFd>) -> Result<S::Value, BodyError> {
        if let Some(error) = framework_error(bytes) {
            return error;
        }
        match Outcome::<S, Never>::decode(bytes, handles)? {
            Ok(value) => Ok(value),
            Err(never) => match never {},
        }
    }

    fn error(bytes: &[u8]) -> Option<OwnError> {
        result_error(bytes, None)
    }
}

/// Ordinals of the members of a result.
const SUCCESS: u64 = 1;
const ERROR: u64 = 2;
const FRAMEWORK: u64 = 3;

/// Returns the body by which bindings answer.
pub(crate) fn framework_answer(error: FrameworkError) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&FRAMEWORK.to_le_bytes());
    bytes[8..12].copy_from_slice(&error.0.to_le_bytes());
    bytes[14] = 1;
    bytes
}

/// Reads the answer of bindings. Returns `None` if the body is another one.
fn framework_error<T>(bytes: &[u8]) -> Option<Result<T, BodyError>> {
    let ordinal = bytes.first_chunk::<8>()?;
    if u64::from_le_bytes(*ordinal) != FRAMEWORK {
        return None;
    }
    Some(Err(match decode::<FrameworkUnion>(bytes, Vec::new()) {
        Ok(error) => BodyError::Framework(error),
        Err(error) => BodyError::Decode(error),
    }))
}

/// Returns the error in the body of a result, whose error type is such a number.
fn result_error(bytes: &[u8], number: Option<Number>) -> Option<OwnError> {
    let ordinal = u64::from_le_bytes(*bytes.first_chunk()?);
    if ordinal != ERROR && ordinal != FRAMEWORK {
        return None;
    }
    // Numbers of up to 4 bytes are in the envelope.
    let inlined = bytes.get(8..12).and_then(|value| value.first_chunk::<4>());
    let value = number.filter(|_| ordinal == ERROR).zip(inlined).map(|(number, value)| number.read(*value));
    Some(OwnError { value })
}

struct ResultUnion<S, E>(PhantomData<(S, E)>);
struct SuccessUnion<S>(PhantomData<S>);
struct FrameworkUnion;

macro_rules! union_shape {
    () => {
        const SIZE: usize = 16;
        const ALIGN: usize = 8;
        const HAS_REST: bool = true;

        // The ordinal comes with the envelope.
        fn put(_: &Self::Value, _: &mut [u8]) {}
    };
}

impl<S: Wire, E: Wire> Wire for ResultUnion<S, E> {
    type Value = Result<S::Value, E::Value>;
    union_shape!();

    fn encode_rest<'v>(value: &'v Self::Value, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        match value {
            Ok(success) => {
                let envelope = encoder.union(at, SUCCESS);
                encoder.envelope::<S>(success, envelope, "response")
            }
            Err(error) => {
                let envelope = encoder.union(at, ERROR);
                encoder.envelope::<E>(error, envelope, "err")
            }
        }
    }

    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Self::Value, DecodeError> {
        match decoder.union(place)? {
            SUCCESS => decoder.union_member::<S>(place, "response").map(Ok),
            ERROR => decoder.union_member::<E>(place, "err").map(Err),
            0 => Err(DecodeError::new(Reason::Absent, place.offset())),
            ordinal => Err(DecodeError::unknown_ordinal(ordinal, place.offset())),
        }
    }
}

impl<S: Wire> Wire for SuccessUnion<S> {
    type Value = S::Value;
    union_shape!();

    fn encode_rest<'v>(value: &'v S::Value, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        let envelope = encoder.union(at, SUCCESS);
        encoder.envelope::<S>(value, envelope, "response")
    }

    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<S::Value, DecodeError> {
        match decoder.union(place)? {
            SUCCESS => decoder.union_member::<S>(place, "response"),
            ordinal => Err(DecodeError::unknown_ordinal(ordinal, place.offset())),
        }
    }
}

impl Wire for FrameworkUnion {
    type Value = FrameworkError;
    union_shape!();

    fn encode_rest<'v>(value: &'v FrameworkError, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        let envelope = encoder.union(at, FRAMEWORK);
        encoder.envelope::<i32>(&value.0, envelope, "framework_err")
    }

    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<FrameworkError, DecodeError> {
        decoder.union(place)?;
        decoder.union_member::<i32>(place, "framework_err").map(FrameworkError)
    }
}

impl Wire for EmptyStruct {
    type Value = ();
    const SIZE: usize = 1;
    const ALIGN: usize = 1;
    const HAS_REST: bool = false;

    fn put((): &(), _: &mut [u8]) {}

    fn decode<'b>(_: &mut Decoder<'b>, place: Place<'b>) -> Result<(), DecodeError> {
        place.zeros(0, 1)
    }
}

impl Wire for Never {
    type Value = Infallible;
    const SIZE: usize = 1;
    const ALIGN: usize = 1;
    const HAS_REST: bool = false;

    fn put(value: &Infallible, _: &mut [u8]) {
        match *value {}
    }

    fn decode<'b>(_: &mut Decoder<'b>, place: Place<'b>) -> Result<Infallible, DecodeError> {
        Err(DecodeError::unknown_ordinal(ERROR, place.offset()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<B: Body>(value: &B::Value) -> Vec<u8> {
        let (mut bytes, mut handles) = (Vec::new(), Vec::new());
        B::encode(value, &mut bytes, &mut handles).unwrap();
        bytes
    }

    #[test]
    fn results_are_unions() {
        let success = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(bytes::<Outcome<EmptyStruct, u32>>(&Ok(())), success);
        assert_eq!(bytes::<Flexible<EmptyStruct>>(&()), success);
        assert_eq!(Flexible::<EmptyStruct>::decode(&success, Vec::new()), Ok(()));
        let error = [2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(bytes::<Outcome<EmptyStruct, u32>>(&Err(7)), error);
        assert_eq!(Outcome::<EmptyStruct, u32>::decode(&error, Vec::new()), Ok(Err(7)));
        assert!(matches!(Flexible::<EmptyStruct>::decode(&error, Vec::new()), Err(BodyError::Decode(_))));
        let unknown = framework_answer(FrameworkError::UNKNOWN_METHOD);
        let expected = Err(BodyError::Framework(FrameworkError::UNKNOWN_METHOD));
        assert_eq!(Outcome::<EmptyStruct, u32>::decode(&unknown, Vec::new()), expected);
    }

    #[test]
    fn an_empty_body_has_no_bytes() {
        assert!(bytes::<Empty>(&()).is_empty());
        assert!(Empty::decode(&[0; 8], Vec::new()).is_err());
    }
}
