//! Calls over a UNIX socket.

use std::hint::black_box;
use std::sync::OnceLock;
use std::thread;

use bench_harness::{Batch, Case};
use esatto_fidl::{Responder, endpoints};
use esatto_ipc::server::Incoming;
use esatto_ipc::{Channel, ServerConnection, ServerLimits, Stream};

use crate::fidl::bench as fidl;
use crate::fidl::bench::echo::{Client, Methods, method, serve};
use crate::protos::bench::{Payload, echo};

pub(crate) const CASES: &[Case] = &[
    Case { name: "round trip: fidl", ops: 100, events: 0, run: round_trip },
    Case { name: "round trip: esatto-ipc", ops: 100, events: 0, run: round_trip_ipc },
    Case { name: "one-way call", ops: 400, events: 0, run: one_way },
];

const DATA: &[u8] = b"sixteen bytes !!";

struct Echo;

impl Methods for Echo {
    fn call(&mut self, request: fidl::EchoCallRequest, responder: Responder<method::Call>) {
        let _ = responder.send(&fidl::EchoCallResponse { data: request.data });
    }

    fn note(&mut self, request: fidl::EchoNoteRequest) {
        black_box(request);
    }
}

impl echo::Handler for Echo {
    fn call(&mut self, call: Incoming<'_, echo::method::Call>) {
        call.answer(Ok);
    }
}

static FIDL: OnceLock<Client> = OnceLock::new();
static IPC: OnceLock<echo::Client> = OnceLock::new();

/// The server's thread is on the CPU of the measured thread, which the harness has chosen.
fn round_trip(batch: &mut Batch) {
    let client = FIDL.get_or_init(|| {
        let (client, server) = endpoints().expect("descriptors");
        thread::spawn(|| serve(server, Echo).expect("a socket").run());
        Client::new(client).expect("a socket")
    });
    batch.time(|_| {
        let request = fidl::EchoCallRequest { data: DATA.to_vec() };
        black_box(client.call(&request).wait().expect("the server answers"));
    });
}

fn round_trip_ipc(batch: &mut Batch) {
    let client = IPC.get_or_init(|| {
        let (ours, theirs) = Stream::pair().expect("descriptors");
        thread::spawn(|| ServerConnection::new(theirs, echo::Serve(Echo), ServerLimits::default()).block());
        echo::Client::new(&Channel::new(ours))
    });
    batch.time(|_| {
        let request = Payload { data: Some(DATA.to_vec()), ..Payload::default() };
        black_box(client.call(&request).wait().expect("the server answers"));
    });
}

/// A message from one end to the other on one thread: it passes hooks at both.
fn one_way(batch: &mut Batch) {
    let (client, server) = endpoints().expect("descriptors");
    let (client, mut server) = (Client::new(client).expect("a socket"), serve(server, Echo).expect("a socket"));
    batch.time(|_| {
        client.note(&fidl::EchoNoteRequest { value: black_box(7) }).expect("there is room");
        server.pump().expect("the client is there");
    });
}
