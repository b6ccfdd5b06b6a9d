//! wire-protocol.md §4 and §22 rows 6 to 14: the exact bytes of a host's own answers.

use std::sync::Arc;

use esatto_ipc::{Family, Frame, FrameBody, Host, HostEvent, Peer};
use esatto_ports::{producer_port, relay_port};

use crate::captures::{hex, unhex};

fn host() -> Host {
    Host::new(Arc::from([&producer_port::SERVICE, &relay_port::SERVICE]), Peer::local(1000, Some(7)))
}

/// Returns a host's own answer to a frame.
fn answer(host: &mut Host, frame: &str) -> String {
    let bytes = unhex(frame);
    let mut out = Vec::new();
    if let Some(frame) = Frame::parse(&bytes[4..]) {
        assert!(host.handle(&frame, &mut out).is_none());
    }
    hex(&out)
}

#[test]
fn bind_of_an_unknown_name_is_an_empty_reply() {
    assert_eq!(answer(&mut host(), "1300000010011a0f0a0d4e6f5375636853657276696365"), "0400000010012200");
}

#[test]
fn bind_twice_gives_the_same_reply_twice() {
    let mut host = host();
    let bind = "1200000010011a0e0a0c50726f6475636572506f7274";
    let first = answer(&mut host, bind);
    assert_eq!(first, answer(&mut host, bind));
    let bytes = unhex(&first);
    let Some(Frame { request_id: 1, body: FrameBody::BindServiceReply { success: true, service_id: 1, methods } }) =
        Frame::parse(&bytes[4..])
    else {
        panic!("{first}")
    };
    let names: Vec<_> = methods.iter().map(|(_, name)| core::str::from_utf8(name).unwrap()).collect();
    let known: Vec<_> = producer_port::SERVICE.methods.iter().map(|method| method.name).collect();
    assert_eq!(names, known);
    assert!(methods.iter().map(|(id, _)| id).eq(1..=12));
}

#[test]
fn a_second_service_of_the_socket_has_id_2() {
    let bytes = unhex(&answer(&mut host(), "0f00000010031a0b0a0952656c6179506f7274"));
    let frame = Frame::parse(&bytes[4..]).unwrap();
    assert!(matches!(frame.body, FrameBody::BindServiceReply { success: true, service_id: 2, .. }), "{frame:?}");
}

#[test]
fn calls_that_cannot_be_made_are_answered_even_with_drop_reply() {
    let mut host = host();
    for (call, what) in [
        ("0c00000010022a08080110631a002000", "method 99"),
        ("0c00000010022a08080110631a002001", "method 99, drop_reply"),
        ("0c00000010022a08080110001a002000", "method 0"),
        ("0c00000010022a08084d10011a002000", "service 77"),
        ("0c00000010022a08080010011a002000", "service 0"),
        ("0f00000010022a0b080110011a03ffffff2000", "arguments that do not parse"),
        ("0400000010022a00", "no ids at all"),
    ] {
        assert_eq!(answer(&mut host, call), "06000000100232020800", "{what}");
    }
    assert_eq!(host.refused(), 7);
}

#[test]
fn replies_have_the_bytes_that_were_seen() {
    let mut host = host();
    let mut out = Vec::new();
    host.reply_ok(2, &[], false, &mut out).unwrap();
    assert_eq!(hex(&out), "0a00000010023206080110001a00");
    out.clear();
    host.reply_ok(3, &[0x1a, 2, 8, 4], true, &mut out).unwrap();
    assert_eq!(hex(&out), "0e0000001003320a080110011a041a020804");
    out.clear();
    host.reply_rejected(2, &mut out);
    assert_eq!(hex(&out), "06000000100232021000");
    out.clear();
    host.reply_not_invoked(2, &mut out);
    assert_eq!(hex(&out), "06000000100232020800");
}

#[test]
fn frames_that_are_not_requests_get_a_request_error_with_their_id() {
    let error = |id: &str| {
        format!("{}10{id}3a110a0f756e6b6e6f776e2072657175657374", if id.len() == 2 { "15000000" } else { "16000000" })
    };
    let mut host = host();
    assert_eq!(answer(&mut host, "0300000010d209"), error("d209"), "only an id");
    assert_eq!(answer(&mut host, "050000000a03616263"), error("00"), "only data_for_testing");
    assert_eq!(answer(&mut host, "0700000010093a030a0178"), error("09"), "RequestError");
    assert_eq!(answer(&mut host, "06000000100a32020801"), error("0a"), "InvokeMethodReply");
    assert_eq!(answer(&mut host, "04000000100b2200"), error("0b"), "BindServiceReply");
    assert_eq!(answer(&mut host, "05000000100c4a0101"), error("0c"), "a frame of the future");
}

#[test]
fn a_call_is_passed_up_with_borrowed_arguments() {
    let bytes = unhex("0c000000100f2a08080110041a002001");
    let frame = Frame::parse(&bytes[4..]).unwrap();
    let mut out = Vec::new();
    let Some(HostEvent::Invoke(call)) = host().handle(&frame, &mut out) else { panic!() };
    assert_eq!((call.service.name, call.method.name, call.method_id), ("ProducerPort", "CommitData", 4));
    assert_eq!((call.request_id, call.args, call.drop_reply), (15, &[][..], true));
    assert!(out.is_empty());
}

#[test]
fn calls_before_any_bind_and_without_request_id_are_accepted() {
    let bytes = unhex("0a0000002a08080110041a002000");
    let frame = Frame::parse(&bytes[4..]).unwrap();
    let event = host().handle(&frame, &mut Vec::new());
    assert!(matches!(event, Some(HostEvent::Invoke(call)) if call.request_id == 0));
}

#[test]
fn every_kind_of_socket_exposes_the_same_table() {
    let mut remote = Host::new(Arc::from([&producer_port::SERVICE]), Peer::remote(Family::Vsock, "vsock://2".into()));
    assert_eq!(answer(&mut remote, "0f00000010031a0b0a0952656c6179506f7274"), "0400000010032200");
}
