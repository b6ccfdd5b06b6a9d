//! The three services of the tracing protocol as sockets expose them (`docs/spec/wire-protocol.md §8`, §12, §16).
//!
//! Made from the generated method lists at compile time.

use esatto_schema::{consumer_port, producer_port, relay_port};

use crate::host::Port;

/// Names of all methods, in the order of their ids.
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

/// What producers talk to; first on every producer socket.
pub const PRODUCER_PORT: Port = port!(producer_port);

/// What consumers talk to; alone on the consumer socket.
pub const CONSUMER_PORT: Port = port!(consumer_port);

/// What relays talk to; second on producer sockets for which it is enabled.
pub const RELAY_PORT: Port = port!(relay_port);
