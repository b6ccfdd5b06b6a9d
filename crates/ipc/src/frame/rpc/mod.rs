//! [`RpcFrame`]: a frame with the extensions of Esatto's RPC library (`docs/spec/wire-protocol.md`
//! §23).
//!
//! Peers that do not know the extensions skip them. [`Frame`](crate::Frame) leaves them out.

pub mod encode;
mod parse;

use core::ops::{BitAnd, BitOr};

use crate::frame::{Methods, PeerIdentity};

/// Decoded frame, which borrows the received bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RpcFrame<'a> {
    /// Id that the client chose and the service repeats; 0 if absent.
    pub request_id: u64,
    /// Content of the frame.
    pub body: RpcBody<'a>,
    /// Random number of the connection, for flows between the two sides; 0 if absent.
    pub trace_seed: u64,
    /// Extensions that the sender knows. Only the frames of a bind have them.
    pub features: Features,
    /// Exactly this frame carries a descriptor.
    pub has_fd: bool,
}

/// Content of an [`RpcFrame`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RpcBody<'a> {
    /// To the service: asks for a service and its methods.
    BindService {
        /// Name of the service.
        service_name: &'a [u8],
    },
    /// To the client: answers BindService.
    BindServiceReply {
        /// False if the socket has no such service.
        success: bool,
        /// Id of the service for calls.
        service_id: u32,
        /// Ids and names of all methods.
        methods: Methods<'a>,
    },
    /// To the service: a call.
    InvokeMethod(InvokeMethod<'a>),
    /// To the client: an answer to a call, or a part of it.
    InvokeMethodReply {
        /// False if the call was rejected or failed.
        success: bool,
        /// True if further replies to the same request will follow.
        has_more: bool,
        /// The encoded reply message; `None` at the end of a stream without a last message.
        body: Option<&'a [u8]>,
        /// Reason of a failure.
        status: Option<WireStatus<'a>>,
    },
    /// To the client: the service did not understand the request.
    RequestError {
        /// Text for people.
        error: &'a [u8],
    },
    /// To the service: the process for which a relay forwards.
    SetPeerIdentity(PeerIdentity<'a>),
    /// To the service: the client does not wait for this call any more.
    Cancel,
    /// To the service: the client has room for more replies of a stream.
    Credit {
        /// Bytes of additional room.
        bytes: u32,
    },
    /// Another member, of a newer peer.
    Unknown,
}

/// Call in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct InvokeMethod<'a> {
    /// Id from the reply to BindService.
    pub service_id: u32,
    /// Id from the method list of that reply.
    pub method_id: u32,
    /// The encoded request message.
    pub args: &'a [u8],
    /// True if the client wants no reply.
    pub drop_reply: bool,
    /// Time that the client waits for the end of the call, in microseconds; 0 is no limit.
    pub timeout_us: u64,
    /// Bytes of replies that the service may send before it gets credit; `None` is no limit.
    pub window: Option<u32>,
}

/// Status in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WireStatus<'a> {
    /// Number of a [`Code`](crate::Code).
    pub code: i32,
    /// Text for people, not necessarily UTF-8.
    pub text: &'a [u8],
    /// Bytes for programs.
    pub details: &'a [u8],
}

/// Set of extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Features(pub u32);

impl Features {
    /// Replies that failed have a status.
    pub const STATUS: Self = Self(1);
    /// Calls have a timeout.
    pub const DEADLINE: Self = Self(2);
    /// Calls can be cancelled.
    pub const CANCEL: Self = Self(4);
    /// Streams have a window, and get credit.
    pub const CREDIT: Self = Self(8);
    /// Frames say if they carry a descriptor.
    pub const DESCRIPTORS: Self = Self(16);
    /// All that this library knows.
    pub const ALL: Self = Self(31);

    /// Returns true if all of `other` are in the set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitAnd for Features {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Features {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Field numbers of the extensions.
mod field {
    /// In IPCFrame.
    pub(super) const TRACE_SEED: u32 = 4001;
    pub(super) const FEATURES: u32 = 4002;
    pub(super) const CANCEL: u32 = 4003;
    pub(super) const CREDIT: u32 = 4004;
    pub(super) const HAS_FD: u32 = 4005;
    /// In InvokeMethod.
    pub(super) const TIMEOUT_US: u32 = 4001;
    pub(super) const WINDOW: u32 = 4002;
    /// In InvokeMethodReply.
    pub(super) const STATUS: u32 = 4001;
}

impl<'a> RpcFrame<'a> {
    /// Decodes the payload of one frame, without its header; `None` if it is not a valid IPCFrame.
    ///
    /// The arguments and the bodies of calls are not parsed.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        parse::frame(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FrameBody, FrameDecoder};

