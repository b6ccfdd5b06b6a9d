//! The layer of servers.

use core::task::{Context, Poll};
use std::sync::Arc;

use esatto::Category;
use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use crate::begin;
use crate::body::TracedBody;
use crate::call::Role;
use crate::future::ResponseFuture;
use crate::options::{Options, option_methods};
use crate::request_bodies::{AsTheyAre, Counted, RequestBodies};
use crate::sites::Sites;

/// Layer that records the calls that a server answers.
///
/// Place it outermost, before authentication: then calls that are refused are visible. To name the
/// calls of a router by their routes, place it inside the router.
///
/// ```
/// # use esatto_tower::{RPC, ServerLayer};
/// # use tower_layer::Layer;
/// # let router = ();
/// let service = ServerLayer::new(&RPC).layer(router);
/// ```
#[derive(Clone, Debug)]
pub struct ServerLayer<R = AsTheyAre> {
    sites: &'static Sites,
    options: Arc<Options>,
    requests: R,
}

impl ServerLayer {
    /// Makes a layer that records calls in a category.
    #[must_use]
    pub fn new(category: &'static Category) -> Self {
        Self { sites: Sites::of(category), options: Arc::default(), requests: AsTheyAre }
    }
}

impl<R> ServerLayer<R> {
    option_methods!();

    /// Also counts the messages that the server receives. `convert` makes a body of the type that
    /// the inner service takes. It is called only for calls of gRPC that are recorded. With tonic:
    ///
    /// ```text
    /// .request_messages(tonic::body::Body::new)
    /// ```
    #[must_use]
    pub fn request_messages<B>(self, convert: fn(TracedBody<B>) -> B) -> ServerLayer<Counted<B>> {
        let Self { sites, options, .. } = self;
        ServerLayer { sites, options, requests: Counted(convert) }
    }
}

impl Default for ServerLayer {
    /// Makes a layer that records calls in the category [`RPC`](crate::RPC).
    fn default() -> Self {
        Self::new(&crate::RPC)
    }
}

impl<S, R: Clone> Layer<S> for ServerLayer<R> {
    type Service = Server<S, R>;

    fn layer(&self, inner: S) -> Server<S, R> {
        Server { inner, layer: self.clone() }
    }
}

/// Service of a [`ServerLayer`].
#[derive(Clone, Debug)]
pub struct Server<S, R = AsTheyAre> {
    inner: S,
    layer: ServerLayer<R>,
}

impl<S, R, B, A> Service<Request<B>> for Server<S, R>
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

impl<S, R> Server<S, R> {
    #[inline(never)]
    fn call_recorded<B, A>(&mut self, request: Request<B>) -> ResponseFuture<S::Future>
    where
        S: Service<Request<B>, Response = Response<A>>,
        R: RequestBodies<B>,
    {
        let ServerLayer { sites, options, requests } = &self.layer;
        let begun = begin::begin(Role::Server, sites, options, &request, crate::flow_header::find(request.headers()));
        let (request, recording) = begin::enter(begun, request, requests);
        ResponseFuture::new(self.inner.call(request), recording)
    }
}
