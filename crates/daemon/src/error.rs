//! Errors of the daemon and the relay.

use std::io;

use esatto_ipc::Address;
use thiserror::Error;

use crate::shared_secret::SecretError;

/// A failure of the daemon itself. Mistakes of a peer only close the connection of that peer.
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
        /// The descriptor or the variable.
        what: String,
        /// The reason.
        reason: String,
    },
    /// A relay endpoint is configured on an address that is no producer address.
    #[error("{0} is not among the producer addresses, so it cannot be a relay endpoint")]
    NoSuchProducerAddress(Address),
    /// A relay would forward to itself.
    #[error("a relay that listens on {0} cannot forward to it")]
    RelayToItself(Address),
    /// The file of a shared secret cannot be used.
    #[error("cannot use the secret in {path}: {source}")]
    Secret {
        /// The file.
        path: String,
        /// The reason.
        source: SecretError,
    },
    /// Group or mode of a socket file could not be changed.
    #[error("cannot set group and mode of {path}: {source}")]
    Permissions {
        /// The socket file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// The file for metrics could not be written.
    #[error("cannot write the metrics file {path}: {source}")]
    MetricsFile {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// The operating system refused something that the event loop needs.
    #[error("cannot {action}: {source}")]
    System {
        /// The attempted action.
        action: &'static str,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    /// Returns a function for `map_err` that names the attempted action.
    pub(crate) fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { action, source: source.into() }
    }
}
