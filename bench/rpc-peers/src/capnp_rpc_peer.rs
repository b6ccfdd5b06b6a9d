//! `capnp-rpc`, with an interface by hand, because its generator needs a C++ program. The
//! parameters and the results are the bytes, without a structure around them. It has no one-way
//! calls.

use std::ops::Deref;
use std::path::Path;
use std::rc::Rc;

use capnp::any_pointer;
use capnp::capability::{Client, DispatchCallResult, FromClientHook, FromServer, Params, Promise, Results, Server};
use capnp::data;
use capnp::private::capability::ClientHook;
use capnp_rpc::rpc_twoparty_capnp::Side;
use capnp_rpc::{RpcSystem, twoparty};
use futures::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::compat::TokioAsyncReadCompatExt as _;

use crate::contender::{Async, Contender, Tasks, in_flight, serve_on_runtime};

const INTERFACE: u64 = 0xbe9c_0000_0000_0001;
const CALL: u16 = 0;

struct Service;

/// Dispatches calls, as generated code does.
#[derive(Clone)]
struct Dispatch(Rc<Service>);

impl Deref for Dispatch {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.0
    }
}

impl Server for Dispatch {
    fn dispatch_call(
        self,
        _: u64,
        _: u16,
        params: Params<any_pointer::Owned>,
        mut results: Results<any_pointer::Owned>,
    ) -> DispatchCallResult {
        let answer = async move {
            let bytes: data::Reader<'_> = params.get()?.get_as()?;
            results.get().set_as::<data::Owned>(bytes)
        };
        DispatchCallResult::new(Promise::from_future(answer), false)
    }

    fn as_ptr(&self) -> usize {
        Rc::as_ptr(&self.0) as usize
    }
}

/// The client, as generated code has it.
#[derive(Clone)]
struct Echo(Client);

impl FromClientHook for Echo {
    fn new(hook: Box<dyn ClientHook>) -> Self {
        Self(Client::new(hook))
    }

    fn into_client_hook(self) -> Box<dyn ClientHook> {
        self.0.hook
    }

    fn as_client_hook(&self) -> &dyn ClientHook {
        &*self.0.hook
    }
}

impl FromServer<Service> for Echo {
    type Dispatch = Dispatch;

    fn from_server(service: Rc<Service>) -> Dispatch {
        Dispatch(service)
    }
}

fn network(stream: UnixStream, side: Side) -> Box<twoparty::VatNetwork<impl futures::AsyncRead + Unpin>> {
    let (reader, writer) = stream.compat().split();
    Box::new(twoparty::VatNetwork::new(
        futures::io::BufReader::new(reader),
        futures::io::BufWriter::new(writer),
        side,
        capnp::message::ReaderOptions::default(),
    ))
}

pub(crate) fn serve(socket: &Path) {
    serve_on_runtime(async {
        let listener = UnixListener::bind(socket).expect("a socket");
        let service: Echo = capnp_rpc::new_client(Service);
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let system = RpcSystem::new(network(stream, Side::Server), Some(Client::new(service.0.hook.add_ref())));
            tokio::task::spawn_local(system);
        }
    });
}

pub(crate) fn connect(socket: &Path, connections: usize) -> Box<dyn Contender> {
    Tasks::boxed(connections, || async {
        let stream = UnixStream::connect(socket).await.expect("the server listens");
        let mut system = RpcSystem::new(network(stream, Side::Client), None);
        let client: Echo = system.bootstrap(Side::Server);
        tokio::task::spawn_local(system);
        client
    })
}

impl Echo {
    async fn call(&self, payload: &[u8]) {
        let mut request = self.0.new_call::<any_pointer::Owned, any_pointer::Owned>(INTERFACE, CALL, None);
        request.get().set_as::<data::Owned>(payload).expect("room");
        let response = request.send().promise.await.expect("the server answers");
        let reply: data::Reader<'_> = response.get().and_then(|reply| reply.get_as()).expect("bytes");
        // A program that keeps the bytes copies them, as the other libraries do.
        assert_eq!(std::hint::black_box(reply.to_vec()).len(), payload.len());
    }
}

impl Async for Echo {
    async fn round_trips(self, calls: usize, payload: Vec<u8>) {
        for _ in 0..calls {
            self.call(&payload).await;
        }
    }

    async fn one_way(self, calls: usize, payload: Vec<u8>) {
        in_flight(calls, || self.call(&payload)).await;
    }
}
