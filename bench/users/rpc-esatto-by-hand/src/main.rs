//! A client and a server of the sample service, blocking, with bindings that are checked in.

use std::time::Duration;

use esatto_ipc::server::{Context, Replies};
use esatto_ipc::{Address, Channel, Listener, Server, Status};

#[allow(missing_docs)]
mod messages {
    include!("../../../../crates/ipc/tests/rpc/sample/messages.rs");
}

use messages::sample::{Event, GetReply, GetRequest, Text, WatchRequest, store};

struct Shelf;

impl store::Server for Shelf {
    async fn get(&self, _: &Context, request: GetRequest) -> Result<GetReply, Status> {
        Ok(GetReply { value: request.key, ..GetReply::default() })
    }

    async fn watch(&self, _: &Context, _: WatchRequest, mut replies: Replies<Event>) -> Result<(), Status> {
        Ok(replies.send(&Event::default()).await?)
    }

    async fn note(&self, _: &Context, _: Text) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = Address::parse("@bench-user")?;
    let listener = Listener::bind(&address)?;
    std::thread::spawn(move || Server::new(store::ServeAsync::new(Shelf)).serve_blocking(&listener));
    let client = store::Client::new(&Channel::connect(&address, Duration::from_secs(1))?);
    let reply = client.get(&GetRequest { key: Some("hello".into()), ..GetRequest::default() }).wait()?;
    println!("{:?}", reply.value);
    Ok(())
}
