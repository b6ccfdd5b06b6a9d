//! `esatto-ipc` with generated bindings, without hooks.

use std::path::Path;
use std::time::Duration;

use esatto_ipc::server::{Context, Incoming};
use esatto_ipc::{Address, Channel, Listener, Server, Status};

use crate::contender::{Async, Blocking, Contender, Tasks, Threads, serve_on_runtime};

/// Code that `build.rs` generated.
#[allow(missing_docs)]
mod protos {
    include!(concat!(env!("OUT_DIR"), "/protos.rs"));
}

use protos::bench::{Payload, echo};

/// The service as plain functions.
#[derive(Clone)]
struct Plain;

impl echo::Handler for Plain {
    fn call(&mut self, call: Incoming<'_, echo::method::Call>) {
        call.answer(Ok);
    }

    fn note(&mut self, call: Incoming<'_, echo::method::Note>) {
        std::hint::black_box(call.request().is_ok());
    }
}

/// The service as async functions.
struct Futures;

impl echo::Server for Futures {
    async fn call(&self, _: &Context, request: Payload) -> Result<Payload, Status> {
        Ok(request)
    }

    async fn note(&self, _: &Context, request: Payload) {
        std::hint::black_box(request);
    }
}

fn address(socket: &Path) -> Address {
    Address::parse(socket.to_str().expect("UTF-8")).expect("a path")
}

pub(crate) fn serve_handler(socket: &Path) {
    let listener = Listener::bind(&address(socket)).expect("a socket");
    Server::new(echo::Serve(Plain)).serve_blocking(&listener).expect("connections");
}

pub(crate) fn serve_async_fn(socket: &Path) {
    let listener = Listener::bind(&address(socket)).expect("a socket");
    Server::new(echo::ServeAsync::new(Futures)).serve_blocking(&listener).expect("connections");
}

pub(crate) fn serve_tokio(socket: &Path) {
    serve_on_runtime(async {
        let listener = Listener::bind(&address(socket)).expect("a socket");
        Server::new(echo::ServeAsync::new(Futures)).serve(&listener).await.expect("connections");
    });
}

fn client(socket: &Path) -> echo::Client {
    echo::Client::new(&Channel::connect(&address(socket), Duration::from_secs(10)).expect("the server listens"))
}

fn request(payload: &[u8]) -> Payload {
    Payload { data: Some(payload.to_vec()), ..Payload::default() }
}

fn check(reply: &Payload, request: &Payload) {
    assert_eq!(reply.data.as_ref().map(Vec::len), request.data.as_ref().map(Vec::len));
}

pub(crate) fn connect(socket: &Path, connections: usize) -> Box<dyn Contender> {
    Box::new(Threads((0..connections).map(|_| client(socket)).collect()))
}

impl Blocking for echo::Client {
    fn round_trips(&mut self, calls: usize, payload: &[u8]) {
        let request = request(payload);
        for _ in 0..calls {
            check(&self.call(&request).wait().expect("the server answers"), &request);
        }
    }

    fn one_way(&mut self, calls: usize, payload: &[u8]) {
        let request = request(payload);
        for _ in 0..calls {
            self.note(&request).send().expect("the server reads");
        }
        self.round_trips(1, payload);
    }
}

pub(crate) fn connect_tokio(socket: &Path, connections: usize) -> Box<dyn Contender> {
    Tasks::boxed(connections, || async {
        let client = client(socket);
        client.channel().spawn_driver().expect("a runtime");
        client
    })
}

impl Async for echo::Client {
    async fn round_trips(self, calls: usize, payload: Vec<u8>) {
        let request = request(&payload);
        for _ in 0..calls {
            check(&self.call(&request).await.expect("the server answers"), &request);
        }
    }

    async fn one_way(self, calls: usize, payload: Vec<u8>) {
        let request = request(&payload);
        for _ in 0..calls {
            self.note(&request).send_async().await.expect("the server reads");
        }
        Async::round_trips(self, 1, payload).await;
    }
}
