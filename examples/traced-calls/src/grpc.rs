//! The order, which goes by gRPC: a client and a server of tonic with the layers of `esatto-tower`.

use std::convert::Infallible;
use std::future::Future;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use esatto_protozero::Owned;
use esatto_tower::{Client, ClientLayer, RPC, ServerLayer};
use http::uri::PathAndQuery;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};
use tower::{Layer, Service, service_fn};

use crate::protos::shop::Order;

const PLACE: &str = "/shop.Orders/Place";

/// Passes encoded messages on.
#[derive(Clone, Copy, Debug, Default)]
struct Encoded;

impl Codec for Encoded {
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

impl Encoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Client of `shop.Orders`.
pub(crate) struct Orders(tonic::client::Grpc<Client<Channel>>);

impl Orders {
    pub(crate) async fn connect(socket: PathBuf) -> Result<Self, tonic::transport::Error> {
        let channel = Endpoint::from_shared(format!("unix:{}", socket.display()))?.connect().await?;
        // Without slices of its own, a call adds its arrow to the slice around it.
        let client = ClientLayer::new(&RPC).slices(false).layer(channel);
        let origin = http::Uri::from_static("http://store");
        Ok(Self(tonic::client::Grpc::with_origin(client, origin)))
    }

    pub(crate) async fn place(&mut self, order: &Order) -> Result<(), Status> {
        self.0.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let message = Request::new(Bytes::from(order.encode()));
        self.0.unary(message, PathAndQuery::from_static(PLACE), Encoded).await?;
        Ok(())
    }
}

/// Server of `shop.Orders`, which gives each order to a function.
#[derive(Clone)]
struct OrderServer(Arc<dyn Fn(Order) -> std::io::Result<()> + Send + Sync>);

/// Serves until the process ends.
pub(crate) async fn serve(
    socket: &Path,
    place: impl Fn(Order) -> std::io::Result<()> + Send + Sync + 'static,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let listener = UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    let incoming = tokio_stream::wrappers::UnixListenerStream::new(tokio::net::UnixListener::from_std(listener)?);
    let server = OrderServer(Arc::new(place));
    tonic::transport::Server::builder().add_service(server).serve_with_incoming(incoming).await?;
    Ok(())
}

impl tonic::server::NamedService for OrderServer {
    const NAME: &'static str = "shop.Orders";
}

impl Service<http::Request<Body>> for OrderServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let place = Arc::clone(&self.0);
        let orders = service_fn(move |request: http::Request<Body>| {
            let place = Arc::clone(&place);
            let place = service_fn(move |message: Request<Bytes>| {
                let placed = Order::decode(&message.into_inner()).map(|order| place(order));
                async {
                    match placed {
                        Ok(Ok(())) => Ok(Response::new(Bytes::new())),
                        Ok(Err(error)) => Err(Status::internal(error.to_string())),
                        Err(_) => Err(Status::invalid_argument("no order")),
                    }
                }
            });
            async move {
                Ok::<_, Infallible>(match request.uri().path() {
                    PLACE => tonic::server::Grpc::new(Encoded).unary(place, request).await,
                    _ => Status::unimplemented("no such method").into_http(),
                })
            }
        });
        // Without slices of its own, the layer adds its arrows to the slice around it, in which the
        // work is done.
        let mut layered = ServerLayer::new(&RPC).slices(false).layer(orders);
        let answer = async move { layered.call(request).await };
        Box::pin(async move {
            let response = esatto::async_slice!(crate::APP, "place order").run(answer).await?;
            Ok(response.map(Body::new))
        })
    }
}
