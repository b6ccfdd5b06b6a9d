//! The reply tables of three service versions. The answers of the transport are equal. If a method
//! answered, this crate writes its answer with the same bytes.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use esatto_ipc::service::Service;
use esatto_ipc::{Frame, FrameBody, FrameDecoder, Host, HostEvent, Peer};
use esatto_ports::{consumer_port, producer_port};

use crate::captures::{CAPTURES, hex, unhex};

struct Connection {
    decoder: FrameDecoder,
    host: Host,
}

#[test]
fn of_v58() {
    replay("v58.2", producer_port::SERVICE.methods.len(), consumer_port::SERVICE.methods.len(), 75);
}

#[test]
fn of_v56() {
    replay("v56.0", producer_port::SERVICE.methods.len(), consumer_port::SERVICE.methods.len(), 75);
}

#[test]
fn of_v15() {
    replay("v15.0", 11, 14, 60);
}

fn replay(version: &str, producer_methods: usize, consumer_methods: usize, at_least: usize) {
    let with_first = |service: &'static Service, methods: usize| -> &'static Service {
        Box::leak(Box::new(Service { name: service.name, methods: &service.methods[..methods] }))
    };
    let producer = with_first(&producer_port::SERVICE, producer_methods);
    let consumer = with_first(&consumer_port::SERVICE, consumer_methods);
    let table = fs::read_to_string(format!("{CAPTURES}/replies/{version}.tsv")).unwrap();
    let mut connections: HashMap<&str, Connection> = HashMap::new();
    let mut rows = 0;
    for row in table.lines().skip(1) {
        let columns: Vec<_> = row.split('\t').collect();
        let [name, step, sent, received, closed] = columns[..] else { panic!("{row}") };
        let connection = connections.entry(name).or_insert_with(|| {
            let port = if name.starts_with("producer") { producer } else { consumer };
            Connection { decoder: FrameDecoder::new(), host: Host::new(Arc::from([port]), Peer::local(0, None)) }
        });
        rows += 1;
        if version == "v15.0" && step.starts_with("SetPeerIdentity") {
            // That service does not know the frame.
            continue;
        }
        let context = format!("{version} {name}: {step}");
        let (answered, closes) = answer(connection, &unhex(sent), &unhex(received));
        assert_same_frames(&answered, &unhex(received), version != "v15.0", &context);
        assert_eq!(closes, closed == "yes", "{context}");
    }
    assert!(rows >= at_least, "{rows} rows");
}

/// Handles a request. Calls of methods are answered as in the capture, but with the writers of this
/// crate.
fn answer(connection: &mut Connection, sent: &[u8], received: &[u8]) -> (Vec<u8>, bool) {
    let Connection { decoder, host } = connection;
    let mut out = Vec::new();
    assert_eq!(decoder.push(sent), sent.len());
    loop {
        match decoder.next_frame() {
            Ok(Some(frame)) => {
                if let Some(HostEvent::Invoke(_)) = host.handle(&frame, &mut out) {
                    for_each_frame(received, |reply| match reply.body {
                        FrameBody::InvokeMethodReply { success: true, has_more, body } => {
                            host.reply_ok(reply.request_id, body, has_more, &mut out).unwrap();
                        }
                        FrameBody::InvokeMethodReply { success: false, .. } => {
                            host.reply_rejected(reply.request_id, &mut out);
                        }
                        other => panic!("{other:?}"),
                    });
                }
            }
            Ok(None) => return (out, false),
            Err(_) => return (out, true),
        }
    }
}

fn for_each_frame(bytes: &[u8], mut visit: impl FnMut(Frame<'_>)) {
    let mut decoder = FrameDecoder::new();
    assert_eq!(decoder.push(bytes), bytes.len());
    while let Some(frame) = decoder.next_frame().unwrap() {
        visit(frame);
    }
}

/// Compares bytes, except lengths of four bytes: those of every nested message up to v37, and those
/// over 127 later.
fn assert_same_frames(ours: &[u8], theirs: &[u8], compact: bool, context: &str) {
    let (ours, theirs) = (split(ours), split(theirs));
    assert_eq!(ours.len(), theirs.len(), "{context}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let context = format!("{context}: ours {}, theirs {}", hex(ours), hex(theirs));
        if compact && theirs.len() <= 4 + 127 {
            assert_eq!(ours, theirs, "{context}");
        }
        let (ours, theirs) = (Frame::parse(&ours[4..]).unwrap(), Frame::parse(&theirs[4..]).unwrap());
        match (ours.body, theirs.body) {
            (
                FrameBody::BindServiceReply { success, service_id, methods },
                FrameBody::BindServiceReply { success: s, service_id: id, methods: m },
            ) => {
                assert_eq!((ours.request_id, success, service_id), (theirs.request_id, s, id), "{context}");
                assert!(methods.iter().eq(m.iter()), "{context}");
            }
            _ => assert_eq!(ours, theirs, "{context}"),
        }
    }
}

/// Returns the frames of a stream unchanged.
fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = FrameDecoder::new();
    assert_eq!(decoder.push(bytes), bytes.len());
    let (mut list, mut at) = (Vec::new(), 0);
    while decoder.next_frame().unwrap().is_some() {
        let end = decoder.consumed() as usize;
        list.push(bytes[at..end].to_vec());
        at = end;
    }
    assert_eq!(at, bytes.len());
    list
}
