//! The server and the clients of the tests: `esatto-rpc-app server`, `esatto-rpc-app client
//! SCENARIO`. Both meet in the folder in which they run.

#![forbid(unsafe_code)]

use core::convert::Infallible;
use core::time::Duration;
use std::path::Path;

use axum::extract::MatchedPath;
use axum::routing::{get, post};
use bytes::Bytes;
use esatto_rpc_tests::echo::{Client, Echo};
use esatto_tower::{ClientLayer, RPC, ServerLayer};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tonic::transport::Channel;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

esatto::categories! {
    static APP = "app";
    /// Calls of the program itself.
    static OWN = "rpc_calls";
}

/// Far longer than anything takes.
const LONG: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let tracing = esatto::Tracing::builder().system().categories(esatto_tower::CATEGORIES).categories(CATEGORIES);
    let tracing = tracing.start().expect("the control thread starts");
    assert!(tracing.wait_until_enabled(&RPC, LONG), "a session records");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("starts");
    match arguments[..] {
        ["server"] => runtime.block_on(server()),
        ["client", scenario] => runtime.block_on(client(scenario)),
        _ => panic!("usage: server | client SCENARIO"),
    }
    // Tasks that still wait are dropped before tracing ends.
    runtime.shutdown_timeout(Duration::from_secs(1));
    tracing.flush(LONG);
}

/// Serves until the file `end` is there.
async fn server() {
    let grpc = listen("grpc").await;
    let layer = ServerLayer::new(&RPC).request_messages(tonic::body::Body::new);
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(grpc);
    tokio::spawn(tonic::transport::Server::builder().layer(layer).add_service(Echo).serve_with_incoming(incoming));

    let axum = listen("axum").await;
    let route = ServerLayer::new(&RPC)
        .route(|request| request.extensions().get::<MatchedPath>().map(|path| path.as_str().into()));
    let router = axum::Router::new()
        .route("/users/{id}", get(async || "a user").post(async || http::StatusCode::NO_CONTENT))
        .route("/broken", get(async || http::StatusCode::INTERNAL_SERVER_ERROR))
        .route("/flaky", post(flaky))
        .route("/slow-once", post(slow_once))
        .layer(route);
    tokio::spawn(async { axum::serve(axum, router).await });

    let hyper = listen("hyper").await;
    tokio::spawn(serve_hyper(hyper));
    println!("ready");
    while !Path::new("end").exists() {
        sleep(Duration::from_millis(5)).await;
    }
}

/// Fails at the first call.
async fn flaky() -> http::StatusCode {
    static FAILED: std::sync::Once = std::sync::Once::new();
    let mut code = http::StatusCode::OK;
    FAILED.call_once(|| code = http::StatusCode::SERVICE_UNAVAILABLE);
    code
}

/// Takes long at the first call.
async fn slow_once() -> &'static str {
    static CALLED: std::sync::Once = std::sync::Once::new();
    let mut is_first = false;
    CALLED.call_once(|| is_first = true);
    if is_first {
        sleep(LONG).await;
    }
    "fast"
}

/// A server of HTTP without a router. It answers with a body in pieces.
async fn serve_hyper(listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let pieces = || {
            let piece = || Ok::<_, Infallible>(http_body::Frame::data(Bytes::from_static(b"piece")));
            Response::new(StreamBody::new(tokio_stream::iter([piece(), piece()])))
        };
        let answer = tower::service_fn(move |_: Request<hyper::body::Incoming>| {
            let response = pieces();
            async move { Ok::<_, Infallible>(response) }
        });
        let service = hyper_util::service::TowerToHyperService::new(ServerLayer::default().layer(answer));
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// Listens, and tells the client where.
async fn listen(name: &str) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("has an address").port();
    std::fs::write(format!("{name}.port"), port.to_string()).expect("can be written");
    listener
}

fn address(name: &str) -> String {
    let port = std::fs::read_to_string(format!("{name}.port")).expect("the server listens");
    format!("http://127.0.0.1:{port}")
}

async fn channel() -> Channel {
    Channel::from_shared(address("grpc")).expect("an address").connect().await.expect("the server listens")
}

fn http() -> hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>> {
    hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http()
}

fn request(method: &str, server: &str, path: &str) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(address(server) + path);
    request.body(Full::default()).expect("is valid")
}

