//! While no session records, the layers leave requests alone. Calls belong to the sessions that
//! have their begin.

#![allow(missing_docs, reason = "tests")]

use core::convert::Infallible;
use core::future::{Future, Ready, ready};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Mutex;

use esatto::{Backend, Session, Tracing};
use esatto_tower::{ClientLayer, RPC, ServerLayer};
use http::{Request, Response};
use http_body_util::Empty;
use tower::{Layer, Service, service_fn};

type Body = Empty<&'static [u8]>;

/// The tests share the category.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("waits"),
    }
}

/// Answers, and notes whether the request has our header.
fn answer(request: Request<Body>) -> Ready<Result<Response<Body>, Infallible>> {
    let mut response = Response::new(Body::new());
    let has_header = request.headers().contains_key("perfetto-flow-bin");
    response.extensions_mut().insert(has_header);
    ready(Ok(response))
}

fn sends_header(layer: &ClientLayer) -> bool {
    let response = now(layer.layer(service_fn(answer)).call(Request::new(Body::new()))).expect("answers");
    *response.extensions().get::<bool>().expect("was noted")
}

fn start(tracing: &Tracing) -> Session {
    let session = Session::start(Backend::InProcess, esatto::track_events(1024)).expect("starts");
    assert!(tracing.wait_until_enabled(&RPC, Duration::from_secs(60)));
    session
}

fn names(session: Session) -> Vec<String> {
    let events = esatto_trace::events(&session.stop().expect("stops"));
    events.iter().filter_map(|event| event.name.as_deref().map(str::to_owned)).collect()
}

#[test]
fn the_header_is_sent_only_while_a_session_records() {
    let _alone = ONE_AT_A_TIME.lock();
    let layer = ClientLayer::new(&RPC);
    assert!(!sends_header(&layer));
    let tracing = Tracing::builder().in_process().start().expect("connects");
    let session = start(&tracing);
    assert!(sends_header(&layer));
    assert!(!sends_header(&layer.clone().flow_header(false)));
    assert_eq!(names(session), ["GET", "reply", "GET", "reply"]);
    assert!(!sends_header(&layer));
}

#[test]
fn a_call_is_recorded_only_by_the_session_that_has_its_begin() {
    let _alone = ONE_AT_A_TIME.lock();
    let tracing = Tracing::builder().in_process().start().expect("connects");
    let mut service = ServerLayer::new(&RPC).layer(service_fn(answer));
    let before = service.call(Request::new(Body::new()));
    let session = start(&tracing);
    drop(now(before));
    let across = service.call(Request::new(Body::new()));
    assert_eq!(names(session), ["GET"]);
    let session = start(&tracing);
    drop(now(across));
    assert_eq!(names(session), [""; 0]);
}
