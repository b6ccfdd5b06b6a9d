//! Connections of the relay to the service.

use esatto_ipc::{Address, ConnectAttempt, Error as IpcError};

use crate::closers::Closers;

/// Begins to connect to the service. A service on this machine could also pass descriptors whose
/// `close` blocks.
pub(super) fn begin_to_connect(service: &Address, closers: &Closers) -> Result<ConnectAttempt, IpcError> {
    let mut connecting = ConnectAttempt::begin(service)?;
    if let Some(disposal) = closers.disposal(&connecting.peer()) {
        connecting.set_disposal(disposal);
    }
    Ok(connecting)
}
