//! The begin of a call: what its request tells.

use std::sync::Arc;

use http::Request;

use crate::body::TracedBody;
use crate::call::{Beginning, Call, OpenCall, Role};
use crate::flow_header;
use crate::future::Recording;
use crate::headers::is_grpc;
use crate::name::{self, RequestHead};
use crate::options::Options;
use crate::request_bodies::RequestBodies;
use crate::sites::Sites;
use crate::status;
use crate::traceparent::TraceParent;

/// A call that has begun to be recorded.
pub(crate) struct Begun {
    call: Arc<Call>,
    pub(crate) flow: Option<u64>,
}

/// Begins to record a call, unless its request says otherwise. `own` is the id of our header; the
/// span of another tracing library takes its place.
pub(crate) fn begin<B>(
    role: Role,
    sites: &'static Sites,
    options: &Options,
    request: &Request<B>,
    own: Option<u64>,
) -> Option<Begun> {
    let headers = request.headers();
    let parent = TraceParent::find(headers);
    let is_sampled = || parent.is_some_and(|parent| parent.is_sampled) || flow_header::find(headers).is_some();
    if options.only_sampled && !is_sampled() {
        return None;
    }
    let flow = own.or_else(|| Some(parent?.parent_id));
    let is_grpc = is_grpc(headers);
    let head = RequestHead { method: request.method(), uri: request.uri(), headers, extensions: request.extensions() };
    let call = Beginning {
        role,
        name: name::of(&head, is_grpc, options),
        flow,
        correlation: parent.map(|parent| parent.trace_id),
        is_grpc,
        timeout: if is_grpc { status::timeout(headers) } else { None },
    };
    Some(Begun { call: Call::begin(sites, options, call)?, flow })
}

/// Prepares a request and the future of its response.
pub(crate) fn enter<B, R: RequestBodies<B>>(
    begun: Option<Begun>,
    request: Request<B>,
    requests: &R,
) -> (Request<B>, Option<Box<Recording>>) {
    let Some(Begun { call, .. }) = begun else { return (request, None) };
    let method = request.method().clone();
    let request = if R::COUNTED && call.is_grpc() {
        request.map(|body| requests.convert(TracedBody::of_request(body, &call)))
    } else {
        request
    };
    (request, Some(Box::new(Recording { call: OpenCall::new(call), method })))
}
