//! [`Handle`]: what FIDL calls a handle is a file descriptor on Linux.

use core::fmt;
use core::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::wire::{Decoder, Encoder, Wire};
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

    fn encode<'v>(value: &'v Self, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
        encoder.put(at, u32::MAX.to_le_bytes());
        encoder.handle(value.as_fd(), at)
    }

    fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<Self, DecodeError> {
        decode(decoder, at)?.ok_or_else(|| DecodeError::new(Reason::Absent, at))
    }
}

impl crate::wire::OptionalWire for Handle {
    type OptionalValue = Option<Self>;
    const OPTIONAL_SIZE: usize = 4;
    const OPTIONAL_ALIGN: usize = 4;

    fn encode_optional<'v>(
        value: &'v Option<Self>,
        encoder: &mut Encoder<'_, 'v>,
        at: usize,
    ) -> Result<(), EncodeError> {
        value.as_ref().map_or(Ok(()), |handle| Self::encode(handle, encoder, at))
    }

    fn decode_optional(decoder: &mut Decoder<'_>, at: usize) -> Result<Option<Self>, DecodeError> {
        decode(decoder, at)
    }
}

fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<Option<Handle>, DecodeError> {
    match u32::from_le_bytes(decoder.get(at)) {
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

            fn encode<'v>(value: &'v Self, encoder: &mut Encoder<'_, 'v>, at: usize) -> Result<(), EncodeError> {
                Handle::encode(&value.0, encoder, at)
            }

            fn decode(decoder: &mut Decoder<'_>, at: usize) -> Result<Self, DecodeError> {
                Handle::decode(decoder, at).map(Self::from)
            }
        }

        impl<P> crate::wire::OptionalWire for $end<P> {
            type OptionalValue = Option<Self>;
            const OPTIONAL_SIZE: usize = 4;
            const OPTIONAL_ALIGN: usize = 4;

            fn encode_optional<'v>(
                value: &'v Option<Self>,
                encoder: &mut Encoder<'_, 'v>,
                at: usize,
            ) -> Result<(), EncodeError> {
                value.as_ref().map_or(Ok(()), |end| Handle::encode(&end.0, encoder, at))
            }

            fn decode_optional(decoder: &mut Decoder<'_>, at: usize) -> Result<Option<Self>, DecodeError> {
                Ok(decode(decoder, at)?.map(Self::from))
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
