//! [`Lockdown`]: the mode in which the service serves only producers of the user that it runs as.

use crate::api::Peer;

/// Lockdown mode. The config of a session switches it on and off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lockdown {
    pub(crate) is_on: bool,
}

impl Lockdown {
    /// Returns true if the mode keeps this producer out of a service that runs as `own_uid`.
    pub(crate) const fn locks_out(self, producer: &Peer, own_uid: i32) -> bool {
        self.is_on && producer.uid != own_uid
    }
}
