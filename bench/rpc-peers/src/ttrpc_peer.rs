//! `ttrpc`, blocking and async, with the code that its generator would make. It has no one-way
//! calls: the blocking client waits for each, the async client has several open.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use async_trait::async_trait;
use protobuf::well_known_types::wrappers::BytesValue as Payload;
use ttrpc::r#async::TtrpcContext as AsyncContext;
use ttrpc::proto::{Request, Response};

use crate::contender::{Async, Blocking, Contender, Tasks, Threads, in_flight, serve_on_runtime};

const SERVICE: &str = "bench.Echo";
const METHOD: &str = "Call";

struct Echo;

impl Echo {
    fn call(&self, _: &ttrpc::sync::TtrpcContext, request: Payload) -> ttrpc::Result<Payload> {
        Ok(request)
    }

    async fn call_async(&self, _: &AsyncContext, request: Payload) -> ttrpc::Result<Payload> {
        Ok(request)
    }
}

struct Method {
    service: Arc<Echo>,
}

impl ttrpc::sync::MethodHandler for Method {
    fn handler(&self, ctx: ttrpc::sync::TtrpcContext, req: Request) -> ttrpc::Result<()> {
        ttrpc::request_handler!(self, ctx, req, Payload, call);
        Ok(())
    }
}

#[async_trait]
impl ttrpc::r#async::MethodHandler for Method {
    async fn handler(&self, ctx: AsyncContext, req: Request) -> ttrpc::Result<Response> {
        ttrpc::async_request_handler!(self, ctx, req, Payload, call_async);
    }
}

fn address(socket: &Path) -> String {
    format!("unix://{}", socket.display())
}

pub(crate) fn serve(socket: &Path) {
    let method: Box<dyn ttrpc::sync::MethodHandler + Send + Sync> = Box::new(Method { service: Arc::new(Echo) });
    let methods = HashMap::from([(format!("/{SERVICE}/{METHOD}"), method)]);
    let server = ttrpc::sync::Server::new().bind(&address(socket)).expect("a socket");
    let mut server = server.register_service(methods);
    server.start().expect("the server starts");
    loop {
        thread::park();
    }
}

pub(crate) fn serve_async(socket: &Path) {
    serve_on_runtime(async {
        let method: Box<dyn ttrpc::r#async::MethodHandler + Send + Sync> = Box::new(Method { service: Arc::new(Echo) });
        let methods = HashMap::from([(METHOD.to_owned(), method)]);
        let service = ttrpc::r#async::Service { methods, streams: HashMap::new() };
        let services = HashMap::from([(SERVICE.to_owned(), service)]);
        let server = ttrpc::r#async::Server::new().bind(&address(socket)).expect("a socket");
        let mut server = server.register_service(services);
        server.start().await.expect("the server starts");
        std::future::pending().await
    });
}

fn payload(bytes: &[u8]) -> Payload {
    let mut payload = Payload::new();
    payload.value = bytes.to_vec();
    payload
}

fn request(message: &Payload) -> Request {
    let mut request = Request::new();
    request.service = SERVICE.to_owned();
    request.method = METHOD.to_owned();
    request.payload = ttrpc::proto::Codec::encode(message).expect("a message");
    request
}

fn check(response: &Response, message: &Payload) {
    let reply = <Payload as ttrpc::proto::Codec>::decode(&response.payload).expect("a message");
    assert_eq!(reply.value.len(), message.value.len());
}

pub(crate) fn connect(socket: &Path, connections: usize) -> Box<dyn Contender> {
    let connect = |_| ttrpc::sync::Client::connect(&address(socket)).expect("the server listens");
    Box::new(Threads((0..connections).map(connect).collect()))
}

impl Blocking for ttrpc::sync::Client {
    fn round_trips(&mut self, calls: usize, bytes: &[u8]) {
        let message = payload(bytes);
        for _ in 0..calls {
            check(&self.request(request(&message)).expect("the server answers"), &message);
        }
    }

    fn one_way(&mut self, calls: usize, bytes: &[u8]) {
        self.round_trips(calls, bytes);
    }
}

pub(crate) fn connect_async(socket: &Path, connections: usize) -> Box<dyn Contender> {
    Tasks::boxed(connections, || async {
        ttrpc::r#async::Client::connect(&address(socket)).await.expect("the server listens")
    })
}

impl Async for ttrpc::r#async::Client {
    async fn round_trips(self, calls: usize, bytes: Vec<u8>) {
        let message = payload(&bytes);
        for _ in 0..calls {
            check(&self.request(request(&message)).await.expect("the server answers"), &message);
        }
    }

    async fn one_way(self, calls: usize, bytes: Vec<u8>) {
        let message = payload(&bytes);
        in_flight(calls, || async {
            check(&self.request(request(&message)).await.expect("the server answers"), &message);
        })
        .await;
    }
}
