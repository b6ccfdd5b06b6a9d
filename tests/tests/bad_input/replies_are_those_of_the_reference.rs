//! Requests of every kind, with the answers of Perfetto v58.2 (`tests/captures/replies`). Ours are
//! the same, except for the wording of errors.

use esatto_tests::wire::{self, Peer, Value};
use esatto_tests::{Harness, Implementation};
use std::path::Path;

/// Calls whose answer has the reference's own state. The test compares only that they succeed.
const OWN_STATE: &[&str] = &["QueryServiceState"];

/// A late observer gets the current state; the reference forgets it (`docs/spec/service.md` §23).
const TOLD_BESIDES: (&str, &str) = ("ObserveEvents [1,2,4]", "19: success 1, more 1, 1=[10, 01]");

/// A flush of nothing is answered; the reference keeps its client waiting for ever.
const ANSWERED: (&str, &str) = ("Flush without a session: never answered", "11: success 0, more 0, ");

/// Of ours only: by which number the system knows a producer.
const PEER_PID_FIELD: u32 = esatto::schema::PEER_PID_FIELD;

struct Step {
    connection: String,
    name: String,
    sent: Vec<u8>,
    received: Vec<Vec<u8>>,
    closed: bool,
}

fn steps() -> Vec<Step> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("captures/replies/v58.2.tsv");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let step = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [connection, name, sent, received, closed] = columns[..] else { panic!("five columns: {line}") };
        Step {
            connection: connection.into(),
            name: name.into(),
            sent: unhex(sent),
            received: frames(&unhex(received)),
            closed: closed == "yes",
        }
    };
    text.lines().skip(1).map(step).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).expect("a hex digit") as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn frames(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<4>() {
        let (frame, rest) = rest.split_at(u32::from_le_bytes(*header) as usize);
        out.push(frame.to_vec());
        bytes = rest;
    }
    out
}

/// A frame without what may differ: encodings, default values, the wording of errors.
fn meaning(frame: &[u8], step: &str) -> String {
    let id = wire::int(frame, 2);
    if let Some(reply) = wire::last(frame, 4) {
        let methods: Vec<String> = wire::all(reply, 3)
            .into_iter()
            .map(|method| {
                format!(
                    "{} {}",
                    wire::int(method, 1),
                    String::from_utf8_lossy(wire::last(method, 2).unwrap_or_default())
                )
            })
            .collect();
        return format!("{id}: bound {} as {} {methods:?}", wire::int(reply, 1), wire::int(reply, 2));
    }
    if let Some(reply) = wire::last(frame, 6) {
        let body = wire::last(reply, 3).unwrap_or_default();
        let body = if OWN_STATE.iter().any(|name| step.starts_with(name)) { String::new() } else { content(body) };
        return format!("{id}: success {}, more {}, {body}", wire::int(reply, 1), wire::int(reply, 2));
    }
    if wire::last(frame, 7).is_some() {
        return format!("{id}: error");
    }
    format!("{id}: something else")
}

/// Fields that are not default, texts that are sentences as such.
fn content(body: &[u8]) -> String {
    let mut out = Vec::new();
    for (id, value) in wire::fields(body) {
        match value {
            Value::Int(0) => {}
            Value::Int(_) if id == PEER_PID_FIELD => {}
            Value::Int(value) => out.push(format!("{id}={value}")),
            Value::Bytes(bytes) if bytes.contains(&b' ') => out.push(format!("{id}=text")),
            Value::Bytes(bytes) => out.push(format!("{id}={bytes:02x?}")),
        }
    }
    out.sort();
    out.join(" ")
}

#[test]
fn but_for_the_wording_of_errors() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::under_test());
    let mut connections: Vec<(String, Peer)> = Vec::new();
    let mut differences = Vec::new();
    for step in steps() {
        if !connections.iter().any(|(name, _)| *name == step.connection) {
            let socket = if step.connection.starts_with("producer") {
                harness.producer_socket()
            } else {
                harness.consumer_socket()
            };
            connections.push((step.connection.clone(), Peer::connect(&socket)));
        }
        let (_, peer) = connections.iter_mut().find(|(name, _)| *name == step.connection).expect("just made");
        peer.send(&step.sent);
        let mut expected: Vec<String> = step.received.iter().map(|frame| meaning(frame, &step.name)).collect();
        for (name, answer) in [TOLD_BESIDES, ANSWERED] {
            if step.name == name {
                expected.push(answer.into());
            }
        }
        let mut found: Vec<String> = Vec::new();
        for _ in &expected {
            match peer.read_frame_soon() {
                Some(frame) => found.push(meaning(&frame, &step.name)),
                None => break,
            }
        }
        // Replies of different requests come in any order.
        expected.sort();
        found.sort();
        if expected != found {
            differences
                .push(format!("{} / {}\n  expected {expected:?}\n  found    {found:?}", step.connection, step.name));
        }
        if step.closed && !peer.is_closed() {
            differences.push(format!("{} / {}: not closed", step.connection, step.name));
        }
    }
    assert!(service.is_running());
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
