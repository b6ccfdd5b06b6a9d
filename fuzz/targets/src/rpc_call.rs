//! A call through the layers of `tower`, with headers and bodies of a stranger.

use core::convert::Infallible;
use core::future::{Future, ready};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use esatto::{Backend, Session, Tracing};
use esatto_tower::{RPC, ServerLayer};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use tower_layer::Layer;
use tower_service::Service;

use crate::script::Script;

/// A body of these pieces.
struct Pieces(VecDeque<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

/// Reads a body to its end, or drops it after `most` pieces.
fn read<B: Body<Data = Bytes>>(body: B, most: usize) -> Vec<u8> {
    let mut body = pin!(body);
    let mut all = Vec::new();
    for _ in 0..most {
        let Poll::Ready(Some(Ok(frame))) = body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())) else {
            break;
        };
        all.extend(frame.into_data().unwrap_or_default());
    }
    all
}

/// A service that echoes a body of these pieces, and all headers.
struct Answer(StatusCode, Vec<Vec<u8>>);

type BoxBody = Pin<Box<dyn Body<Data = Bytes, Error = Infallible>>>;

impl Service<Request<BoxBody>> for Answer {
    type Response = Response<Pieces>;
    type Error = Infallible;
    type Future = core::future::Ready<Result<Response<Pieces>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<BoxBody>) -> Self::Future {
        let (head, body) = request.into_parts();
        assert_eq!(read(body, usize::MAX), self.1.concat());
        let mut response = Response::new(Pieces(self.1.iter().cloned().map(Bytes::from).collect()));
        *response.status_mut() = self.0;
        *response.headers_mut() = head.headers;
        ready(Ok(response))
    }
}

/// Records all calls, in a small ring.
fn record() {
    static SESSION: OnceLock<(Tracing, Session)> = OnceLock::new();
    SESSION.get_or_init(|| {
        let tracing = Tracing::builder().in_process().start().expect("connects");
        let session = Session::start(Backend::InProcess, esatto::track_events(256)).expect("starts");
        assert!(tracing.wait_until_enabled(&RPC, Duration::from_secs(60)));
        (tracing, session)
    });
}

/// The bytes are a script: the path, headers by number and value, and the pieces of a body, which a
/// service echoes. The bodies must come through as they are.
pub fn rpc_call(bytes: &[u8]) {
    record();
    let mut script = Script::new(bytes);
    let mut request = Request::new(());
    if let Ok(path) = core::str::from_utf8(script.string()).unwrap_or_default().parse() {
        *request.uri_mut() = path;
    }
    if let Ok(method) = Method::from_bytes(script.string()) {
        *request.method_mut() = method;
    }
    let names = [
        "perfetto-flow-bin",
        "traceparent",
        "content-type",
        "grpc-timeout",
        "grpc-status",
        "grpc-message",
        "content-length",
    ];
    let count = script.u8() % 16;
    for _ in 0..count {
        let name = HeaderName::from_static(names[usize::from(script.u8()) % names.len()]);
        if let Ok(value) = HeaderValue::from_bytes(script.string()) {
            request.headers_mut().append(name, value);
        }
    }
    let status = StatusCode::from_u16(script.u16() % 900 + 100).unwrap_or_default();
    let most = usize::from(script.u8());
    let mut pieces = Vec::new();
    while !script.is_empty() {
        pieces.push(script.string().to_vec());
    }
    let body = Pieces(pieces.iter().cloned().map(Bytes::from).collect());
    let request = request.map(|()| -> BoxBody { Box::pin(body) });
    let layer = ServerLayer::new(&RPC)
        .status_messages(true)
        .route(|request| Some(request.uri().path().into()))
        .request_messages(|body| -> BoxBody { Box::pin(body) });
    let response = pin!(layer.layer(Answer(status, pieces.clone())).call(request));
    let Poll::Ready(Ok(response)) = response.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the answer is ready");
    };
    let expected: Vec<u8> = pieces.iter().take(most).flatten().copied().collect();
    assert_eq!(read(response.into_body(), most), expected);
}
