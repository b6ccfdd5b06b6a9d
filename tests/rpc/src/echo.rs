//! A service of gRPC with methods of each kind, by hand: its messages are bytes.

use core::convert::Infallible;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Response, Status, Streaming};

/// Passes messages on as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Replies of a method that sends several.
type Replies = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

/// The service `test.Echo`.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

impl tonic::server::NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl tower::Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let mut grpc = tonic::server::Grpc::new(BytesCodec);
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/test.Echo/Unary" => grpc.unary(tower::service_fn(unary), request).await,
                "/test.Echo/Refuse" => grpc.unary(tower::service_fn(refuse), request).await,
                "/test.Echo/Sleep" => grpc.unary(tower::service_fn(sleep), request).await,
                "/test.Echo/ServerStream" => grpc.server_streaming(tower::service_fn(server_stream), request).await,
                "/test.Echo/Endless" => grpc.server_streaming(tower::service_fn(endless), request).await,
                "/test.Echo/ClientStream" => grpc.client_streaming(tower::service_fn(client_stream), request).await,
                "/test.Echo/Bidi" => grpc.streaming(tower::service_fn(bidi), request).await,
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

async fn unary(request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
    Ok(Response::new(request.into_inner()))
}

async fn refuse(_: Request<Bytes>) -> Result<Response<Bytes>, Status> {
    Err(Status::permission_denied("a secret reason"))
}

async fn sleep(request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
    tokio::time::sleep(Duration::from_secs(600)).await;
    Ok(Response::new(request.into_inner()))
}

/// Sends as many replies as the request has bytes.
async fn server_stream(request: Request<Bytes>) -> Result<Response<Replies>, Status> {
    let replies = request.into_inner().into_iter().map(|byte| Ok(Bytes::from(vec![byte; 10])));
    Ok(Response::new(Box::pin(tokio_stream::iter(replies.collect::<Vec<_>>()))))
}

async fn endless(_: Request<Bytes>) -> Result<Response<Replies>, Status> {
    let reply = || Ok(Bytes::from_static(b"again"));
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        while sender.send(reply()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    Ok(Response::new(Box::pin(tokio_stream::wrappers::ReceiverStream::new(receiver))))
}

async fn client_stream(request: Request<Streaming<Bytes>>) -> Result<Response<Bytes>, Status> {
    let mut messages = request.into_inner();
    let mut all = Vec::new();
    while let Some(message) = messages.message().await? {
        all.extend(message);
    }
    Ok(Response::new(all.into()))
}

async fn bidi(request: Request<Streaming<Bytes>>) -> Result<Response<Replies>, Status> {
    Ok(Response::new(Box::pin(request.into_inner().map(|message| message))))
}

/// Client of the service, with any transport.
#[derive(Debug)]
pub struct Client<T>(tonic::client::Grpc<T>);

impl<T> Client<T>
where
    T: GrpcService<Body>,
    T::Error: core::fmt::Debug,
    T::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as http_body::Body>::Error: Into<Box<dyn core::error::Error + Send + Sync>> + Send,
    T::Error: Into<Box<dyn core::error::Error + Send + Sync>>,
{
    /// A client of a service at `origin`.
    ///
    /// # Panics
    ///
    /// That is no address.
    pub fn new(transport: T, origin: &str) -> Self {
        Self(tonic::client::Grpc::with_origin(transport, origin.parse().expect("an address")))
    }

    async fn path(&mut self, method: &str) -> PathAndQuery {
        self.0.ready().await.unwrap_or_else(|error| panic!("the transport is ready: {error:?}"));
        format!("/test.Echo/{method}").parse().expect("a path")
    }

    /// Calls a method with one message and one reply.
    pub async fn unary(&mut self, method: &str, request: Request<Bytes>) -> Result<Bytes, Status> {
        let path = self.path(method).await;
        Ok(self.0.unary(request, path, BytesCodec).await?.into_inner())
    }

    /// Calls a method with one message and several replies.
    pub async fn server_stream(&mut self, method: &str, message: Bytes) -> Result<Streaming<Bytes>, Status> {
        let path = self.path(method).await;
        Ok(self.0.server_streaming(Request::new(message), path, BytesCodec).await?.into_inner())
    }

    /// Calls a method with several messages and one reply.
    pub async fn client_stream(&mut self, method: &str, messages: Vec<Bytes>) -> Result<Bytes, Status> {
        let path = self.path(method).await;
        let messages = Request::new(tokio_stream::iter(messages));
        Ok(self.0.client_streaming(messages, path, BytesCodec).await?.into_inner())
    }

    /// Calls a method with several messages and several replies.
    pub async fn bidi(
        &mut self,
        method: &str,
        messages: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Result<Streaming<Bytes>, Status> {
        let path = self.path(method).await;
        Ok(self.0.streaming(Request::new(messages), path, BytesCodec).await?.into_inner())
    }
}
