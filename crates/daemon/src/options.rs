//! What a daemon is started with.

use esatto_ipc::address::Address;

use crate::error::Error;
use crate::socket_permissions::SocketPermissions;

/// Addresses and access rights of a daemon.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where producers connect; at least one.
    pub producers: Vec<Address>,
    /// Where consumers connect.
    pub consumer: Address,
    /// Group and mode of the socket files; without them the umask decides.
    pub permissions: Option<SocketPermissions>,
    /// Which producer sockets relays of other machines may connect to.
    pub relay_endpoints: RelayEndpoints,
    /// Bytes that may be held for all clients together, because they do not read, or send only
    /// parts of frames. If it becomes more, then of the user for whom most is held, the process for
    /// which most is held loses its fullest connection. A user alone may have half of it, except
    /// root and the user of the service.
    pub max_queued_bytes: usize,
    /// Text for `tracing_service_version` in traces and in the service state.
    pub version: String,
}

/// One client that is served as it should be has a few hundred KiB.
const MAX_QUEUED_BYTES: usize = 256 << 20;

impl Options {
    /// A daemon with one producer socket and the umask's access rights.
    pub fn new(producer: Address, consumer: Address) -> Self {
        Self {
            producers: vec![producer],
            consumer,
            permissions: None,
            relay_endpoints: RelayEndpoints::Off,
            max_queued_bytes: MAX_QUEUED_BYTES,
            version: default_version(),
        }
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
            relay_endpoints: RelayEndpoints::Off,
            max_queued_bytes: MAX_QUEUED_BYTES,
            version: default_version(),
        })
    }
}

/// Producer sockets that offer the relay port, too (`docs/spec/wire-protocol.md` §16).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RelayEndpoints {
    /// None.
    #[default]
    Off,
    /// All.
    All,
    /// These, each of which must be among [`Options::producers`].
    On(Vec<Address>),
}

impl RelayEndpoints {
    /// One more, unless all are meant already.
    pub(crate) fn add(&mut self, address: Address) {
        match self {
            Self::Off => *self = Self::On(vec![address]),
            Self::All => {}
            Self::On(addresses) => addresses.push(address),
        }
    }

    pub(crate) fn contains(&self, address: &Address) -> bool {
        match self {
            Self::Off => false,
            Self::All => true,
            Self::On(addresses) => addresses.contains(address),
        }
    }

    /// The first address that is none of these.
    pub(crate) fn stranger_among(&self, producers: &[&Address]) -> Option<&Address> {
        match self {
            Self::Off | Self::All => None,
            Self::On(addresses) => addresses.iter().find(|address| !producers.contains(address)),
        }
    }
}

pub(crate) fn default_version() -> String {
    concat!("Esatto v", env!("CARGO_PKG_VERSION")).to_owned()
}
