//! The client makes the captured calls and understands the captured replies. The host understands
//! the captured calls.

use std::sync::Arc;

use esatto_ipc::frame::encode;
use esatto_ipc::{Client, ClientEvent, Family, Frame, FrameBody, Host, HostEvent, Peer};
use esatto_ports::{consumer_port, producer_port, relay_port};

use crate::captures::{self, Line};

/// Returns the method's name with a static lifetime, which clients need.
fn static_name(name: &str) -> &'static str {
    let ports = [&producer_port::SERVICE, &consumer_port::SERVICE, &relay_port::SERVICE];
    ports.iter().flat_map(|port| port.methods).find(|method| method.name == name).unwrap().name
}

fn content_flag(line: &Line, name: &str) -> bool {
    line.content.split(' ').any(|word| word == format!("{name}=1"))
}

#[test]
fn by_the_client() {
    for conversation in captures::all() {
        if conversation.to_client.is_none() {
            continue;
        }
        let mut client = Client::new();
        for line in &conversation.lines {
            let context = format!("{}: {line:?}", conversation.name);
            let captured = Frame::parse(&conversation.bytes(line)[4..]).unwrap();
            if line.to_service {
                let mut out = Vec::new();
                match captured.body {
                    FrameBody::BindService { .. } => {
                        client.bind(&line.method, &mut out).unwrap();
                    }
                    FrameBody::InvokeMethod { args, drop_reply, .. } => {
                        let sent = client.invoke(static_name(&line.method), args, drop_reply, &mut out);
                        assert_eq!(sent.unwrap().unwrap().0, line.request_id, "{context}");
                    }
                    FrameBody::SetPeerIdentity(identity) => encode::set_peer_identity(&mut out, &identity).unwrap(),
                    _ => panic!("{context}"),
                }
                assert_eq!(Frame::parse(&out[4..]), Some(captured), "{context}");
            } else {
                match client.handle(&captured) {
                    Some(ClientEvent::Bound) => assert_eq!(line.kind, "bind_service_reply", "{context}"),
                    Some(ClientEvent::Reply { request_id, method, success, has_more, .. }) => {
                        assert_eq!((request_id.0, method), (line.request_id, line.method.as_str()), "{context}");
                        assert_eq!(success, content_flag(line, "success"), "{context}");
                        assert_eq!(has_more, content_flag(line, "has_more"), "{context}");
                        assert_eq!(client.is_pending(request_id), has_more, "{context}");
                    }
                    other => panic!("{other:?} for {context}"),
                }
            }
        }
    }
}

#[test]
fn by_the_host() {
    for conversation in captures::all() {
        let ports = if conversation.name.ends_with("/producer") || conversation.name.ends_with("/control") {
            Arc::from([&producer_port::SERVICE, &relay_port::SERVICE])
        } else {
            Arc::from([&consumer_port::SERVICE])
        };
        let mut host = Host::new(ports, Peer::remote(Family::Inet, "127.0.0.1".into()));
        for line in conversation.lines.iter().filter(|line| line.to_service) {
            let context = format!("{}: {line:?}", conversation.name);
            let frame = Frame::parse(&conversation.bytes(line)[4..]).unwrap();
            let mut out = Vec::new();
            match host.handle(&frame, &mut out) {
                Some(HostEvent::Invoke(call)) => {
                    assert_eq!(
                        (call.method.name, call.request_id),
                        (line.method.as_str(), line.request_id),
                        "{context}"
                    );
                    assert_eq!(call.drop_reply, line.content.starts_with("drop_reply"), "{context}");
                    assert!(out.is_empty(), "{context}");
                }
                Some(HostEvent::PeerIdentity) => {
                    assert_eq!(line.kind, "set_peer_identity", "{context}");
                    assert_eq!(host.peer().machine_id, 1_011_363_979, "{context}");
                }
                None => {
                    assert_eq!(line.kind, "bind_service", "{context}");
                    let reply = Frame::parse(&out[4..]).unwrap();
                    assert!(matches!(reply.body, FrameBody::BindServiceReply { success: true, .. }), "{context}");
                }
                other => panic!("{other:?} for {context}"),
            }
        }
        assert_eq!(host.refused(), 0);
    }
}
