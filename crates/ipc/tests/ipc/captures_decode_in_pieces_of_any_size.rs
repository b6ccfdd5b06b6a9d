//! wire-protocol.md §22 rows 1, 44, 45: every captured stream gives the frames of its table, in
//! pieces of any size.

use std::collections::HashMap;

use esatto_ipc::frame::encode;
use esatto_ipc::{Frame, FrameBody, FrameDecoder};

use crate::captures::{self, Conversation};

#[derive(Debug, PartialEq)]
struct Seen {
    offset: u64,
    length: u64,
    request_id: u64,
    kind: &'static str,
    service_name: Option<Vec<u8>>,
    method_id: Option<u32>,
    methods: Vec<(u32, Vec<u8>)>,
    success: bool,
    has_more: bool,
    bytes: usize,
}

fn decode(stream: &[u8], piece: usize) -> Vec<Seen> {
    let mut decoder = FrameDecoder::new();
    let mut seen = Vec::new();
    let mut offset = 0;
    let mut at = 0;
    while at < stream.len() {
        at += decoder.push(&stream[at..stream.len().min(at + piece)]);
        while let Some(frame) = decoder.next_frame().unwrap() {
            let mut s = describe(&frame);
            s.offset = offset;
            offset = decoder.consumed();
            s.length = offset - s.offset;
            seen.push(s);
        }
    }
    assert_eq!((decoder.buffered(), decoder.skipped()), (0, 0));
    seen
}

fn describe(frame: &Frame<'_>) -> Seen {
    let mut s = Seen {
        offset: 0,
        length: 0,
        request_id: frame.request_id,
        kind: frame.kind(),
        service_name: None,
        method_id: None,
        methods: Vec::new(),
        success: false,
        has_more: false,
        bytes: 0,
    };
    match frame.body {
        FrameBody::BindService { service_name } => s.service_name = Some(service_name.to_vec()),
        FrameBody::BindServiceReply { success, methods, .. } => {
            s.success = success;
            s.methods = methods.iter().map(|(id, name)| (id, name.to_vec())).collect();
        }
        FrameBody::InvokeMethod { method_id, args, .. } => {
            s.method_id = Some(method_id);
            s.bytes = args.len();
        }
        FrameBody::InvokeMethodReply { success, has_more, body } => {
            (s.success, s.has_more, s.bytes) = (success, has_more, body.len());
        }
        _ => {}
    }
    s
}

fn check(conversation: &Conversation, piece: usize) {
    let name = &conversation.name;
    let mut requests = decode(&conversation.to_service, piece).into_iter();
    let mut replies = conversation.to_client.as_ref().map(|bytes| decode(bytes, piece).into_iter());
    let mut methods: HashMap<u32, Vec<u8>> = HashMap::new();
    let mut called: HashMap<u64, String> = HashMap::new();
    for line in &conversation.lines {
        let frame = match (line.to_service, &mut replies) {
            (true, _) => requests.next(),
            (false, Some(replies)) => replies.next(),
            (false, None) => continue,
        };
        let frame = frame.unwrap_or_else(|| panic!("{name}: no frame for {line:?}"));
        let context = format!("{name}: {line:?}\n{frame:?}");
        assert_eq!((frame.offset, frame.length), (line.offset, line.length), "{context}");
        assert_eq!((frame.kind, frame.request_id), (line.kind.as_str(), line.request_id), "{context}");
        let has = |what: &str| line.content.split(' ').any(|word| word == what);
        match frame.kind {
            "bind_service" => assert_eq!(frame.service_name.as_deref(), Some(line.method.as_bytes()), "{context}"),
            "bind_service_reply" => {
                assert!(frame.success && has(&format!("methods={}", frame.methods.len())), "{context}");
                methods.extend(frame.methods);
            }
            "invoke_method" => {
                if conversation.to_client.is_some() {
                    assert_eq!(methods[&frame.method_id.unwrap()], line.method.as_bytes(), "{context}");
                }
                called.insert(frame.request_id, line.method.clone());
            }
            "invoke_method_reply" => {
                assert_eq!(called[&frame.request_id], line.method, "{context}");
                let success = if frame.success { "success=1" } else { "success-absent" };
                assert!(has(success) && has(&format!("has_more={}", u8::from(frame.has_more))), "{context}");
            }
            "set_peer_identity" => {}
            other => panic!("{other} in {context}"),
        }
    }
    assert_eq!(requests.next(), None, "{name}");
    assert_eq!(replies.and_then(|mut r| r.next()), None, "{name}");
}

#[test]
fn byte_by_byte() {
    captures::all().iter().for_each(|c| check(c, 1));
}

#[test]
fn seven_bytes_at_a_time() {
    captures::all().iter().for_each(|c| check(c, 7));
}

#[test]
fn page_by_page() {
    captures::all().iter().for_each(|c| check(c, 4096));
}

#[test]
fn all_at_once() {
    captures::all().iter().for_each(|c| check(c, usize::MAX / 2));
}

#[test]
fn only_one_stream_is_left_out() {
    let missing: Vec<_> = captures::all().into_iter().filter(|c| c.to_client.is_none()).map(|c| c.name).collect();
    assert_eq!(missing, ["/writer-big/consumer"]);
}

#[test]
fn decoded_frames_encode_to_equivalent_ones() {
    let mut exact = 0;
    for conversation in captures::all() {
        for line in &conversation.lines {
            if !line.to_service && conversation.to_client.is_none() {
                continue;
            }
            let original = conversation.bytes(line);
            let frame = Frame::parse(&original[4..]).unwrap();
            let mut out = Vec::new();
            encode_again(&frame, &mut out);
            assert_eq!(out[..4], u32::try_from(out.len() - 4).unwrap().to_le_bytes());
            let again = Frame::parse(&out[4..]).unwrap();
            if let FrameBody::BindServiceReply { .. } = frame.body {
                let (a, b) = (describe(&frame), describe(&again));
                assert_eq!(a, b, "{}: {line:?}", conversation.name);
            } else {
                assert_eq!(frame, again, "{}: {line:?}", conversation.name);
            }
            exact += usize::from(out == original);
        }
    }
    // If no length needs two bytes, upstream's encoder since v38 writes the same bytes.
    assert!(exact > 700, "{exact}");
}

fn encode_again(frame: &Frame<'_>, out: &mut Vec<u8>) {
    let id = frame.request_id;
    match frame.body {
        FrameBody::BindService { service_name } => {
            encode::bind_service(out, id, core::str::from_utf8(service_name).unwrap()).unwrap();
        }
        FrameBody::BindServiceReply { service_id, methods, .. } => {
            let list: Vec<_> = methods.iter().map(|(id, name)| (id, core::str::from_utf8(name).unwrap())).collect();
            encode::bind_service_reply(out, id, service_id, list.into_iter()).unwrap();
        }
        FrameBody::InvokeMethod { service_id, method_id, args, drop_reply } => {
            encode::invoke_method(out, id, service_id, method_id, args, drop_reply).unwrap();
        }
        FrameBody::InvokeMethodReply { success: true, has_more, body } => {
            encode::reply_ok(out, id, body, has_more).unwrap();
        }
        FrameBody::InvokeMethodReply { success: false, .. } => encode::reply_rejected(out, id),
        FrameBody::SetPeerIdentity(identity) => encode::set_peer_identity(out, &identity).unwrap(),
        other => panic!("not in any capture: {other:?}"),
    }
}
