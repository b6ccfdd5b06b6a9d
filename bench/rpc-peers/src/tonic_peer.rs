//! `tonic`, with the code that its generator would make. A stream of requests stands for one-way
//! calls.

use std::convert::Infallible;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::contender::{Async, Contender, Tasks, serve_on_runtime};

#[derive(Clone, PartialEq, prost::Message)]
struct Payload {
    #[prost(bytes = "bytes", tag = "1")]
    data: Bytes,
}

type Codec = ProstCodec<Payload, Payload>;

#[derive(Clone)]
struct Echo;

impl tonic::server::NamedService for Echo {
    const NAME: &'static str = "bench.Echo";
}

impl tower::Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(Codec::default());
            Ok(match request.uri().path() {
                "/bench.Echo/Call" => grpc.unary(service_fn(call), request).await,
                "/bench.Echo/Notes" => grpc.client_streaming(service_fn(notes), request).await,
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

async fn call(request: Request<Payload>) -> Result<Response<Payload>, Status> {
    Ok(Response::new(request.into_inner()))
}

async fn notes(request: Request<Streaming<Payload>>) -> Result<Response<Payload>, Status> {
    let mut messages = request.into_inner();
    while let Some(message) = messages.message().await? {
        std::hint::black_box(message);
    }
    Ok(Response::new(Payload::default()))
}

pub(crate) fn serve(socket: &Path) {
    serve_on_runtime(async {
        let listener = UnixListenerStream::new(UnixListener::bind(socket).expect("a socket"));
        Server::builder().add_service(Echo).serve_with_incoming(listener).await.expect("connections");
    });
}

pub(crate) fn connect(socket: &Path, connections: usize) -> Box<dyn Contender> {
    let socket: PathBuf = socket.to_owned();
    Tasks::boxed(connections, || {
        let socket = socket.clone();
        async move {
            let connect = move |_| {
                let socket = socket.clone();
                async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(socket).await?)) }
            };
            let endpoint = Endpoint::from_static("http://bench");
            let channel = endpoint.connect_with_connector(service_fn(connect)).await.expect("the server listens");
            Client(tonic::client::Grpc::new(channel))
        }
    })
}

#[derive(Clone)]
struct Client(tonic::client::Grpc<Channel>);

impl Async for Client {
    async fn round_trips(mut self, calls: usize, payload: Vec<u8>) {
        let message = Payload { data: payload.into() };
        for _ in 0..calls {
            self.0.ready().await.expect("the server listens");
            let path = PathAndQuery::from_static("/bench.Echo/Call");
            let reply = self.0.unary(Request::new(message.clone()), path, Codec::default()).await;
            let reply: Payload = reply.expect("the server answers").into_inner();
            assert_eq!(reply.data.len(), message.data.len());
        }
    }

    async fn one_way(mut self, calls: usize, payload: Vec<u8>) {
        let message = Payload { data: payload.into() };
        self.0.ready().await.expect("the server listens");
        let messages = tokio_stream::iter((0..calls).map(move |_| message.clone()));
        let path = PathAndQuery::from_static("/bench.Echo/Notes");
        let reply = self.0.client_streaming(Request::new(messages), path, Codec::default()).await;
        let _: Payload = reply.expect("the server answers").into_inner();
    }
}
