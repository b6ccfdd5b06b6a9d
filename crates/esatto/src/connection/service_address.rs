//! The addresses of services.

use super::transport::{InProcessService, SocketFactory, SocketPlace};
use crate::backend::Backend;
use crate::os::Address;

/// The address of a service.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A socket.
    Socket(SocketPlace),
    /// A socket that another process connects.
    Delivered(SocketFactory),
    #[cfg_attr(not(feature = "in-process"), expect(dead_code, reason = "there is no service in this process"))]
    /// This process. Started by a pointer, so that programs which never ask for it do not contain
    /// it.
    Here(StartService),
}

type StartService = fn() -> Box<dyn InProcessService>;

impl Place {
    /// Returns the address of the socket, if it is one.
    pub(crate) const fn address(&self) -> Option<&Address> {
        match self {
            Self::Socket(socket) => Some(&socket.address),
            Self::Delivered(_) => None,
            Self::Here(_) => None,
        }
    }

    /// Returns the kind of the service.
    pub(crate) const fn backend(&self) -> Backend {
        match self {
            Self::Socket(_) | Self::Delivered(_) => Backend::System,
            Self::Here(_) => Backend::in_process(),
        }
    }

    /// Returns the service in this process.
    #[cfg(feature = "in-process")]
    pub(crate) fn here() -> Self {
        Self::Here(super::in_process::start)
    }

    /// Returns whether both are the same service.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Socket(one), Self::Socket(other)) => one.address == other.address,
            (Self::Delivered(one), Self::Delivered(other)) => one.is(other),
            (Self::Here(_), Self::Here(_)) => true,
            _ => false,
        }
    }
}
