//! A producer that has sent thousands of calls gets some of them handled, then it is the turn of others.

use crate::lab::{DEADLINE, Folder};
use esatto_daemon::{Daemon, Options};
use esatto_ipc::frame::{FrameBody, encode};
use esatto_ipc::{Address, FrameDecoder, Stream};
use esatto_protozero::Owned as _;
use esatto_schema::{
    InitializeConnectionRequest, QueryServiceStateRequest, QueryServiceStateResponse, RegisterDataSourceRequest,
    consumer_port, producer_port,
};

const CALLS: usize = 400;

/// Everything is sent before the service looks at anything: what it does first is its own choice.
#[test]
fn of_calls() {
    let folder = Folder::create();
    let (producers, consumers) = (Address::Path(folder.path("p")), Address::Path(folder.path("c")));
    let daemon = Daemon::bind(Options::new(producers.clone(), consumers.clone())).unwrap();
    let producer = Stream::connect(&producers, DEADLINE).unwrap();
    let mut calls = Vec::new();
    let mut id = 0;
    let mut call = |method: producer_port::Method, request: Vec<u8>| {
        id += 1;
        encode::invoke_method(&mut calls, id, 1, method.id(), &request, true).unwrap();
    };
    let hello = InitializeConnectionRequest { producer_name: Some("flood".into()), ..Default::default() };
    call(producer_port::Method::InitializeConnection, hello.encode());
    for number in 0..CALLS {
        let mut request = RegisterDataSourceRequest::default();
        request.data_source_descriptor.get_or_insert_default().name = Some(format!("source {number}").into());
        call(producer_port::Method::RegisterDataSource, request.encode());
    }
    assert_eq!(producer.send(&calls, None).unwrap(), calls.len(), "the socket takes it all");
    let consumer = Stream::connect(&consumers, DEADLINE).unwrap();
    let mut question = Vec::new();
    let request = QueryServiceStateRequest::default().encode();
    encode::invoke_method(&mut question, 1, 1, consumer_port::Method::QueryServiceState.id(), &request, false).unwrap();
    assert_eq!(consumer.send(&question, None).unwrap(), question.len());

    let daemon = daemon.spawn_thread().unwrap();
    let mut decoder = FrameDecoder::new();
    let mut found = 0;
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
            let state = QueryServiceStateResponse::decode(body).unwrap().service_state.unwrap();
            found += state.data_sources.len();
            if !has_more {
                break 'reading;
            }
        }
    }
    assert!(found < CALLS / 2, "{found} of {CALLS} calls were handled before the question");
    daemon.stop();
}
