//! What a daemon is started with.

use esatto_ipc::address::Address;

use crate::error::Error;
use crate::permissions::SocketPermissions;

/// Addresses and access rights of a daemon.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where producers connect; at least one.
    pub producers: Vec<Address>,
    /// Where consumers connect.
    pub consumer: Address,
    /// Group and mode of the socket files; without them the umask decides.
    pub permissions: Option<SocketPermissions>,
    /// Text for `tracing_service_version` in traces and in the service state.
    pub version: String,
}

impl Options {
    /// A daemon with one producer socket and the umask's access rights.
    pub fn new(producer: Address, consumer: Address) -> Self {
        Self { producers: vec![producer], consumer, permissions: None, version: default_version() }
    }

    /// The standard addresses: those of the environment, else the platform's.
    ///
    /// # Errors
    ///
    /// If a variable holds something that is not an address.
    pub fn from_environment() -> Result<Self, Error> {
        Ok(Self {
            producers: Address::producer_defaults_for_service()?,
            consumer: Address::consumer_default()?,
            permissions: None,
            version: default_version(),
        })
    }
}

fn default_version() -> String {
    concat!("Esatto v", env!("CARGO_PKG_VERSION")).to_owned()
}
