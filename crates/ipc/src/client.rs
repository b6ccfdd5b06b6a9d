//! [`Client`]: the calling side of the RPC layer, without I/O (`docs/spec/wire-protocol.md §4`).
//!
//! A [`Client`] numbers requests, knows the method list of its service, and matches arriving frames
//! with requests. Bytes go to a `Vec` of the caller. Frames come from a
//! [`FrameDecoder`](crate::FrameDecoder).
//!
//! ```
//! use esatto_ipc::{Client, ClientEvent, FrameDecoder};
//!
//! let mut client = Client::new();
//! let mut out = Vec::new();
//! client.bind("ProducerPort", &mut out)?;
//! // … send `out`, and decode the received bytes:
//! let mut decoder = FrameDecoder::new();
//! decoder.push(b"\x0f\0\0\0\x10\x01\x22\x0b\x08\x01\x10\x01\x1a\x05\x08\x07\x12\x01S");
//! let frame = decoder.next_frame()?.unwrap();
//! assert_eq!(client.handle(&frame), Some(ClientEvent::Bound));
//! assert!(client.invoke("S", &[], false, &mut out)?.is_some());
//! // If the service lacks a method, the call is rejected here, and nothing is sent.
//! assert_eq!(client.invoke("T", &[], false, &mut out)?, None);
//! # Ok::<(), esatto_ipc::Error>(())
//! ```

use esatto_map::Map;
use esatto_protozero::Owned as _;
use esatto_protozero::service::{Kind, Rpc, method_of};

use crate::error::Error;
use crate::frame::{Frame, FrameBody, encode};

/// Number of a request on its connection: 1, 2, 3, …, one series for binds and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// Meaning of a frame for a [`Client`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent<'a> {
    /// The service exists, and its methods are known now.
    Bound,
    /// The socket has no such service. Treat this like a failed connection.
    BindFailed,
    /// One reply to a call.
    Reply {
        /// Id of the call.
        request_id: RequestId,
        /// Name of the method.
        method: &'static str,
        /// False if the call was rejected. There is no body then.
        success: bool,
        /// True if further replies will come.
        has_more: bool,
        /// The encoded reply message.
        body: &'a [u8],
    },
    /// The service did not understand the request. There will be no reply.
    RequestError {
        /// Id of the call.
        request_id: RequestId,
        /// Name of the method.
        method: &'static str,
        /// Text of the service, not necessarily UTF-8.
        error: &'a [u8],
    },
}

/// Client of one service on one connection.
#[derive(Debug, Default)]
pub struct Client {
    last_request: u64,
    binding: Option<u64>,
    bound: Option<Bound>,
    /// Calls for which a reply is expected.
    pending: Map<u64, &'static str>,
}

/// Service of the peer, as it described itself.
#[derive(Debug)]
struct Bound {
    service_id: u32,
    /// Names as they were sent. Their number is bounded by the size of a frame.
    methods: Vec<(Vec<u8>, u32)>,
}

impl Client {
    /// Makes a client of a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for a service and its methods. Calls are possible after [`ClientEvent::Bound`].
    ///
    /// # Errors
    ///
    /// [`Error::MessageTooLarge`] for a name of more than 100 KB.
    pub fn bind(&mut self, service_name: &str, out: &mut Vec<u8>) -> Result<RequestId, Error> {
        let id = self.last_request + 1;
        encode::bind_service(out, id, service_name)?;
        self.last_request = id;
        self.binding = Some(id);
        Ok(RequestId(id))
    }

    /// Calls a method, and appends the frame to `out`.
    ///
    /// `Ok(None)` means that the service has no method of this name, or is not bound yet. Nothing
    /// was written, and the call counts as rejected. With `drop_reply` no reply will be reported.
    ///
    /// # Errors
    ///
    /// [`Error::MessageTooLarge`] if the arguments do not fit in a frame; nothing was written.
    pub fn invoke(
        &mut self,
        method: &'static str,
        args: &[u8],
        drop_reply: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<RequestId>, Error> {
        let Some((service_id, method_id)) = self.find(method) else { return Ok(None) };
        let id = self.last_request + 1;
        encode::invoke_method(out, id, service_id, method_id, args, drop_reply)?;
        self.last_request = id;
        if !drop_reply {
            self.pending.insert(id, method);
        }
        Ok(Some(RequestId(id)))
    }

    /// As [`invoke`](Self::invoke), with the method as a type of generated bindings.
    ///
    /// # Errors
    ///
    /// As [`invoke`](Self::invoke).
    pub fn invoke_message<M: Rpc>(
        &mut self,
        request: &M::Request,
        out: &mut Vec<u8>,
    ) -> Result<Option<RequestId>, Error> {
        let method = const { method_of::<M>() };
        self.invoke(method.name, &request.encode(), matches!(method.kind, Kind::OneWay), out)
    }

    /// Handles a frame that arrived. Returns `None` if it answers no open request.
    pub fn handle<'a>(&mut self, frame: &Frame<'a>) -> Option<ClientEvent<'a>> {
        let id = frame.request_id;
        if self.binding == Some(id) {
            self.binding = None;
            return Some(self.handle_bind_reply(&frame.body));
        }
        let method = *self.pending.get(&id)?;
        let request_id = RequestId(id);
        let (success, has_more, body) = match frame.body {
            FrameBody::InvokeMethodReply { success, has_more, body } => {
                (success, has_more, if success { body } else { &[] })
            }
            FrameBody::RequestError { error } => {
                self.pending.remove(&id);
                return Some(ClientEvent::RequestError { request_id, method, error });
            }
            // A reply of the wrong type consumes the request.
            _ => (false, false, &[][..]),
        };
        if !has_more {
            self.pending.remove(&id);
        }
        Some(ClientEvent::Reply { request_id, method, success, has_more, body })
    }

    /// Returns true if the service is known, so that calls are possible.
    pub fn is_bound(&self) -> bool {
        self.bound.is_some()
    }

    /// Returns true if the bound service has this method.
    pub fn has_method(&self, method: &str) -> bool {
        self.find(method).is_some()
    }

    /// Returns true if a reply, or a further reply, to this call is expected.
    pub fn is_pending(&self, request: RequestId) -> bool {
        self.pending.contains_key(&request.0)
    }

    /// Stops waiting for replies to this call. They are ignored when they come.
    pub fn forget(&mut self, request: RequestId) {
        self.pending.remove(&request.0);
    }

    /// Returns the ids of service and method. The list is short: a search costs less than hashing
    /// the name.
    fn find(&self, method: &str) -> Option<(u32, u32)> {
        let bound = self.bound.as_ref()?;
        let entry = bound.methods.iter().find(|(name, _)| name == method.as_bytes())?;
        Some((bound.service_id, entry.1))
    }

    fn handle_bind_reply<'a>(&mut self, body: &FrameBody<'_>) -> ClientEvent<'a> {
        match body {
            FrameBody::BindServiceReply { success: true, service_id, methods } => {
                let methods = methods.iter().map(|(id, name)| (name.to_vec(), id)).collect();
                self.bound = Some(Bound { service_id: *service_id, methods });
                ClientEvent::Bound
            }
            _ => ClientEvent::BindFailed,
        }
    }
}