async fn client(scenario: &str) {
    let layer = || ClientLayer::new(&RPC).request_messages(tonic::body::Body::new);
    let grpc = async || Client::new(layer().layer(channel().await), &address("grpc"));
    let message = || tonic::Request::new(Bytes::from_static(b"abc"));
    match scenario {
        "unary" => {
            let mut client = grpc().await;
            assert_eq!(client.unary("Unary", message()).await.expect("answers"), "abc");
        }
        "server_stream" => {
            let replies = grpc().await.server_stream("ServerStream", "abc".into()).await.expect("answers");
            assert_eq!(count(replies).await, 3);
        }
        "client_stream" => {
            let messages = ["a", "bc", "def"].map(Bytes::from).to_vec();
            assert_eq!(grpc().await.client_stream("ClientStream", messages).await.expect("answers"), "abcdef");
        }
        "bidi" => {
            let messages = tokio_stream::iter(["a", "bc"].map(Bytes::from));
            let replies = grpc().await.bidi("Bidi", messages).await.expect("answers");
            assert_eq!(count(replies).await, 2);
        }
        "names" => {
            let mut client = grpc().await;
            for _ in 0..3 {
                client.unary("Unary", message()).await.expect("answers");
                client.unary("Invented", message()).await.expect_err("does not exist");
            }
        }
        "refused" => {
            let status = grpc().await.unary("Refuse", message()).await.expect_err("is refused");
            assert_eq!(status.code(), tonic::Code::PermissionDenied);
            let layer = ClientLayer::new(&RPC).status_messages(true);
            let mut client = Client::new(layer.layer(channel().await), &address("grpc"));
            client.unary("Refuse", message()).await.expect_err("is refused");
        }
        "cancel" => {
            let mut client = grpc().await;
            let call = client.unary("Sleep", message());
            tokio::time::timeout(Duration::from_millis(100), call).await.expect_err("takes long");
            let mut replies = client.server_stream("Endless", Bytes::new()).await.expect("answers");
            for _ in 0..3 {
                replies.message().await.expect("has a message");
            }
            drop(replies);
            // The server learns of it.
            sleep(Duration::from_millis(200)).await;
        }
        "deadline" => {
            let mut request = message();
            request.set_timeout(Duration::from_millis(100));
            grpc().await.unary("Sleep", request).await.expect_err("takes too long");
            sleep(Duration::from_millis(200)).await;
        }
        "server_down" => {
            let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = format!("http://{}", nobody.local_addr().expect("has an address"));
            drop(nobody);
            let channel = Channel::from_shared(address.clone()).expect("an address").connect_lazy();
            let mut client = Client::new(layer().layer(channel), &address);
            client.unary("Unary", message()).await.expect_err("nobody listens");
        }
        "http" => {
            let mut client = ClientLayer::default().layer(http());
            for (method, server, path) in [
                ("GET", "axum", "/users/7?token=secret"),
                ("HEAD", "axum", "/users/7"),
                ("POST", "axum", "/users/7"),
                ("GET", "axum", "/broken"),
                ("GET", "hyper", "/users/7"),
            ] {
                let response = client.ready().await.expect("is ready").call(request(method, server, path)).await;
                response.expect("answers").collect().await.expect("has a body");
            }
        }
        "retry" => {
            let mut client = ServiceBuilder::new().retry(Twice).layer(ClientLayer::default()).service(http());
            let call = async { client.ready().await.expect("is ready").call(request("POST", "axum", "/flaky")).await };
            let response = esatto::async_slice!(APP, "with retries").run(call).await.expect("answers");
            assert!(response.status().is_success());
            response.collect().await.expect("has a body");
        }
        "hedge" => {
            let service = ClientLayer::default().layer(http());
            let mut client = tower::hedge::Hedge::new_with_mock_latencies(service, Again, 1, 0.5, LONG, &[50; 20]);
            let response = client.ready().await.expect("is ready").call(request("POST", "axum", "/slow-once")).await;
            response.expect("answers").collect().await.expect("has a body");
        }
        "headers" => headers().await,
        "hostile" => hostile().await,
        "sampled" => sampled().await,
        "without_slices" => {
            let layer = ClientLayer::new(&OWN).slices(false);
            let mut client = Client::new(layer.layer(channel().await), &address("grpc"));
            let call = client.unary("Unary", message());
            esatto::async_slice!(APP, "span of the program").run(call).await.expect("answers");
        }
        "tracing" => {
            use tracing::Instrument;
            use tracing_subscriber::layer::SubscriberExt;
            let subscriber = tracing_subscriber::registry().with(esatto_tracing::layer());
            tracing::subscriber::set_global_default(subscriber).expect("is the first");
            let mut client = Client::new(ClientLayer::new(&RPC).slices(false).layer(channel().await), &address("grpc"));
            let span = tracing::info_span!(target: "app", "request");
            client.unary("Unary", message()).instrument(span).await.expect("answers");
        }
        "many" => {
            let channel = channel().await;
            let calls: Vec<_> = (0..200)
                .map(|_| {
                    let mut client = Client::new(layer().layer(channel.clone()), &address("grpc"));
                    tokio::spawn(async move { client.unary("Unary", message()).await })
                })
                .collect();
            for call in calls {
                call.await.expect("does not panic").expect("answers");
            }
        }
        other => panic!("no scenario {other}"),
    }
}

