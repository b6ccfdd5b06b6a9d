//! The layer of clients.

use std::sync::Arc;

use esatto::Flow;
use http::{Request, Response};
use tower_service::Service;

use crate::begin::{self, Begun};
use crate::call::Role;
use crate::future::ResponseFuture;
use crate::layer::{Parts, layer};
use crate::request_bodies::{AsTheyAre, RequestBodies};

/// Layer that records the calls that a client makes, and sends the id of each with it.
///
/// Place it next to the transport, inside layers that retry, hedge or balance: then each attempt is
/// a call of its own.
///
/// ```
/// # use esatto_tower::{ClientLayer, RPC};
/// # use tower_layer::Layer;
/// # let channel = ();
/// let service = ClientLayer::new(&RPC).layer(channel);
/// ```
#[doc(alias = "grpc", alias = "tonic")]
#[derive(Clone, Debug)]
pub struct ClientLayer<R = AsTheyAre> {
    parts: Parts<R>,
}

impl<R> ClientLayer<R> {
    /// Sets whether the header `perfetto-flow-bin` is sent. The default is true.
    ///
    /// Without it, the id of a call is the parent id of the `traceparent` that another layer has
    /// added to the request before. The server uses the same id.
    #[must_use]
    pub fn flow_header(mut self, wanted: bool) -> Self {
        Arc::make_mut(&mut self.parts.options).own_header = wanted;
        self
    }
}

layer!(ClientLayer, Client, messages: "client sends");

/// Service of a [`ClientLayer`].
#[derive(Clone, Debug)]
pub struct Client<S, R = AsTheyAre> {
    inner: S,
    layer: ClientLayer<R>,
}

impl<S, R> Client<S, R> {
    #[inline(never)]
    fn call_recorded<B, A>(&mut self, mut request: Request<B>) -> ResponseFuture<S::Future>
    where
        S: Service<Request<B>, Response = Response<A>>,
        R: RequestBodies<B>,
    {
        let Parts { sites, options, requests } = &self.layer.parts;
        let own = options.own_header.then(|| Flow::random().id());
        let begun = begin::begin(Role::Client, sites, options, &request, own);
        if let Some(Begun { flow: Some(flow), .. }) = &begun {
            if options.own_header {
                crate::flow_header::insert(*flow, request.headers_mut());
            }
        }
        let (request, recording) = begin::enter(begun, request, requests);
        ResponseFuture::new(self.inner.call(request), recording)
    }
}
