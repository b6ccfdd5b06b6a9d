//! Connections of the relay to the service.

use esatto_ipc::{Address, Connecting, Error as IpcError};

use crate::closers::Closers;

/// Begins to connect to the service. On this machine it, too, could pass descriptors whose `close`
/// blocks.
pub(super) fn begin_to_connect(service: &Address, closers: &Closers) -> Result<Connecting, IpcError> {
    let mut connecting = Connecting::begin(service)?;
    if let Some(disposal) = closers.disposal(&connecting.peer()) {
        connecting.set_disposal(disposal);
    }
    Ok(connecting)
}
