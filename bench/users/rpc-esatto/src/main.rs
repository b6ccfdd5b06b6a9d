//! A client and a server of one method, blocking.

use std::time::Duration;

use esatto_ipc::server::Context;
use esatto_ipc::{Address, Channel, Listener, Server, Status};

/// Code that `build.rs` generated.
#[allow(missing_docs)]
mod protos {
    include!(concat!(env!("OUT_DIR"), "/protos.rs"));
}

use protos::bench::{Payload, echo};

struct Service;

impl echo::Server for Service {
    async fn call(&self, _: &Context, request: Payload) -> Result<Payload, Status> {
        Ok(request)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = Address::parse("@bench-user")?;
    let listener = Listener::bind(&address)?;
    std::thread::spawn(move || Server::new(echo::ServeAsync::new(Service)).serve_blocking(&listener));
    let client = echo::Client::new(&Channel::connect(&address, Duration::from_secs(1))?);
    let reply = client.call(&Payload { data: Some(b"hello".to_vec()), ..Payload::default() }).wait()?;
    println!("{:?}", reply.data);
    Ok(())
}
