//! Numbers by which the service and its owner name clients, calls, timers and files.

/// A connection of a producer, a consumer or a relay. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// A call of a client. The service does not interpret its number (the request id of the socket, a
/// counter, …).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    /// The caller.
    pub client: ClientId,
    /// The number that the reply repeats.
    pub request: u64,
}

/// A timer that the service asked for. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerId(pub u64);

/// A trace file of a session. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);
