//! A connection to another process, where the system supports none: a type without values.

use core::marker::PhantomData;

use super::TransportEvent;
use super::rpc::Call;
use crate::connection::transport::SocketPlace;
use crate::os::{Address, Interest, OwnedFd, TransportError};

/// A connection.
#[derive(Debug)]
pub(crate) struct SocketTransport<T> {
    never: Address,
    tag: PhantomData<T>,
}

impl<T> SocketTransport<T> {
    pub(crate) const fn may_adopt() -> Result<(), TransportError> {
        Ok(())
    }

    pub(crate) fn adopt(_: OwnedFd, _: &str) -> Result<Self, TransportError> {
        Err(TransportError::Disconnected)
    }

    pub(crate) const fn connect(socket: &SocketPlace, _: &str) -> Result<Self, TransportError> {
        match socket.address {}
    }

    pub(crate) fn invoke(&mut self, _: Call<T>) -> Result<Option<T>, TransportError> {
        match self.never {}
    }

    pub(crate) const fn flush(&mut self) -> Result<(), TransportError> {
        match self.never {}
    }

    pub(crate) const fn is_congested(&self) -> bool {
        match self.never {}
    }

    pub(crate) fn pump(&mut self, _: impl FnMut(TransportEvent<'_, T>)) -> Result<bool, TransportError> {
        match self.never {}
    }

    pub(crate) const fn interest(&self) -> Interest<'_> {
        match self.never {}
    }
}
