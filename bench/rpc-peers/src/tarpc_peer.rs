//! `tarpc` with bincode. It has no one-way calls.

use std::path::Path;

use futures::StreamExt as _;
use serde_bytes::ByteBuf;
use tarpc::context;
use tarpc::serde_transport::unix;
use tarpc::server::{BaseChannel, Channel as _};
use tarpc::tokio_serde::formats::Bincode;

use crate::contender::{Async, Contender, Tasks, in_flight, serve_on_runtime};

#[tarpc::service]
trait Echo {
    async fn call(payload: ByteBuf) -> ByteBuf;
    async fn note(payload: ByteBuf);
}

#[derive(Clone)]
struct Service;

impl Echo for Service {
    async fn call(self, _: context::Context, payload: ByteBuf) -> ByteBuf {
        payload
    }

    async fn note(self, _: context::Context, payload: ByteBuf) {
        std::hint::black_box(payload);
    }
}

pub(crate) fn serve(socket: &Path) {
    serve_on_runtime(async {
        let mut incoming = unix::listen(socket, Bincode::default).await.expect("a socket");
        while let Some(transport) = incoming.next().await {
            let channel = BaseChannel::with_defaults(transport.expect("a connection"));
            let calls = channel.execute(Service.serve()).for_each(|call| async {
                tokio::spawn(call);
            });
            tokio::task::spawn_local(calls);
        }
    });
}

pub(crate) fn connect(socket: &Path, connections: usize) -> Box<dyn Contender> {
    Tasks::boxed(connections, || async {
        let transport = unix::connect(socket, Bincode::default).await.expect("the server listens");
        EchoClient::new(tarpc::client::Config::default(), transport).spawn()
    })
}

impl Async for EchoClient {
    async fn round_trips(self, calls: usize, payload: Vec<u8>) {
        let payload = ByteBuf::from(payload);
        for _ in 0..calls {
            let reply = self.call(context::current(), payload.clone()).await.expect("the server answers");
            assert_eq!(reply.len(), payload.len());
        }
    }

    async fn one_way(self, calls: usize, payload: Vec<u8>) {
        let payload = ByteBuf::from(payload);
        in_flight(calls, || async {
            self.note(context::current(), payload.clone()).await.expect("the server answers");
        })
        .await;
    }
}
