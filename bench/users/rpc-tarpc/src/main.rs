//! A client and a server of one method.

use futures::StreamExt as _;
use tarpc::context;
use tarpc::serde_transport::unix;
use tarpc::server::{BaseChannel, Channel as _};
use tarpc::tokio_serde::formats::Bincode;

#[tarpc::service]
trait Echo {
    async fn call(payload: Vec<u8>) -> Vec<u8>;
}

#[derive(Clone)]
struct Service;

impl Echo for Service {
    async fn call(self, _: context::Context, payload: Vec<u8>) -> Vec<u8> {
        payload
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let socket = std::env::temp_dir().join("bench-user");
    let mut incoming = unix::listen(&socket, Bincode::default).await?;
    tokio::spawn(async move {
        while let Some(Ok(transport)) = incoming.next().await {
            let calls = BaseChannel::with_defaults(transport).execute(Service.serve());
            calls.for_each(|call| async { drop(tokio::spawn(call)) }).await;
        }
    });
    let client = EchoClient::new(tarpc::client::Config::default(), unix::connect(&socket, Bincode::default).await?);
    println!("{:?}", client.spawn().call(context::current(), b"hello".to_vec()).await?);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run())
}
