//! [`Protocol`] and [`Method`]: descriptions that generated bindings contain.

use esatto_ipc::service;

use crate::body::Body;
use crate::header::Strictness;

/// Protocol as a type. Generated bindings have one such type for each.
pub trait Protocol: Send + Sync + 'static {
    /// Full name: `fuchsia.io/Directory`.
    const NAME: &'static str;
    /// Name by which clients find a server, if it has any.
    const DISCOVERABLE: Option<&'static str>;
    /// Messages that the receiver may not know.
    const OPENNESS: Openness;
}

/// Messages that the receiver of a protocol may not know, if the sender declares them flexible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Openness {
    /// None.
    Closed,
    /// One-way methods and events.
    Ajar,
    /// All.
    Open,
}

/// Method or event as a type. Generated bindings have one such type for each.
pub trait Method: 'static {
    /// Body of the request, or of the event.
    type Request: Body;
    /// Body of the response; [`Empty`](crate::body::Empty) if there is none.
    type Response: Body;
    /// Its facts.
    const INFO: &'static MethodInfo;
}

/// Facts of a method or an event.
#[derive(Debug)]
pub struct MethodInfo {
    /// Number on the wire.
    pub ordinal: u64,
    /// Says if the receiver must know it.
    pub strictness: Strictness,
    /// Says who sends it, and if there is a response.
    pub kind: MethodKind,
    /// Name and category, for hooks.
    pub traced: service::Method,
}

/// Sender of a message, and if there is a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// The client, without a response.
    OneWay,
    /// The client, with a response.
    TwoWay,
    /// The server.
    Event,
}

impl MethodInfo {
    /// Describes a method or an event. `full_name` is `Protocol.Method`.
    #[must_use]
    pub const fn new(
        name: &'static str,
        full_name: &'static str,
        ordinal: u64,
        strictness: Strictness,
        kind: MethodKind,
        trace: Option<&'static service::TraceSite>,
    ) -> Self {
        let replies = match kind {
            MethodKind::TwoWay => service::Kind::Unary,
            MethodKind::OneWay | MethodKind::Event => service::Kind::OneWay,
        };
        Self { ordinal, strictness, kind, traced: service::Method { name, full_name, kind: replies, trace } }
    }
}
