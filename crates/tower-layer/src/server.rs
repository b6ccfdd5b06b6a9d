//! The layer of servers.

use http::{Request, Response};
use tower_service::Service;

use crate::begin;
use crate::call::Role;
use crate::future::ResponseFuture;
use crate::layer::{Parts, layer};
use crate::request_bodies::{AsTheyAre, RequestBodies};

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
#[doc(alias = "grpc", alias = "tonic")]
#[derive(Clone, Debug)]
pub struct ServerLayer<R = AsTheyAre> {
    parts: Parts<R>,
}

layer!(ServerLayer, Server, messages: "server receives");

/// Service of a [`ServerLayer`].
#[derive(Clone, Debug)]
pub struct Server<S, R = AsTheyAre> {
    inner: S,
    layer: ServerLayer<R>,
}

impl<S, R> Server<S, R> {
    #[inline(never)]
    fn call_recorded<B, A>(&mut self, request: Request<B>) -> ResponseFuture<S::Future>
    where
        S: Service<Request<B>, Response = Response<A>>,
        R: RequestBodies<B>,
    {
        let Parts { sites, options, requests } = &self.layer.parts;
        let begun = begin::begin(Role::Server, sites, options, &request, crate::flow_header::find(request.headers()));
        let (request, recording) = begin::enter(begun, request, requests);
        ResponseFuture::new(self.inner.call(request), recording)
    }
}
