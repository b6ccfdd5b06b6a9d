//! Options of a relay.

use esatto_ipc::Address;
use esatto_ipc::address::{AddressError, RELAY_SOCK_NAME};

use super::machine_identity;
use crate::error::Error;
use crate::options::default_version;
use crate::shared_secret::SharedSecret;
use crate::socket_permissions::Access;
use crate::system_facts;

/// Addresses, access rights and identity of a relay.
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// Address at which the producers of this machine connect.
    pub listen: Address,
    /// Address at which the service listens for producers, on another machine.
    pub service: Address,
    /// Group and mode of the socket file; without them the umask decides.
    pub permissions: Option<Access>,
    /// Secret that the service must prove to know, and that this relay proves to it. Without it,
    /// neither side proves anything.
    pub secret: Option<SharedSecret>,
    /// Hint from which the service makes this machine's id; it must differ between machines.
    pub machine_id_hint: Vec<u8>,
    /// Name of this machine in configs.
    pub machine_name: Vec<u8>,
    /// Text of `tracing_service_version` in the system info of this machine.
    pub version: String,
}

impl RelayOptions {
    /// Creates options with this machine's identity and the access rights of the umask.
    pub fn new(listen: Address, service: Address) -> Self {
        Self {
            listen,
            service,
            permissions: None,
            secret: None,
            machine_id_hint: machine_identity::id_hint(),
            machine_name: system_facts::machine_name().into_bytes(),
            version: default_version(),
        }
    }

    /// Creates options from the environment. Producers connect to the address of the environment or
    /// the platform; `PERFETTO_RELAY_SOCK_NAME` names the service. Returns `None` if it names none.
    ///
    /// # Errors
    ///
    /// A variable holds something that is not an address.
    pub fn from_environment() -> Result<Option<Self>, Error> {
        let Some(service) = std::env::var_os(RELAY_SOCK_NAME) else { return Ok(None) };
        match Address::parse(service) {
            Ok(service) => Ok(Some(Self::new(Address::producer_default()?, service))),
            Err(AddressError::Empty) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}
