//! If a producer has sent thousands of calls, the service handles some of them, and then serves
//! other clients.

use crate::harness::{DEADLINE, Folder};
use esatto_daemon::{Daemon, Options};
use esatto_ipc::frame::{FrameBody, encode};
use esatto_ipc::{Address, FrameDecoder, Stream};
use esatto_ports::Rpc as _;
use esatto_ports::{consumer_port, producer_port};
use esatto_protozero::Owned as _;
use esatto_schema::{
    InitializeConnectionRequest, QueryServiceStateRequest, QueryServiceStateResponse, RegisterDataSourceRequest,
    TracingServiceState,
};

const CALLS: usize = 400;

/// Encoder for calls of a producer. The first one introduces it.
struct Calls {
    bytes: Vec<u8>,
    count: u64,
}

impl Calls {
    fn new() -> Self {
        let mut calls = Self { bytes: Vec::new(), count: 0 };
        let hello = InitializeConnectionRequest { producer_name: Some("flood".into()), ..Default::default() };
        calls.add(producer_port::method::InitializeConnection::METHOD, &hello.encode());
        calls
    }

    fn add(&mut self, method: u32, request: &[u8]) {
        self.count += 1;
        encode::invoke_method(&mut self.bytes, self.count, 1, method, request, true).unwrap();
    }
}

/// Returns the state of the service for a consumer that asked last.
///
/// All calls are sent before the service starts, so that the service chooses their order.
fn state_after(flood: impl FnOnce(&dyn Fn() -> Stream)) -> Vec<TracingServiceState> {
    let folder = Folder::create();
    let (producers, consumers) = (Address::Path(folder.path("p")), Address::Path(folder.path("c")));
    let daemon = Daemon::bind(Options::new(producers.clone(), consumers.clone())).unwrap();
    flood(&|| Stream::connect(&producers, DEADLINE).unwrap());
    let consumer = Stream::connect(&consumers, DEADLINE).unwrap();
    let mut question = Vec::new();
    let request = QueryServiceStateRequest::default().encode();
    encode::invoke_method(&mut question, 1, 1, consumer_port::method::QueryServiceState::METHOD, &request, false)
        .unwrap();
    assert_eq!(consumer.send(&question, None).unwrap(), question.len());

    let daemon = daemon.spawn_thread().unwrap();
    let mut decoder = FrameDecoder::new();
    let mut states = Vec::new();
    'reading: loop {
        let room = decoder.spare();
        let Some(received) = consumer.recv(room).unwrap() else {
            std::thread::yield_now();
            continue;
        };
        assert!(received.len > 0, "disconnected");
        decoder.advance(received.len);
        while let Some(frame) = decoder.next_frame().unwrap() {
            let FrameBody::InvokeMethodReply { body, has_more, .. } = frame.body else { panic!("{frame:?}") };
            states.push(*QueryServiceStateResponse::decode(body).unwrap().service_state.unwrap());
            if !has_more {
                break 'reading;
            }
        }
    }
    daemon.stop();
    states
}

#[test]
fn while_the_producer_is_connected() {
    let mut calls = Calls::new();
    for number in 0..CALLS {
        let mut request = RegisterDataSourceRequest::default();
        request.data_source_descriptor.get_or_insert_default().name = Some(format!("source {number}").into());
        calls.add(producer_port::method::RegisterDataSource::METHOD, &request.encode());
    }
    let mut producer = None;
    let states = state_after(|connect| {
        let stream = connect();
        assert_eq!(stream.send(&calls.bytes, None).unwrap(), calls.bytes.len(), "the socket takes it all");
        producer = Some(stream);
    });
    let found: usize = states.iter().map(|state| state.data_sources.len()).sum();
    assert!(found < CALLS / 2, "{found} of {CALLS} calls were handled before the question");
}

/// The service handles at once as many calls as a well-behaved process leaves, but not far more.
#[test]
fn after_the_producer_has_ended() {
    for (calls_sent, is_over) in [(2_000, true), (20_000, false)] {
        let mut calls = Calls::new();
        while calls.count < calls_sent {
            calls.add(producer_port::method::CommitData::METHOD, &[]);
        }
        let states = state_after(|connect| {
            let stream = connect();
            rustix::net::sockopt::set_socket_send_buffer_size(&stream, 1 << 20).unwrap();
            let sent = stream.send(&calls.bytes, None).unwrap();
            assert_eq!(sent, calls.bytes.len(), "the socket takes it all");
        });
        let is_gone = states.iter().all(|state| state.producers.is_empty());
        assert_eq!(is_gone, is_over, "after {calls_sent} calls");
    }
}

/// Very many processes end at the same time with many unhandled calls. A producer that connects
/// later is served before most of their calls are handled.
#[test]
fn after_many_producers_have_ended() {
    const PROCESSES: u32 = 40;
    // Names of triggers, each of which is looked up.
    let names = [0x0a, 0].repeat(4096);
    let mut calls = Calls::new();
    while calls.count < 25 {
        calls.add(producer_port::method::ActivateTriggers::METHOD, &names);
    }
    let mut producer = None;
    let states = state_after(|connect| {
        for _ in 0..PROCESSES {
            let stream = connect();
            rustix::net::sockopt::set_socket_send_buffer_size(&stream, 1 << 20).unwrap();
            assert_eq!(stream.send(&calls.bytes, None).unwrap(), calls.bytes.len(), "the socket takes it all");
        }
        let last = connect();
        let hello = Calls::new().bytes;
        assert_eq!(last.send(&hello, None).unwrap(), hello.len());
        producer = Some(last);
    });
    let mut producers = states.iter().flat_map(|state| &state.producers);
    let number = producers.next().expect("the producer is served").id.unwrap();
    assert!(number <= PROCESSES as i32 / 2, "{} processes were dealt with first", number - 1);
}
