//! A client and a server of one method, with an interface by hand.

use std::ops::Deref;
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

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let socket = std::env::temp_dir().join("bench-user");
    let listener = UnixListener::bind(&socket)?;
    tokio::task::spawn_local(async move {
        let service: Echo = capnp_rpc::new_client(Service);
        while let Ok((stream, _)) = listener.accept().await {
            let system = RpcSystem::new(network(stream, Side::Server), Some(Client::new(service.0.hook.add_ref())));
            tokio::task::spawn_local(system);
        }
    });
    let mut system = RpcSystem::new(network(UnixStream::connect(&socket).await?, Side::Client), None);
    let client: Echo = system.bootstrap(Side::Server);
    tokio::task::spawn_local(system);
    let mut request = client.0.new_call::<any_pointer::Owned, any_pointer::Owned>(INTERFACE, CALL, None);
    request.get().set_as::<data::Owned>(&b"hello"[..])?;
    let response = request.send().promise.await?;
    let reply: data::Reader<'_> = response.get()?.get_as()?;
    println!("{reply:?}");
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, run())
}