    /// Decodes one frame with both parsers.
    fn both(bytes: &[u8]) -> (RpcFrame<'_>, FrameBody<'_>) {
        let payload = &bytes[4..];
        assert_eq!(u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize, payload.len());
        (RpcFrame::parse(payload).unwrap(), crate::Frame::parse(payload).unwrap().body)
    }

    #[test]
    fn frames_survive_encoding_and_old_parsers_skip_the_extensions() {
        let mut out = Vec::new();
        encode::bind_service(&mut out, 1, "Store", Features::ALL, 7).unwrap();
        let (frame, old) = both(&out);
        assert_eq!((frame.request_id, frame.trace_seed, frame.features), (1, 7, Features::ALL));
        assert_eq!(frame.body, RpcBody::BindService { service_name: b"Store" });
        assert_eq!(old, FrameBody::BindService { service_name: b"Store" });

        out.clear();
        let call = InvokeMethod {
            service_id: 1,
            method_id: 2,
            args: b"args",
            drop_reply: false,
            timeout_us: u64::MAX,
            window: Some(0),
        };
        encode::invoke_method(&mut out, 300, &call, true).unwrap();
        let (frame, old) = both(&out);
        assert_eq!((frame.body, frame.has_fd), (RpcBody::InvokeMethod(call), true));
        assert_eq!(old, FrameBody::InvokeMethod { service_id: 1, method_id: 2, args: b"args", drop_reply: false });

        out.clear();
        let status = WireStatus { code: 5, text: b"no such key", details: b"\xff" };
        encode::reply_status(&mut out, 9, &status);
        let (frame, old) = both(&out);
        let body = RpcBody::InvokeMethodReply { success: false, has_more: false, body: None, status: Some(status) };
        assert_eq!(frame.body, body);
        assert_eq!(old, FrameBody::InvokeMethodReply { success: false, has_more: false, body: b"" });

        out.clear();
        encode::cancel(&mut out, 10);
        assert_eq!(
            both(&out),
            (RpcFrame { request_id: 10, body: RpcBody::Cancel, ..frame_of(10) }, FrameBody::Unknown)
        );
        out.clear();
        encode::credit(&mut out, 11, u32::MAX);
        assert_eq!(both(&out).0.body, RpcBody::Credit { bytes: u32::MAX });
    }

    fn frame_of(request_id: u64) -> RpcFrame<'static> {
        RpcFrame { request_id, body: RpcBody::Unknown, trace_seed: 0, features: Features::default(), has_fd: false }
    }

    #[test]
    fn calls_without_extensions_have_the_bytes_of_plain_clients() {
        let (mut plain, mut ours) = (Vec::new(), Vec::new());
        crate::frame::encode::invoke_method(&mut plain, 2, 1, 3, b"abc", true).unwrap();
        let call = InvokeMethod { service_id: 1, method_id: 3, args: b"abc", drop_reply: true, ..Default::default() };
        encode::invoke_method(&mut ours, 2, &call, false).unwrap();
        assert_eq!(plain, ours);

        let (mut plain, mut ours) = (Vec::new(), Vec::new());
        crate::frame::encode::reply_ok(&mut plain, 2, b"abc", true).unwrap();
        encode::reply_ok(&mut ours, 2, b"abc", true, false).unwrap();
        assert_eq!(plain, ours);
    }

    #[test]
    fn a_status_of_any_size_fits_in_a_frame() {
        let long = vec![b'x'; 200_000];
        let mut out = Vec::new();
        encode::reply_status(&mut out, u64::MAX, &WireStatus { code: -1, text: &long, details: &long });
        let mut decoder = FrameDecoder::new();
        assert_eq!(decoder.push(&out), out.len());
        let (frame, len) = decoder.next_rpc_frame().unwrap().unwrap();
        assert_eq!(len, out.len());
        let RpcBody::InvokeMethodReply { status: Some(status), .. } = frame.body else { panic!("{frame:?}") };
        assert_eq!((status.code, status.details), (-1, &b""[..]));
        assert!(!status.text.is_empty() && long.starts_with(status.text));
    }
}
