//! Addresses of services in other processes, on systems without them: types without values.

use core::fmt;

/// No variable names the socket for producers, because there is none.
pub(crate) const PRODUCER_SOCK_NAME: &str = "";
/// No variable names the socket for sessions, because there is none.
pub(crate) const CONSUMER_SOCK_NAME: &str = "";

/// The address of a service in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {}

/// The reason why there is no [`Address`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressError;

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("on this system services exist only inside programs")
    }
}

impl std::error::Error for AddressError {}

impl Address {
    pub(crate) const fn parse(_: &str) -> Result<Self, AddressError> {
        Err(AddressError)
    }

    pub(crate) const fn producer_default() -> Result<Self, AddressError> {
        Err(AddressError)
    }

    pub(crate) const fn consumer_default() -> Result<Self, AddressError> {
        Err(AddressError)
    }
}

/// The reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportError {
    Disconnected,
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is over")
    }
}
