//! Roles of the sockets, and the ports that each offers.

use std::sync::Arc;

use esatto_ipc::service::Service;
use esatto_ports::{consumer_port, producer_port, relay_port};

/// Services that a socket offers.
pub(crate) type Ports = Arc<[&'static Service]>;

/// Kind of client that connects to a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Producer,
    Consumer,
}

impl Role {
    /// Returns the ports of its sockets.
    pub(crate) fn ports(self, serves_relays: bool) -> Ports {
        match self {
            Self::Producer if serves_relays => Arc::new([&producer_port::SERVICE, &relay_port::SERVICE]),
            Self::Producer => Arc::new([&producer_port::SERVICE]),
            Self::Consumer => Arc::new([&consumer_port::SERVICE]),
        }
    }

    /// Returns the name for log lines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Consumer => "consumer",
        }
    }
}
