//! wire-protocol.md §4 and §22 rows 39, 40, 43, from the client's side.

use esatto_ipc::frame::encode;
use esatto_ipc::{Client, ClientEvent, Error, Frame, FrameBody, RequestId};

/// Makes a client that is bound to a service with these methods.
fn bound(methods: &[(u32, &str)]) -> Client {
    let mut client = Client::new();
    client.bind("ProducerPort", &mut Vec::new()).unwrap();
    let mut reply = Vec::new();
    encode::bind_service_reply(&mut reply, 1, 5, methods.iter().copied()).unwrap();
    assert_eq!(client.handle(&Frame::parse(&reply[4..]).unwrap()), Some(ClientEvent::Bound));
    client
}

fn call(client: &mut Client, method: &'static str, drop_reply: bool) -> (u64, u32, u32) {
    let mut out = Vec::new();
    let id = client.invoke(method, b"", drop_reply, &mut out).unwrap().unwrap();
    let frame = Frame::parse(&out[4..]).unwrap();
    let FrameBody::InvokeMethod { service_id, method_id, .. } = frame.body else { panic!() };
    assert_eq!(frame.request_id, id.0);
    (id.0, service_id, method_id)
}

fn reply(client: &mut Client, bytes: &[u8]) -> Option<String> {
    client.handle(&Frame::parse(&bytes[4..]).unwrap()).map(|event| format!("{event:?}"))
}

#[test]
fn ids_are_taken_from_the_list() {
    let mut client = bound(&[(2, "InitializeConnection"), (1, "CommitData"), (0, "Zero"), (9, "")]);
    assert_eq!(call(&mut client, "CommitData", true), (2, 5, 1));
    assert_eq!(call(&mut client, "InitializeConnection", false), (3, 5, 2));
    assert!(!client.has_method("Zero") && !client.has_method(""));
}

#[test]
fn a_method_the_service_lacks_sends_nothing_and_uses_no_id() {
    let mut client = bound(&[(1, "CommitData")]);
    let mut out = Vec::new();
    assert_eq!(client.invoke("UpdateDataSource", b"x", false, &mut out).unwrap(), None);
    assert!(out.is_empty());
    assert_eq!(call(&mut client, "CommitData", true).0, 2);
}

#[test]
fn nothing_is_sent_before_the_bind_reply() {
    let mut client = Client::new();
    let mut out = Vec::new();
    assert_eq!(client.invoke("CommitData", b"", false, &mut out).unwrap(), None);
    client.bind("ProducerPort", &mut out).unwrap();
    let len = out.len();
    assert_eq!(client.invoke("CommitData", b"", false, &mut out).unwrap(), None);
    assert_eq!(out.len(), len);
}

#[test]
fn a_refused_bind_is_reported() {
    let mut client = Client::new();
    client.bind("NoSuchService", &mut Vec::new()).unwrap();
    let mut frame = Vec::new();
    encode::bind_service_failed(&mut frame, 1).unwrap();
    assert_eq!(reply(&mut client, &frame).unwrap(), "BindFailed");
    let mut client = Client::new();
    client.bind("NoSuchService", &mut Vec::new()).unwrap();
    frame.clear();
    encode::request_error(&mut frame, 1);
    assert_eq!(reply(&mut client, &frame).unwrap(), "BindFailed");
}

#[test]
fn unexpected_replies_are_ignored() {
    let mut client = bound(&[(1, "CommitData")]);
    let (id, ..) = call(&mut client, "CommitData", true);
    let mut frame = Vec::new();
    encode::reply_not_invoked(&mut frame, id);
    assert_eq!(reply(&mut client, &frame), None, "answers a call with drop_reply");
    for id in [0, 1, 77, u64::MAX] {
        frame.clear();
        encode::reply_ok(&mut frame, id, b"", false).unwrap();
        assert_eq!(reply(&mut client, &frame), None);
        frame.clear();
        encode::request_error(&mut frame, id);
        assert_eq!(reply(&mut client, &frame), None);
    }
    frame.clear();
    encode::bind_service(&mut frame, id, "x").unwrap();
    assert_eq!(reply(&mut client, &frame), None, "a request");
}

#[test]
fn a_stream_lives_until_has_more_is_false() {
    let mut client = bound(&[(1, "GetAsyncCommand")]);
    let (id, ..) = call(&mut client, "GetAsyncCommand", false);
    for (body, has_more) in [(&b"a"[..], true), (b"b", true), (b"c", false)] {
        assert!(client.is_pending(RequestId(id)));
        let mut frame = Vec::new();
        encode::reply_ok(&mut frame, id, body, has_more).unwrap();
        let event = client.handle(&Frame::parse(&frame[4..]).unwrap());
        let want =
            ClientEvent::Reply { request_id: RequestId(id), method: "GetAsyncCommand", success: true, has_more, body };
        assert_eq!(event, Some(want));
    }
    assert!(!client.is_pending(RequestId(id)));
}

#[test]
fn errors_and_replies_of_the_wrong_type_consume_the_request() {
    let mut client = bound(&[(1, "Sync")]);
    let (id, ..) = call(&mut client, "Sync", false);
    let mut frame = Vec::new();
    encode::request_error(&mut frame, id);
    let event = client.handle(&Frame::parse(&frame[4..]).unwrap());
    assert!(matches!(event, Some(ClientEvent::RequestError { error: b"unknown request", method: "Sync", .. })));
    assert!(!client.is_pending(RequestId(id)));
    let (id, ..) = call(&mut client, "Sync", false);
    frame.clear();
    encode::bind_service_failed(&mut frame, id).unwrap();
    let event = client.handle(&Frame::parse(&frame[4..]).unwrap());
    assert!(matches!(event, Some(ClientEvent::Reply { success: false, has_more: false, .. })));
    assert!(!client.is_pending(RequestId(id)));
}

#[test]
fn arguments_that_do_not_fit_in_a_frame_are_refused_before_anything_happens() {
    let mut client = bound(&[(1, "EnableTracing")]);
    let mut out = Vec::new();
    let error = client.invoke("EnableTracing", &[0; 131_072], false, &mut out).unwrap_err();
    assert!(matches!(error, Error::MessageTooLarge { .. }));
    assert!(out.is_empty());
    assert_eq!(call(&mut client, "EnableTracing", false).0, 2);
}
