//! The three services of the tracing protocol, as lists of method names (`docs/spec/wire-protocol.md §8`, §12, §16).
//!
//! The position in the list is the id of the method, so names are only ever appended.

use crate::host::Port;

/// What producers talk to; first on every producer socket.
pub const PRODUCER_PORT: Port = Port {
    name: "ProducerPort",
    methods: &[
        "InitializeConnection",
        "RegisterDataSource",
        "UnregisterDataSource",
        "CommitData",
        "GetAsyncCommand",
        "RegisterTraceWriter",
        "UnregisterTraceWriter",
        "NotifyDataSourceStarted",
        "NotifyDataSourceStopped",
        "ActivateTriggers",
        "Sync",
        "UpdateDataSource",
    ],
};

/// What consumers talk to; alone on the consumer socket.
pub const CONSUMER_PORT: Port = Port {
    name: "ConsumerPort",
    methods: &[
        "EnableTracing",
        "DisableTracing",
        "ReadBuffers",
        "FreeBuffers",
        "Flush",
        "StartTracing",
        "ChangeTraceConfig",
        "Detach",
        "Attach",
        "GetTraceStats",
        "ObserveEvents",
        "QueryServiceState",
        "QueryCapabilities",
        "SaveTraceForBugreport",
        "CloneSession",
    ],
};

/// What relays talk to; second on producer sockets for which it is enabled.
pub const RELAY_PORT: Port = Port { name: "RelayPort", methods: &["InitRelay", "SyncClock"] };
