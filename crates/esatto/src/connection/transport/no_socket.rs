//! Connections to other processes, of which there are none: types without values, where values would mean one.

use core::marker::PhantomData;

use super::LinkEvent;
use super::rpc::Call;
use crate::connection::SocketPlace;
use crate::os::{Address, Interest, LinkError, OwnedFd};

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
