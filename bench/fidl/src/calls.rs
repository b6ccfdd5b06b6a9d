//! Calls over a UNIX socket, and without one.

use std::hint::black_box;
use std::sync::OnceLock;
use std::thread;

use bench_harness::{Batch, Case};
use esatto_fidl::body::Body;
use esatto_fidl::{Header, Method, Responder, endpoints};
use esatto_ipc::observed::{Begin, Connection, Traced};
use esatto_ipc::server::Incoming;
use esatto_ipc::{Channel, ServerConnection, ServerLimits, Stream};

use crate::fidl::bench as fidl;
use crate::fidl::bench::echo::{Client, Methods, method, serve};
use crate::protos::bench::{Payload, echo};

pub(crate) const CASES: &[Case] = &[
    Case { name: "round trip: fidl", ops: 100, events: 0, run: round_trip },
    Case { name: "round trip: esatto-ipc", ops: 100, events: 0, run: round_trip_ipc },
    Case { name: "one-way call", ops: 400, events: 0, run: one_way },
    Case { name: "one-way call without a socket", ops: 400, events: 0, run: in_memory },
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

type Note = method::Note;

/// A message through the codec and the hooks of both sides, in the order of the bindings, without
/// the socket between them.
fn in_memory(batch: &mut Batch) {
    let (connection, mut bytes) = (Connection::new(7), Vec::new());
    batch.time(|i| pass(&connection, &mut bytes, i));
}

#[inline(never)]
fn pass(connection: &Connection, bytes: &mut Vec<u8>, number: u64) {
    let header = Header { txid: 0, strictness: Note::INFO.strictness, ordinal: Note::INFO.ordinal };
    bytes.clear();
    bytes.extend_from_slice(&[0; Header::SIZE]);
    let mut handles = Vec::new();
    let note = fidl::EchoNoteRequest { value: black_box(7) };
    <Note as Method>::Request::encode(&note, bytes, &mut handles).expect("it has an encoding");
    let traced = Traced::request(&Note::INFO.traced, || begin(connection, number, &bytes[Header::SIZE..]));
    bytes[..Header::SIZE].copy_from_slice(&header.to_bytes());
    traced.request_sent();
    let message = black_box(&bytes[Header::SIZE..]);
    let traced = Traced::invocation(&Note::INFO.traced, || begin(connection, number, message));
    let decoded = <Note as Method>::Request::decode(message, Vec::new());
    let _invoking = traced.invoking();
    black_box(decoded.expect("own bytes"));
}

fn begin<'a>(connection: &'a Connection, number: u64, message: &'a [u8]) -> Begin<'a> {
    Begin {
        connection,
        request_id: 1 << 32 | number,
        message,
        has_fd: false,
        is_blocking: false,
        is_from_acceptor: false,
        own_flow_id: Some(connection.seed() << 48 | Note::INFO.ordinal << 16 | number & 0xff),
    }
}
