//! [`Host`]: the answering side of the RPC layer, without I/O (`docs/spec/wire-protocol.md §4`).
//!
//! A [`Host`] stands for one accepted connection. It answers frames that need no knowledge of the
//! methods: binds, calls of unknown services and methods, and frames that are not requests.
//! Everything else becomes a [`HostEvent`].

use std::sync::Arc;

use esatto_protozero::Fields;
use esatto_protozero::service::{Method, Service};

use crate::error::Error;
use crate::frame::{Frame, FrameBody, encode};
use crate::peer::Peer;

/// Request of a frame to the layer above.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum HostEvent<'a> {
    /// A call. Answer it with exactly one of the `reply_…` functions (streams: until `has_more` is
    /// false). If `drop_reply` is set, do not answer, except with [`Host::reply_not_invoked`],
    /// which is sent in any case.
    Invoke(Invoke<'a>),
    /// A relay told the identity of the process for which it forwards. [`Host::peer`] has it now.
    PeerIdentity,
}

/// Call of an existing method.
#[derive(Clone, Copy, Debug)]
pub struct Invoke<'a> {
    /// The service.
    pub service: &'static Service,
    /// Id of the method, from 1.
    pub method_id: u32,
    /// The method.
    pub method: &'static Method,
    /// Id for the reply. The client chose it, and it need not be unique.
    pub request_id: u64,
    /// The request message. It is a sequence of fields, whose contents are not checked.
    pub args: &'a [u8],
    /// The client does not want a reply.
    pub drop_reply: bool,
}

/// Service's end of one connection.
#[derive(Debug)]
pub struct Host {
    services: Arc<[&'static Service]>,
    peer: Peer,
    refused: u64,
}

impl Host {
    /// Makes the host of a connection to a socket that offers `services`. The first one has the
    /// service id 1.
    pub fn new(services: Arc<[&'static Service]>, peer: Peer) -> Self {
        Self { services, peer, refused: 0 }
    }

    /// Handles one frame: writes the answer to `out`, or returns the request.
    pub fn handle<'a>(&mut self, frame: &Frame<'a>, out: &mut Vec<u8>) -> Option<HostEvent<'a>> {
        let id = frame.request_id;
        match frame.body {
            FrameBody::InvokeMethod { service_id, method_id, args, drop_reply } => {
                return self.invoke(id, service_id, method_id, args, drop_reply, out);
            }
            FrameBody::BindService { service_name } => self.bind(id, service_name, out),
            FrameBody::SetPeerIdentity(claim) => {
                return self.peer.identify(&claim).then_some(HostEvent::PeerIdentity);
            }
            _ => {
                self.refused += 1;
                encode::request_error(out, id);
            }
        }
        None
    }

    /// Answers a call that succeeded.
    ///
    /// # Errors
    ///
    /// [`Error::MessageTooLarge`] if the body does not fit in a frame (see
    /// [`reply_overhead`](encode::reply_overhead)); nothing was written then.
    pub fn reply_ok(&self, request_id: u64, body: &[u8], has_more: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        encode::reply_ok(out, request_id, body, has_more)
    }

    /// Answers a call that the method rejected.
    pub fn reply_rejected(&self, request_id: u64, out: &mut Vec<u8>) {
        encode::reply_rejected(out, request_id);
    }

    /// Answers a call whose arguments do not parse, even if the client wants no reply.
    pub fn reply_not_invoked(&mut self, request_id: u64, out: &mut Vec<u8>) {
        self.refused += 1;
        encode::reply_not_invoked(out, request_id);
    }

    /// Returns the identity of the peer.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the number of requests that were answered with an error because they were not valid.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn bind(&mut self, request_id: u64, name: &[u8], out: &mut Vec<u8>) {
        let found = self.services.iter().zip(1..).find(|(service, _)| service.name.as_bytes() == name);
        let written = match found {
            Some((service, service_id)) => {
                let methods = (1..).zip(service.methods.iter().map(|method| method.name));
                encode::bind_service_reply(out, request_id, service_id, methods)
            }
            None => {
                self.refused += 1;
                encode::bind_service_failed(out, request_id)
            }
        };
        written.expect("the method list of a service fits in a frame");
    }

    fn invoke<'a>(
        &mut self,
        request_id: u64,
        service_id: u32,
        method_id: u32,
        args: &'a [u8],
        drop_reply: bool,
        out: &mut Vec<u8>,
    ) -> Option<HostEvent<'a>> {
        let index = usize::try_from(service_id).ok().and_then(|id| id.checked_sub(1));
        let service = index.and_then(|index| self.services.get(index).copied());
        let method = service.and_then(|service| Some((service, service.method(method_id)?)));
        let Some((service, method)) = method.filter(|_| Fields::new(args).check().is_ok()) else {
            self.reply_not_invoked(request_id, out);
            return None;
        };
        Some(HostEvent::Invoke(Invoke { service, method_id, method, request_id, args, drop_reply }))
    }
}
