//! The three services of the tracing protocol, as sockets expose them (`docs/spec/wire-protocol.md
//! §8`, §12, §16).
//!
//! They are made from the generated method lists at compile time.

use esatto_schema::{consumer_port, producer_port, relay_port};

use crate::host::Port;

/// Makes a port with the names of all methods, in the order of their ids.
macro_rules! port {
    ($service:ident) => {{
        const METHODS: [&str; $service::Method::ALL.len()] = {
            let mut names = [""; $service::Method::ALL.len()];
            let mut i = 0;
            while i < names.len() {
                let method = $service::Method::ALL[i];
                assert!(method.id() as usize == i + 1, "ids are positions");
                names[i] = method.name();
                i += 1;
            }
            names
        };
        Port { name: $service::SERVICE, methods: &METHODS }
    }};
}

/// Service for producers, the first on every producer socket.
pub const PRODUCER_PORT: Port = port!(producer_port);

/// Service for consumers, the only one on the consumer socket.
pub const CONSUMER_PORT: Port = port!(consumer_port);

/// Service for relays, the second on producer sockets for which it is enabled.
pub const RELAY_PORT: Port = port!(relay_port);
