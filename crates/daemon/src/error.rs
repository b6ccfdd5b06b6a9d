//! Why a daemon cannot start or go on.

use std::io;

use esatto_ipc::Address;
use thiserror::Error;

/// A failure of the daemon itself. What a peer does wrong only closes that peer's connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A socket could not be made; the message names its address.
    #[error(transparent)]
    Socket(#[from] esatto_ipc::Error),
    /// An address could not be understood.
    #[error(transparent)]
    Address(#[from] esatto_ipc::address::AddressError),
    /// There is no producer address.
    #[error("a service needs at least one producer address")]
    NoProducerAddress,
    /// A socket that a service manager announced cannot be used.
    #[error("cannot use {what} of the service manager: {reason}")]
    Inherited {
        /// Which one, or which variable.
        what: String,
        /// Why.
        reason: String,
    },
    /// A relay endpoint is wanted where no producer can connect.
    #[error("{0} is not among the producer addresses, so it cannot be a relay endpoint")]
    NoSuchProducerAddress(Address),
    /// A relay would forward to itself.
    #[error("a relay that listens on {0} cannot forward to it")]
    RelayToItself(Address),
    /// Group or mode of a socket file could not be changed.
    #[error("cannot set group and mode of {path}: {source}")]
    Permissions {
        /// The socket file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The operating system refused something the event loop needs.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: names what was tried.
    pub(crate) fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { action, source: source.into() }
    }
}
