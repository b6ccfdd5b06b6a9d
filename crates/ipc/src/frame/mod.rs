//! Frames: what the bytes on a socket mean (`docs/spec/wire-protocol.md §2`, §3).
//!
//! ```text
//! +----------------+----------------------+
//! | length: u32 LE | IPCFrame, protobuf   |   repeated, both directions
//! +----------------+----------------------+
//! ```
//!
//! [`FrameDecoder`] cuts a stream of bytes into [`Frame`]s that borrow its buffer: the arguments of a call are a slice of
//! what was received, nothing is copied. The functions of [`encode`] append whole frames to a `Vec`.

mod decoder;
pub mod encode;
mod parse;

pub use self::decoder::FrameDecoder;
#[doc(hidden)]
pub use self::decoder::fuzz_decode;
pub use self::parse::Methods;
pub use crate::frame_size::{HEADER_LEN, MAX_FRAME, MAX_PAYLOAD};

/// A decoded frame, borrowing the bytes it was decoded from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame<'a> {
    /// Chosen by the client, echoed by the service; 0 if absent.
    pub request_id: u64,
    /// What the frame says.
    pub body: FrameBody<'a>,
}

/// The content of a [`Frame`]: the last member of the oneof `msg` that is present.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FrameBody<'a> {
    /// → service: asks for a port and its methods.
    BindService {
        /// `ProducerPort`, `ConsumerPort`, `RelayPort`.
        service_name: &'a [u8],
    },
    /// → client.
    BindServiceReply {
        /// False if the socket has no such service; then nothing else is set.
        success: bool,
        /// To be used in calls.
        service_id: u32,
        /// Ids and names of all methods.
        methods: Methods<'a>,
    },
    /// → service: a call.
    InvokeMethod {
        /// From the reply to BindService.
        service_id: u32,
        /// From the method list of that reply.
        method_id: u32,
        /// The encoded request message.
        args: &'a [u8],
        /// The client does not want a reply.
        drop_reply: bool,
    },
    /// → client: (part of) the answer to a call.
    InvokeMethodReply {
        /// False if the call was rejected or failed.
        success: bool,
        /// Further replies to the same request will follow.
        has_more: bool,
        /// The encoded reply message.
        body: &'a [u8],
    },
    /// → client: the request was not understood.
    RequestError {
        /// Human-readable.
        error: &'a [u8],
    },
    /// → service: on whose behalf a relay forwards.
    SetPeerIdentity(PeerIdentity<'a>),
    /// None of the above; a newer peer.
    Unknown,
}

/// The claim of a relay about the process it forwards for. Believed only on sockets that have no credentials of their own.
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
    /// The arguments and the body of calls are not looked into.
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        parse::frame(payload)
    }

    /// The word for the kind of frame that hooks and logs use, in the spelling of the field.
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
