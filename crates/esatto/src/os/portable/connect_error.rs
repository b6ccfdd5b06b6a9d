//! Errors of connections to other processes, on systems without them.

use crate::error::Error;
use crate::os::TransportError;

/// Makes the error for a consumer that cannot connect.
pub(crate) fn consumer_error(error: &TransportError) -> Error {
    Error::disconnected(&error.to_string())
}

/// Does nothing: a producer without a service waits for it.
pub(crate) const fn producer_failed(_: &TransportError) -> bool {
    false
}
