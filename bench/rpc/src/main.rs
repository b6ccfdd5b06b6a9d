//! Calls of a service that answers at once, through layers. With `--session none` no session
//! records.

#![forbid(unsafe_code)]

use core::convert::Infallible;
use core::future::Future;
use core::hint::black_box;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bench_harness::{Batch, Case, Finished, Options, Program};
use bytes::Bytes;
use esatto::{Backend, Session, Tracing};
use esatto_tower::{ClientLayer, RPC, ServerLayer};
use http::{HeaderValue, Request, Response};
use http_body::Body;
use http_body_util::Full;
use tower::{Layer, Service};
use tower_http::trace::TraceLayer;

static TRACING: OnceLock<Tracing> = OnceLock::new();
static SESSION: Mutex<Option<Session>> = Mutex::new(None);

const CASES: &[Case] = &[
    case("bare service", 0, |batch| call(batch, Answer, "application/json")),
    case("wrapped body", 0, |batch| call(batch, Wrap(Answer), "application/json")),
    case("client", 3, |batch| call(batch, ClientLayer::new(&RPC).layer(Answer), "application/json")),
    case("server", 3, |batch| call(batch, ServerLayer::new(&RPC).layer(Answer), "application/json")),
    case("server, gRPC", 3, |batch| call(batch, ServerLayer::new(&RPC).layer(Answer), "application/grpc")),
    case("tower-http", 0, |batch| call(batch, TraceLayer::new_for_http().layer(Answer), "application/json")),
];

const fn case(name: &'static str, events: u64, run: fn(&mut Batch)) -> Case {
    Case { name, ops: 200, events, run }
}

/// Answers each request at once, with its headers. Its future is boxed, as those of routers and of
/// generated services are.
#[derive(Clone, Copy)]
struct Answer;

type Answered = Result<Response<Full<Bytes>>, Infallible>;

impl Service<Request<Full<Bytes>>> for Answer {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Answered> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let mut response = Response::new(body);
            *response.headers_mut() = head.headers;
            Ok(response)
        })
    }
}

/// Puts the body of each response into another one: what every layer does that sees the end of a
/// body.
struct Wrap<S>(S);

/// A body with room for a word.
struct Wrapped<B>(B, Option<Box<u64>>);

struct WrapFuture<F>(F);

impl<S, B, R> Service<Request<B>> for Wrap<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Unpin,
{
    type Response = Response<Wrapped<R>>;
    type Error = S::Error;
    type Future = WrapFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> WrapFuture<S::Future> {
        WrapFuture(self.0.call(request))
    }
}

impl<F: Future<Output = Result<Response<R>, E>> + Unpin, R, E> Future for WrapFuture<F> {
    type Output = Result<Response<Wrapped<R>>, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let wrap = |response: Response<R>| response.map(|body| Wrapped(body, None));
        Pin::new(&mut self.0).poll(context).map(|result| result.map(wrap))
    }
}

impl<B: Body + Unpin> Body for Wrapped<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<B::Data>, B::Error>>> {
        if self.1.is_some() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.0).poll_frame(context)
    }
}

/// Calls the service, and reads its response to the end.
#[inline(never)]
fn call<S, B, E>(batch: &mut Batch, mut service: S, content_type: &'static str)
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = E>,
    B: Body + Unpin,
{
    // A message of gRPC.
    let body = Bytes::from_static(b"\0\0\0\0\x03abc");
    let waker = Waker::noop();
    let content_type = black_box(content_type);
    batch.time(|_| {
        let mut request = Request::new(Full::new(body.clone()));
        *request.uri_mut() = http::Uri::from_static("/test.Echo/Unary");
        request.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        let mut response = pin!(service.call(black_box(request)));
        // The runtime and the server are other code, which takes the response from its place.
        let mut response = response.as_mut().poll(black_box(&mut Context::from_waker(waker)));
        let Poll::Ready(Ok(response)) = black_box(&mut response) else { return };
        let mut body = Pin::new(response.body_mut());
        while let Poll::Ready(Some(frame)) = body.as_mut().poll_frame(&mut Context::from_waker(waker)) {
            black_box(frame.is_ok());
        }
    });
}

fn start(options: &Options) {
    let tracing = Tracing::builder().in_process().start().expect("tracing starts");
    if options.get("session") != Some("none") {
        let session = Session::start(Backend::InProcess, esatto::track_events(131_072)).expect("the session starts");
        assert!(tracing.wait_until_enabled(&RPC, Duration::from_secs(10)), "the session records");
        *SESSION.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }
    TRACING.set(tracing).expect("only once");
}

fn finish() -> Finished {
    TRACING.get().expect("started before").flush(Duration::from_secs(10));
    let session = SESSION.lock().unwrap_or_else(PoisonError::into_inner).take();
    Finished { events: 0, trace: session.map(|session| session.stop().expect("the session stops")) }
}

fn main() {
    bench_harness::run(&Program { cases: CASES, start, finish });
}
