//! The services that the sockets expose.

use std::sync::{Arc, LazyLock};

use esatto_ipc::Port;
use esatto_schema::{consumer_port, producer_port};

/// Who connects to a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Producer,
    Consumer,
}

impl Role {
    /// The ports of its sockets.
    pub(crate) fn ports(self) -> Arc<[Port]> {
        static PRODUCER: LazyLock<Vec<&str>> =
            LazyLock::new(|| producer_port::Method::ALL.iter().map(|method| method.name()).collect());
        static CONSUMER: LazyLock<Vec<&str>> =
            LazyLock::new(|| consumer_port::Method::ALL.iter().map(|method| method.name()).collect());
        match self {
            Self::Producer => Arc::new([Port { name: producer_port::SERVICE, methods: &PRODUCER }]),
            Self::Consumer => Arc::new([Port { name: consumer_port::SERVICE, methods: &CONSUMER }]),
        }
    }

    /// For log lines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Consumer => "consumer",
        }
    }
}
