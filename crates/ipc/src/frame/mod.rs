//! Frames: the units of the bytes on a socket (`docs/spec/wire-protocol.md §2`, §3).
//!
//! ```text
//! +----------------+----------------------+
//! | length: u32 LE | IPCFrame, protobuf   |   repeated, both directions
//! +----------------+----------------------+
//! ```
//!
//! [`FrameDecoder`] cuts a stream of bytes into [`Frame`]s that borrow its buffer. The arguments of
//! a call are a slice of the received bytes, without a copy. The functions of [`encode`] append
//! whole frames to a `Vec`.

mod decoder;
pub mod encode;
mod parse;
#[cfg(feature = "rpc")]
pub mod rpc;

pub use self::decoder::FrameDecoder;
pub use self::parse::Methods;
pub use crate::frame_size::{HEADER_LEN, MAX_FRAME, MAX_PAYLOAD};

/// Decoded frame, which borrows the received bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame<'a> {
    /// Id that the client chose and the service repeats; 0 if absent.
    pub request_id: u64,
    /// Content of the frame.
    pub body: FrameBody<'a>,
}

/// Content of a [`Frame`]: the last member of the oneof `msg` that is present.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FrameBody<'a> {
    /// To the service: asks for a port and its methods.
    BindService {
        /// Name of the port: `ProducerPort`, `ConsumerPort`, `RelayPort`.
        service_name: &'a [u8],
    },
    /// To the client: answers BindService.
    BindServiceReply {
        /// False if the socket has no such service. Nothing else is set then.
        success: bool,
        /// Id of the service for calls.
        service_id: u32,
        /// Ids and names of all methods.
        methods: Methods<'a>,
    },
    /// To the service: a call.
    InvokeMethod {
        /// Id from the reply to BindService.
        service_id: u32,
        /// Id from the method list of that reply.
        method_id: u32,
        /// The encoded request message.
        args: &'a [u8],
        /// True if the client wants no reply.
        drop_reply: bool,
    },
    /// To the client: an answer to a call, or a part of it.
    InvokeMethodReply {
        /// False if the call was rejected or failed.
        success: bool,
        /// True if further replies to the same request will follow.
        has_more: bool,
        /// The encoded reply message.
        body: &'a [u8],
    },
    /// To the client: the service did not understand the request.
    RequestError {
        /// Text for people.
        error: &'a [u8],
    },
    /// To the service: the process for which a relay forwards.
    SetPeerIdentity(PeerIdentity<'a>),
    /// Another member, of a newer peer.
    Unknown,
}

/// Claim of a relay about the process for which it forwards. It is accepted only on sockets without
/// credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PeerIdentity<'a> {
    /// Process id on its machine.
    pub pid: Option<i32>,
    /// User id on its machine.
    pub uid: Option<i32>,
    /// Text that is the same for all processes of one machine.
    pub machine_id_hint: &'a [u8],
    /// Name of the machine.
    pub machine_name: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Decodes the payload of one frame, without its header; `None` if it is not a valid IPCFrame.
    ///
    /// The arguments and the bodies of calls are not parsed.
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        parse::frame(payload)
    }

    /// Returns the name of the kind of frame for hooks and logs, spelled as the field.
    pub fn kind(&self) -> &'static str {
        match self.body {
            FrameBody::BindService { .. } => "bind_service",
            FrameBody::BindServiceReply { .. } => "bind_service_reply",
            FrameBody::InvokeMethod { .. } => "invoke_method",
            FrameBody::InvokeMethodReply { .. } => "invoke_method_reply",
            FrameBody::RequestError { .. } => "request_error",
            FrameBody::SetPeerIdentity(_) => "set_peer_identity",
            FrameBody::Unknown => "unknown",
        }
    }
}
