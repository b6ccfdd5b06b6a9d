//! [`Handle`]: what FIDL calls a handle is a file descriptor on Linux.

use core::fmt;
use core::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::wire::{Decoder, Encoder, Place, Wire, put};
use crate::{DecodeError, EncodeError, Reason};

/// Handle of a message: a file descriptor, which travels beside its bytes.
///
/// FIDL's types and rights of handles have no counterpart: the receiver sees what the descriptor
/// is.
#[derive(Debug)]
pub struct Handle(OwnedFd);

/// End of a connection on which a client calls the methods of `P`.
pub struct ClientEnd<P>(Handle, PhantomData<fn() -> P>);

/// End of a connection on which a server answers the methods of `P`.
pub struct ServerEnd<P>(Handle, PhantomData<fn() -> P>);

/// Makes a new connection: both of its ends.
///
/// # Errors
///
/// The process has no descriptors left.
pub fn endpoints<P>() -> std::io::Result<(ClientEnd<P>, ServerEnd<P>)> {
    let (client, server) = crate::socket::pair()?;
    Ok((client.into(), server.into()))
}

impl Wire for Handle {
    type Value = Self;
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
    const HAS_REST: bool = true;

    #[inline]
    fn put(_: &Self, place: &mut [u8]) {
        put::<u32>(&u32::MAX, place, 0);
    }

    #[inline]
    fn encode_rest<'v>(value: &'v Self, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        encoder.handle(value.as_fd(), at)
    }

    #[inline]
    fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Self, DecodeError> {
        decode(decoder, place)?.ok_or_else(|| DecodeError::new(Reason::Absent, place.offset()))
    }
}

impl crate::wire::OptionalWire for Handle {
    type OptionalValue = Option<Self>;
    const OPTIONAL_SIZE: usize = 4;
    const OPTIONAL_ALIGN: usize = 4;

    #[inline]
    fn put_optional(value: &Option<Self>, place: &mut [u8]) {
        if let Some(handle) = value {
            Self::put(handle, place);
        }
    }

    #[inline]
    fn encode_optional_rest<'v>(
        value: &'v Option<Self>,
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError> {
        value.as_ref().map_or(Ok(()), |handle| Self::encode_rest(handle, encoder, at))
    }

    #[inline]
    fn decode_optional<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Option<Self>, DecodeError> {
        decode(decoder, place)
    }
}

fn decode(decoder: &mut Decoder<'_>, place: Place<'_>) -> Result<Option<Handle>, DecodeError> {
    let at = place.offset();
    match u32::from_le_bytes(place.array()?) {
        0 => Ok(None),
        u32::MAX => decoder.handle(at).map(Handle).map(Some),
        marker => Err(DecodeError::new(Reason::Presence(u64::from(marker)), at)),
    }
}

impl From<OwnedFd> for Handle {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<Handle> for OwnedFd {
    fn from(handle: Handle) -> Self {
        handle.0
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

macro_rules! end {
    ($end:ident) => {
        impl<P> Wire for $end<P> {
            type Value = Self;
            const SIZE: usize = 4;
            const ALIGN: usize = 4;
            const HAS_REST: bool = true;

            #[inline]
            fn put(value: &Self, place: &mut [u8]) {
                Handle::put(&value.0, place);
            }

            #[inline]
            fn encode_rest<'v>(value: &'v Self, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
                Handle::encode_rest(&value.0, encoder, at)
            }

            #[inline]
            fn decode<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Self, DecodeError> {
                Handle::decode(decoder, place).map(Self::from)
            }
        }

        impl<P> crate::wire::OptionalWire for $end<P> {
            type OptionalValue = Option<Self>;
            const OPTIONAL_SIZE: usize = 4;
            const OPTIONAL_ALIGN: usize = 4;

            #[inline]
            fn put_optional(value: &Option<Self>, place: &mut [u8]) {
                if let Some(end) = value {
                    Self::put(end, place);
                }
            }

            #[inline]
            fn encode_optional_rest<'v>(
                value: &'v Option<Self>,
                encoder: &mut Encoder<'_, 'v>,
                at: usize,
            ) -> Result<(), EncodeError> {
                value.as_ref().map_or(Ok(()), |end| Handle::encode_rest(&end.0, encoder, at))
            }

            #[inline]
            fn decode_optional<'b>(decoder: &mut Decoder<'b>, place: Place<'b>) -> Result<Option<Self>, DecodeError> {
                Ok(decode(decoder, place)?.map(Self::from))
            }
        }

        impl<P> From<Handle> for $end<P> {
            fn from(handle: Handle) -> Self {
                Self(handle, PhantomData)
            }
        }

        impl<P> From<OwnedFd> for $end<P> {
            fn from(fd: OwnedFd) -> Self {
                Self(Handle(fd), PhantomData)
            }
        }

        impl<P> From<$end<P>> for OwnedFd {
            fn from(end: $end<P>) -> Self {
                end.0.0
            }
        }

        impl<P> AsFd for $end<P> {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        }

        impl<P> fmt::Debug for $end<P> {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.debug_tuple(stringify!($end)).field(&self.0.0).finish()
            }
        }
    };
}

end!(ClientEnd);
end!(ServerEnd);
