//! Records HTTP and gRPC calls in Perfetto traces: a `tower` layer for clients, and one for
//! servers.
//!
//! Each call is a slice on both sides, and arrows lead from the client to the server and back. The
//! two may be one process, or two that the same service records.
//!
//! This program calls itself, with a service in the process:
//!
//! ```
//! use core::convert::Infallible;
//!
//! use esatto_tower::{ClientLayer, RPC, ServerLayer};
//! use http::{Request, Response};
//! use http_body_util::Empty;
//! use tower::{Service, ServiceBuilder, service_fn};
//!
//! type Body = Empty<&'static [u8]>;
//!
//! async fn answer(_: Request<Body>) -> Result<Response<Body>, Infallible> {
//!     Ok(Response::new(Body::new()))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tracing = esatto::Tracing::builder().in_process();
//! let _tracing = tracing.categories(esatto_tower::CATEGORIES).start()?;
//! let session = esatto::Session::start(esatto::Backend::InProcess, esatto::track_events(1024))?;
//!
//! let server = ServiceBuilder::new().layer(ServerLayer::new(&RPC)).service(service_fn(answer));
//! // In a real client, the transport is here in place of the server.
//! let mut client = ServiceBuilder::new().layer(ClientLayer::new(&RPC)).service(server);
//! client.call(Request::get("http://localhost/").body(Body::new())?).await?;
//!
//! let trace = session.stop()?;
//! # assert!(trace.windows(10).any(|bytes| bytes == b"rpc server"));
//! # Ok(())
//! # }
//! ```
//!
//! With tonic, a server and a client are:
//!
//! ```text
//! Server::builder()
//!     .layer(ServerLayer::new(&RPC).request_messages(tonic::body::Body::new))
//!     .add_service(greeter).serve(address).await?;
//!
//! let channel = Endpoint::from_static("http://127.0.0.1:50051").connect().await?;
//! let layer = ClientLayer::new(&RPC).request_messages(tonic::body::Body::new);
//! let client = GreeterClient::new(ServiceBuilder::new().layer(layer).service(channel));
//! ```
//!
//! and with axum:
//!
//! ```text
//! let layer = ServerLayer::new(&RPC)
//!     .route(|request| Some(request.extensions().get::<MatchedPath>()?.as_str().into()));
//! let router = Router::new().route("/users/{id}", get(user)).layer(layer);
//! ```
//!
//! The page "Record gRPC and HTTP calls" of the book has whole programs.
//!
//! # What a call is in the trace
//!
//! | in the program | in the trace |
//! | --- | --- |
//! | a call, from the request until the end of the response's body | a slice on the track `rpc client` or `rpc server`, with the argument `role` |
//! | `package.Service/Method` of gRPC; the method of HTTP, with the [route](ServerLayer::route) if the program gives one | its name |
//! | the request reaches the server, the head of the response the client | arrows |
//! | messages of a stream of gRPC | instants with their number and length, and an arrow each; see [messages](#messages) |
//! | the trace id of `traceparent` | the correlation id |
//! | the end | the argument `status`: the status of gRPC in lower case, or `ok`, or `error` for codes of HTTP from 400 on and for failed connections; `http_status` |
//! | the future or the body is dropped before the end | `cancelled`, or `deadline_exceeded` if the time of `grpc-timeout` has passed |
//!
//! Payloads, paths with ids, queries and other headers are not recorded. Texts of a status are
//! recorded on [request](ServerLayer::status_messages).
//!
//! A call moves between threads, so there are no slices on the tracks of threads. Each call has a
//! lane for itself while it lasts. Viewers show the lanes of each side as one track.
//!
//! # How the two sides meet
//!
//! While its category is recorded, a client adds the header `perfetto-flow-bin` with a random
//! number to each request. If it is absent, malformed or repeated, the server uses the parent id of
//! the W3C header `traceparent`. So a client with an OpenTelemetry layer also has arrows. If
//! neither header is there, the slice of the server has no arrow. Proxies may change `traceparent`,
//! but pass on headers that they do not know.
//!
//! A client can send any number, and so draw misleading arrows. It can do no other harm.
//!
//! # Retries, hedging, balancing
//!
//! Place a [`ClientLayer`] inside the layers that retry, hedge or balance. Then each attempt is a
//! call of its own, with its own arrow. For the logical call around them, use
//! [`esatto::async_slice!`]:
//!
//! ```text
//! let layer = ClientLayer::new(&RPC);
//! let mut client = ServiceBuilder::new().retry(policy).layer(layer).service(channel);
//! esatto::async_slice!(APP, "buy").run(client.call(request)).await
//! ```
//!
//! # Messages
//!
//! Messages of responses are counted in any case. A layer cannot change the type of a request's
//! body, so those of requests are counted only if the layer knows how to convert it:
//! [`ClientLayer::request_messages`], [`ServerLayer::request_messages`].
//!
//! A call with one message in a direction has no instant for it: its arrows are those of the call.
//! If more follow, all have instants. Only a first message that is more than a second older than
//! the second one has none.
//!
//! # Beside `tracing`
//!
//! If `esatto-tracing` records spans, and a layer such as `tower_http::trace::TraceLayer` makes a
//! span of each call, each call would have two slices. Choose one of two ways:
//!
//! - The layers of this crate without slices: [`ClientLayer::slices`], [`ServerLayer::slices`]. The
//!   begin of a call, its reply and its messages are then instants inside of the span's slices.
//!   Place them inside of the layer that makes the span.
//! - A filter that leaves the other layer's spans out: `EnvFilter::new("info,tower_http=off")`.
//!
//! # Cost
//!
//! While no session records the category, a call costs one relaxed load, and the response is moved
//! once, because its body gets another type: 10 to 20 ns. No header is sent, nothing is allocated,
//! and no future is boxed. While a session records, each side takes about half a microsecond for
//! the three events of a short call, and allocates a few times.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod append_list;
mod begin;
mod body;
mod call;
mod client;
mod flow_header;
mod future;
mod headers;
mod layer;
mod messages;
mod name;
mod options;
mod request_bodies;
mod server;
mod sites;
mod status;
mod traceparent;

pub use body::TracedBody;
pub use client::{Client, ClientLayer};
pub use future::ResponseFuture;
pub use name::RequestHead;
pub use request_bodies::{AsTheyAre, Counted, RequestBodies};
pub use server::{Server, ServerLayer};

esatto::categories! {
    /// Calls of clients and servers, for programs that need no categories of their own.
    pub static RPC = "rpc", "HTTP and gRPC calls", tags: ["rpc"];
}
