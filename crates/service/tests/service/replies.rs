//! Requests that real services answered (`tests/captures/replies`), sent to ours. The answers are
//! the same, apart from texts and deliberate improvements.

use std::collections::HashMap;

use esatto_protozero::Owned;
use esatto_schema::{CloneSessionResponse, EnableTracingResponse, IPCFrame, SaveTraceForBugreportResponse, ipc_frame};
use esatto_service::{CallId, ClientId, ConsumerCall, Input, MemoryKind, Peer, ProducerCall};

use crate::world::World;

/// The answer to a call.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Rejected,
    Reply(Vec<u8>),
}

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn frames(bytes: &[u8]) -> Vec<IPCFrame> {
    let mut rest = bytes;
    let mut frames = Vec::new();
    while let Some((len, tail)) = rest.split_first_chunk::<4>() {
        let len = u32::from_le_bytes(*len) as usize;
        let Some(frame) = tail.get(..len) else { break };
        frames.extend(IPCFrame::decode(frame));
        rest = &tail[len..];
    }
    frames
}

/// The call in a frame, if there is such a method and its arguments parse.
fn call<'a>(name: &str, invoke: &'a ipc_frame::InvokeMethod) -> Option<Call<'a>> {
    let (id, arguments) = (invoke.method_id?, invoke.args_proto.as_deref().unwrap_or_default());
    if invoke.service_id != Some(1) {
        return None;
    }
    if name.starts_with("producer") {
        ProducerCall::read(id, arguments).map(Call::Producer)
    } else {
        ConsumerCall::read(id, arguments).map(Call::Consumer)
    }
}

enum Call<'a> {
    Producer(ProducerCall<'a>),
    Consumer(ConsumerCall<'a>),
}

/// Replaces texts by their presence.
fn without_text(step: &str, body: &[u8]) -> Vec<u8> {
    if step.starts_with("EnableTracing") {
        let mut response = EnableTracingResponse::decode(body).unwrap();
        response.error = response.error.map(|_| "a text".into());
        response.encode()
    } else if step.starts_with("CloneSession") {
        let mut response = CloneSessionResponse::decode(body).unwrap();
        response.error = response.error.map(|_| "a text".into());
        response.encode()
    } else if step.starts_with("SaveTraceForBugreport") {
        let mut response = SaveTraceForBugreportResponse::decode(body).unwrap();
        response.msg = response.msg.map(|_| "a text".into());
        response.encode()
    } else {
        body.to_vec()
    }
}

#[test]
fn answers_equal_those_of_perfettos_services() {
    for version in ["v56.0", "v58.2"] {
        let path = format!("{}/../../tests/captures/replies/{version}.tsv", env!("CARGO_MANIFEST_DIR"));
        let table = std::fs::read_to_string(path).unwrap();
        let mut world = World::new();
        let mut clients: HashMap<String, ClientId> = HashMap::new();
        let mut compared = 0;
        for line in table.lines().skip(1) {
            let [name, step, sent, received, _] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let client = *clients.entry(name.to_owned()).or_insert_with(|| {
                let client = ClientId(world.id());
                let peer = Peer { uid: 1000, pid: None, machine_id: 0 };
                world.feed(match name.starts_with("producer") {
                    true => Input::ProducerConnected { client, peer, memory: MemoryKind::Shared },
                    false => Input::ConsumerConnected { client, peer },
                });
                client
            });
            // The table's connections are closed in turn; only a session that was detached stays.
            let sent = frames(&from_hex(sent));
            let Some(frame) = sent.first() else { continue };
            let Some(invoke) = frame.msg_invoke_method.as_ref() else { continue };
            let Some(parsed) = call(name, invoke) else { continue };
            let id = CallId { client, request: frame.request_id.unwrap_or(0) };
            world.replies.clear();
            world.rejected.clear();
            match parsed {
                Call::Producer(method) => world.feed(Input::ProducerCall { call: id, method, offered: None }),
                Call::Consumer(method) => world.feed(Input::ConsumerCall { call: id, method, file_attached: false }),
            }
            let mut ours: Vec<(u64, Answer)> =
                world.rejected.iter().map(|call| (call.request, Answer::Rejected)).collect();
            for (call, replies) in &world.replies {
                let bodies = replies.iter().map(|reply| without_text(step, reply.body.as_bytes()));
                ours.extend(bodies.map(|body| (call.request, Answer::Reply(body))));
            }
            if invoke.drop_reply == Some(true) {
                ours.clear();
            }
            let mut theirs: Vec<(u64, Answer)> = frames(&from_hex(received))
                .into_iter()
                .filter_map(|frame| {
                    let reply = frame.msg_invoke_method_reply?;
                    let answer = match reply.success {
                        Some(true) => Answer::Reply(without_text(step, &reply.reply_proto.unwrap_or_default())),
                        _ => Answer::Rejected,
                    };
                    Some((frame.request_id.unwrap_or(0), answer))
                })
                .collect();
            ours.sort_by_key(|(request, _)| *request);
            theirs.sort_by_key(|(request, _)| *request);
            // Versions, and the late observer: ours gets the current state.
            let differs = ["QueryServiceState", "ObserveEvents [1,2,4]"];
            if step.starts_with("Flush without a session") {
                // Theirs never answers this flush.
                theirs.push((id.request, Answer::Rejected));
            }
            if differs.iter().any(|different| step.starts_with(different)) {
                continue;
            }
            compared += 1;
            assert_eq!(ours, theirs, "{version}, {name}: {step}");
        }
        assert!(compared > 38, "{compared} answers compared");
    }
}
