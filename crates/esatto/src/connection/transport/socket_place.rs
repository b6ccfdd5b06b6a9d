//! Addresses of a service's sockets.

use crate::error::Error;
use crate::os::{Address, PRODUCER_SOCK_NAME};

/// The address of a socket, and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct SocketPlace {
    pub(crate) address: Address,
    /// The program or its user has named the address, and so trusts the program that listens there.
    pub(crate) is_named: bool,
}

impl SocketPlace {
    /// Makes a place from an address that the program or its user has named.
    pub(crate) const fn named(address: Address) -> Self {
        Self { address, is_named: true }
    }

    /// Returns the socket for producers of the system's service, or the one that the program names.
    pub(crate) fn of_producers(address: Option<&str>) -> Result<Self, Error> {
        match address {
            Some(text) => Address::parse(text).map(Self::named),
            None => Address::producer_default().map(|address| Self::standard(address, PRODUCER_SOCK_NAME)),
        }
        .map_err(Error::address)
    }

    /// Makes a place from the standard address, unless the variable names another one.
    pub(crate) fn standard(address: Address, variable: &str) -> Self {
        Self { address, is_named: std::env::var_os(variable).is_some() }
    }
}
