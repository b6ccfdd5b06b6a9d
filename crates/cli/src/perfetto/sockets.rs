//! Sockets of the service that a run uses.

use esatto_ipc::Address;

use super::outcome::{Outcome, failed};
use crate::service_connection;

/// Addresses of a service.
#[derive(Clone, Debug)]
pub(crate) struct Sockets {
    pub(crate) consumer: Address,
    pub(crate) producer: Address,
}

impl Sockets {
    /// Those that the environment or the platform names.
    pub(crate) fn of_environment() -> Result<Self, Outcome> {
        let consumer = service_connection::address().map_err(failed)?;
        let producer = Address::producer_default().map_err(failed)?;
        Ok(Self { consumer, producer })
    }
}
