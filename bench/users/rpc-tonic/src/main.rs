//! A client and a server of one method, with the code that the generators would make.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

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
            Ok(grpc.unary(service_fn(call), request).await)
        })
    }
}

async fn call(request: Request<Payload>) -> Result<Response<Payload>, Status> {
    Ok(Response::new(request.into_inner()))
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let socket = std::env::temp_dir().join("bench-user");
    let listener = UnixListenerStream::new(UnixListener::bind(&socket)?);
    tokio::spawn(Server::builder().add_service(Echo).serve_with_incoming(listener));
    let connect = move |_| {
        let socket = socket.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(socket).await?)) }
    };
    let channel = Endpoint::from_static("http://bench").connect_with_connector(service_fn(connect)).await?;
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await?;
    let request = Request::new(Payload { data: Bytes::from_static(b"hello") });
    let reply = client.unary(request, PathAndQuery::from_static("/bench.Echo/Call"), Codec::default()).await?;
    let reply: Payload = reply.into_inner();
    println!("{:?}", reply.data);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run())
}
