//! Roles of the sockets, and the ports that each offers.

use std::sync::Arc;

use esatto_ipc::Port;
use esatto_ipc::ports::{CONSUMER_PORT, PRODUCER_PORT, RELAY_PORT};

/// Kind of client that connects to a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Producer,
    Consumer,
}

impl Role {
    /// Returns the ports of its sockets.
    pub(crate) fn ports(self, serves_relays: bool) -> Arc<[Port]> {
        match self {
            Self::Producer if serves_relays => Arc::new([PRODUCER_PORT, RELAY_PORT]),
            Self::Producer => Arc::new([PRODUCER_PORT]),
            Self::Consumer => Arc::new([CONSUMER_PORT]),
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
