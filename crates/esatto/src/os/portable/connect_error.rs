//! Why there is no connection to another process: there are none on this system.

use crate::error::Error;
use crate::os::TransportError;

/// What a consumer is told that cannot connect.
pub(crate) fn consumer_error(error: &TransportError) -> Error {
    Error::disconnected(&error.to_string())
}

/// A producer without a service waits for it.
pub(crate) const fn producer_failed(_: &TransportError) {}
