//! Connections to other processes, of which there are none: types without values, where values would mean one.

use core::fmt;
use core::marker::PhantomData;

use super::{Interest, OwnedFd};
use crate::control::{Call, LinkEvent, SocketPlace};

/// The address of a service in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {}

/// Why there is no [`Address`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressError;

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("on this system there are only services inside of programs")
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

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkError {
    Disconnected,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is over")
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct SocketLink<T> {
    never: Address,
    tag: PhantomData<T>,
}

impl<T> SocketLink<T> {
    pub(crate) const fn may_adopt() -> Result<(), LinkError> {
        Ok(())
    }

    pub(crate) fn adopt(_: OwnedFd, _: &str) -> Result<Self, LinkError> {
        Err(LinkError::Disconnected)
    }

    pub(crate) const fn connect(socket: &SocketPlace, _: &str) -> Result<Self, LinkError> {
        match socket.address {}
    }

    pub(crate) fn invoke(&mut self, _: Call<T>) -> Result<Option<T>, LinkError> {
        match self.never {}
    }

    pub(crate) const fn flush(&mut self) -> Result<(), LinkError> {
        match self.never {}
    }

    pub(crate) const fn is_congested(&self) -> bool {
        match self.never {}
    }

    pub(crate) fn pump(&mut self, _: impl FnMut(LinkEvent<'_, T>)) -> Result<bool, LinkError> {
        match self.never {}
    }

    pub(crate) const fn interest(&self) -> Interest<'_> {
        match self.never {}
    }
}
