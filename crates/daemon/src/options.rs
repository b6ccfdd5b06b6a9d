//! Options of a daemon.

use esatto_ipc::address::Address;

use crate::error::Error;
use crate::shared_secret::SharedSecret;
use crate::socket_permissions::SocketPermissions;

/// Addresses, access rights and limits of a daemon.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses of the producer sockets; at least one.
    pub producers: Vec<Address>,
    /// Address of the consumer socket.
    pub consumer: Address,
    /// Group and mode of the socket files; without them the umask decides.
    pub permissions: Option<SocketPermissions>,
    /// Producer sockets to which relays of other machines may connect.
    pub relay_endpoints: RelayEndpoints,
    /// Secret that each client of a TCP or vsock socket must prove to know, as relays can. Without
    /// it, every client is admitted.
    pub secret: Option<SharedSecret>,
    /// Bytes that may be held for all clients together: for clients that do not read, or that send
    /// only parts of frames.
    ///
    /// If more is held, the daemon closes a connection. It chooses the user for whom the most is
    /// held, then that user's process for which the most is held, then its fullest connection. One
    /// user alone may have half of the bytes, except root and the user of the service.
    pub max_queued_bytes: usize,
    /// Bytes of names and descriptors of producers that disconnected while sessions ran, for
    /// QueryServiceState; 0 for none. See
    /// [`remember_departed_producers`](esatto_service::Service::remember_departed_producers).
    pub max_departed_bytes: usize,
    /// Bytes of shared memory for each producer that wishes for no size; 0 for the standard 256
    /// KiB. See [`share_by_default`](esatto_service::Service::share_by_default).
    pub shared_memory_bytes: usize,
    /// Names of data sources that no other process of this machine may offer to the service,
    /// because this one does. Registrations of others are ignored.
    pub own_data_sources: Vec<String>,
    /// Text of `tracing_service_version` in traces and in the service state.
    pub version: String,
}

/// Default of [`Options::max_queued_bytes`]. A well-behaved client needs a few hundred KiB.
const MAX_QUEUED_BYTES: usize = 256 << 20;
/// Default of [`Options::max_departed_bytes`]: enough for thousands of programs.
const MAX_DEPARTED_BYTES: usize = 4 << 20;

impl Options {
    /// Creates options with one producer socket and the access rights of the umask.
    pub fn new(producer: Address, consumer: Address) -> Self {
        Self {
            producers: vec![producer],
            consumer,
            permissions: None,
            relay_endpoints: RelayEndpoints::Off,
            secret: None,
            max_queued_bytes: MAX_QUEUED_BYTES,
            max_departed_bytes: MAX_DEPARTED_BYTES,
            shared_memory_bytes: 0,
            own_data_sources: Vec::new(),
            version: default_version(),
        }
    }

    /// Creates options with the standard addresses: those of the environment, else those of the
    /// platform.
    ///
    /// # Errors
    ///
    /// A variable holds something that is not an address.
    pub fn from_environment() -> Result<Self, Error> {
        Ok(Self {
            producers: Address::producer_defaults_for_service()?,
            consumer: Address::consumer_default()?,
            permissions: None,
            relay_endpoints: RelayEndpoints::Off,
            secret: None,
            max_queued_bytes: MAX_QUEUED_BYTES,
            max_departed_bytes: MAX_DEPARTED_BYTES,
            shared_memory_bytes: 0,
            own_data_sources: Vec::new(),
            version: default_version(),
        })
    }
}

/// Producer sockets that also offer the relay port (`docs/spec/wire-protocol.md` §16).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RelayEndpoints {
    /// No socket.
    #[default]
    Off,
    /// All sockets.
    All,
    /// These addresses, each of which must be among [`Options::producers`].
    On(Vec<Address>),
}

impl RelayEndpoints {
    /// Adds an address, unless all are meant already.
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

    /// Returns the first relay endpoint that is not among the producer addresses.
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
