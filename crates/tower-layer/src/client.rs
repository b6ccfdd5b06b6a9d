//! The layer of clients.

use core::task::{Context, Poll};
use std::sync::Arc;

use esatto::{Category, Flow};
use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use crate::begin::{self, Begun};
use crate::body::TracedBody;
use crate::call::Role;
use crate::future::ResponseFuture;
use crate::options::{Options, option_methods};
use crate::request_bodies::{AsTheyAre, Counted, RequestBodies};
use crate::sites::Sites;

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
#[derive(Clone, Debug)]
pub struct ClientLayer<R = AsTheyAre> {
    sites: &'static Sites,
    options: Arc<Options>,
    requests: R,
}

impl ClientLayer {
    /// Makes a layer that records calls in a category.
    #[must_use]
    pub fn new(category: &'static Category) -> Self {
        Self { sites: Sites::of(category), options: Arc::default(), requests: AsTheyAre }
    }
}

impl<R> ClientLayer<R> {
    option_methods!();

    /// Also counts the messages that the client sends. `convert` makes a body of the type that the
    /// inner service takes. It is called only for calls of gRPC that are recorded. With tonic:
    ///
    /// ```text
    /// .request_messages(tonic::body::Body::new)
    /// ```
    #[must_use]
    pub fn request_messages<B>(self, convert: fn(TracedBody<B>) -> B) -> ClientLayer<Counted<B>> {
        let Self { sites, options, .. } = self;
        ClientLayer { sites, options, requests: Counted(convert) }
    }

    /// Sets whether the header `perfetto-flow-bin` is sent. The default is true.
    ///
    /// Without it, the id of a call is the parent id of the `traceparent` that another layer has
    /// added to the request before. The server uses the same id.
    #[must_use]
    pub fn flow_header(mut self, wanted: bool) -> Self {
        Arc::make_mut(&mut self.options).own_header = wanted;
        self
    }
}

impl Default for ClientLayer {
    /// Makes a layer that records calls in the category [`RPC`](crate::RPC).
    fn default() -> Self {
        Self::new(&crate::RPC)
    }
}

impl<S, R: Clone> Layer<S> for ClientLayer<R> {
    type Service = Client<S, R>;

    fn layer(&self, inner: S) -> Client<S, R> {
        Client { inner, layer: self.clone() }
    }
}

/// Service of a [`ClientLayer`].
#[derive(Clone, Debug)]
pub struct Client<S, R = AsTheyAre> {
    inner: S,
    layer: ClientLayer<R>,
}

impl<S, R, B, A> Service<Request<B>> for Client<S, R>
where
    S: Service<Request<B>, Response = Response<A>>,
    R: RequestBodies<B>,
    A: Body,
{
    type Response = Response<TracedBody<A>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> ResponseFuture<S::Future> {
        if self.layer.sites.category.is_enabled() {
            return self.call_recorded(request);
        }
        ResponseFuture::new(self.inner.call(request), None)
    }
}

impl<S, R> Client<S, R> {
    #[inline(never)]
    fn call_recorded<B, A>(&mut self, mut request: Request<B>) -> ResponseFuture<S::Future>
    where
        S: Service<Request<B>, Response = Response<A>>,
        R: RequestBodies<B>,
    {
        let ClientLayer { sites, options, requests } = &self.layer;
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