async fn count(mut replies: tonic::Streaming<Bytes>) -> usize {
    let mut count = 0;
    while replies.message().await.expect("the stream is whole").is_some() {
        count += 1;
    }
    count
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Calls with and without the two headers, of clients with and without the layer.
async fn headers() {
    let with_parent = |request: &mut Request<Full<Bytes>>, parent| {
        request.headers_mut().insert("traceparent", http::HeaderValue::from_static(parent));
    };
    let mut plain = http();
    let mut traced = ClientLayer::default().layer(http());
    // Neither: no layer, no header.
    send(&mut plain, request("GET", "axum", "/users/neither")).await;
    // Our header alone.
    send(&mut traced, request("PUT", "hyper", "/own")).await;
    // Only `traceparent`: another library on the client, our layer on the server.
    let mut only = request("DELETE", "hyper", "/parent");
    with_parent(&mut only, PARENT);
    send(&mut plain, only).await;
    // Only `traceparent`, whose id our client uses.
    let mut only = request("PATCH", "hyper", "/parent");
    with_parent(&mut only, PARENT);
    send(&mut ClientLayer::default().flow_header(false).layer(http()), only).await;
    // Both.
    let mut both = request("OPTIONS", "hyper", "/both");
    with_parent(&mut both, PARENT);
    send(&mut traced, both).await;
    // Both, through a proxy that is a span of its own.
    let proxy = tower::util::MapRequest::new(http(), move |mut request: Request<Full<Bytes>>| {
        with_parent(&mut request, "00-4bf92f3577b34da6a3ce929d0e0e4736-aaaaaaaaaaaaaaaa-01");
        request
    });
    let mut proxied = request("TRACE", "hyper", "/proxied");
    with_parent(&mut proxied, PARENT);
    send(&mut ClientLayer::default().layer(proxy), proxied).await;
}

/// Headers that no client of ours sends.
async fn hostile() {
    let huge = "A".repeat(10_000);
    let values: [&[u8]; 7] =
        [b"", b"AAAAAAAAAAA", b"not base64!", b"\xff\xfe\xfd", huge.as_bytes(), b"AQAAAAAAAAA=,AQAAAAAAAAA", b"===="];
    let mut plain = http();
    for value in values {
        let mut bad = request("GET", "hyper", "/hostile");
        bad.headers_mut().insert("perfetto-flow-bin", http::HeaderValue::from_bytes(value).expect("a value"));
        bad.headers_mut().insert("traceparent", http::HeaderValue::from_bytes(value).expect("a value"));
        send(&mut plain, bad).await;
    }
    let mut twice = request("GET", "hyper", "/hostile");
    for _ in 0..2 {
        twice.headers_mut().append("perfetto-flow-bin", http::HeaderValue::from_static("AQAAAAAAAAA"));
    }
    send(&mut plain, twice).await;
    // Names that a stranger invents.
    let invented = Request::builder().method("BREW").uri(address("hyper") + "/");
    send(&mut plain, invented.body(Full::default()).expect("is valid")).await;
    let mut grpc = request("POST", "hyper", "/some/other/path");
    grpc.headers_mut().insert("content-type", http::HeaderValue::from_static("application/grpc"));
    send(&mut plain, grpc).await;
}

async fn sampled() {
    let mut client = ClientLayer::default().only_sampled(true).layer(http());
    send(&mut client, request("GET", "hyper", "/without")).await;
    for (method, flags) in [("PUT", "-00"), ("DELETE", "-01")] {
        let mut with = request(method, "hyper", "/with");
        let parent = PARENT.replace("-01", flags);
        with.headers_mut().insert("traceparent", http::HeaderValue::from_str(&parent).expect("a value"));
        send(&mut client, with).await;
    }
}

async fn send<S, B>(client: &mut S, request: Request<Full<Bytes>>)
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>>,
    S::Error: core::fmt::Debug,
    B: http_body::Body,
    B::Error: core::fmt::Debug,
{
    let response = client.ready().await.expect("is ready").call(request).await.expect("answers");
    response.into_body().collect().await.expect("has a body");
}

/// Tries once more if the server is not available.
#[derive(Clone, Copy)]
struct Twice;

impl<B, E> tower::retry::Policy<Request<Full<Bytes>>, Response<B>, E> for Twice {
    type Future = core::future::Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<Full<Bytes>>,
        result: &mut Result<Response<B>, E>,
    ) -> Option<core::future::Ready<()>> {
        let again = result.as_ref().is_ok_and(|response| response.status().is_server_error());
        again.then(|| core::future::ready(()))
    }

    fn clone_request(&mut self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
        Some(request.clone())
    }
}

/// Sends any request again if it takes long.
#[derive(Clone, Copy)]
struct Again;

impl tower::hedge::Policy<Request<Full<Bytes>>> for Again {
    fn clone_request(&self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
        Some(request.clone())
    }

    fn can_retry(&self, _: &Request<Full<Bytes>>) -> bool {
        true
    }
}
