//! Clients withstand services that break the rules, old services, and ends at any moment.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use esatto_ipc::frame::rpc::{Features, RpcBody, WireStatus, encode};
use esatto_ipc::{CallError, Channel, ChannelLimits, Code, Connection, Host, HostEvent, Limits, Peer, Stream};

use crate::raw_peer::Raw;
use crate::sample_store::{SOON, Sample, get, note, serve, watch};
use crate::store;

/// Runs `service` on a thread, which answers a client with any bytes.
fn against(features: Features, service: impl FnOnce(&mut Raw) + Send + 'static) -> Channel {
    let (ours, theirs) = Stream::pair().unwrap();
    thread::spawn(move || {
        let mut raw = Raw::new(theirs);
        let id = raw.receive(|frame| frame.request_id);
        raw.send(|out| {
            let methods = [(1, "Get"), (2, "Watch"), (3, "Note"), (0, "x"), (7, "")];
            encode::bind_service_reply(out, id, 1, methods.into_iter(), features, 0).unwrap();
        });
        service(&mut raw);
    });
    Channel::new(ours)
}

fn next_call(raw: &mut Raw) -> u64 {
    raw.receive(|frame| match frame.body {
        RpcBody::InvokeMethod(_) => frame.request_id,
        ref body => panic!("{body:?}"),
    })
}

#[test]
fn replies_that_nobody_asked_for_disturb_nothing() {
    let channel = against(Features::ALL, |raw| {
        let id = next_call(raw);
        raw.send(|out| {
            for other in [0, 1, id + 1, u64::MAX] {
                encode::reply_ok(out, other, b"\x0a\x01x", true, true).unwrap();
                encode::reply_status(out, other, &WireStatus { code: 5, ..Default::default() });
            }
            encode::reply_ok(out, id, b"\x0a\x01a", true, false).unwrap();
            encode::reply_ok(out, id, b"\x0a\x01b", false, false).unwrap();
        });
        let id = next_call(raw);
        raw.send(|out| encode::reply_ok(out, id, b"\x0a\x01c", false, true).unwrap());
    });
    let client = store::Client::new(&channel);
    assert_eq!(client.get(&get("k")).wait().unwrap().value.unwrap().to_str(), Some("a"));
    assert_eq!(client.get(&get("k")).wait().unwrap().value.unwrap().to_str(), Some("c"));
    assert_eq!(channel.unexpected(), 9);
}

#[test]
fn replies_that_make_no_sense_fail_their_call_only() {
    let long = vec![b'x'; 100_000];
    let channel = against(Features::ALL, move |raw| {
        let id = next_call(raw);
        raw.send(|out| encode::reply_ok(out, id, b"\x0a\xff", false, false).unwrap());
        let id = next_call(raw);
        raw.send(|out| encode::bind_service_failed(out, id, Features::ALL, 0));
        let id = next_call(raw);
        raw.send(|out| encode::reply_status(out, id, &WireStatus { code: -7, text: &long, details: b"" }));
        let id = next_call(raw);
        raw.send(|out| esatto_ipc::frame::encode::request_error(out, id));
        let id = next_call(raw);
        raw.send(|out| encode::reply_ok(out, id, b"", false, false).unwrap());
    });
    let client = store::Client::new(&channel);
    assert_eq!(client.get(&get("k")).wait(), Err(CallError::Malformed("Store.Get")));
    assert_eq!(client.get(&get("k")).wait(), Err(CallError::Malformed("Store.Get")));
    let error = client.get(&get("k")).wait().unwrap_err();
    assert_eq!((error.code(), error.status().unwrap().text().len()), (Code::Unknown, 100_000));
    assert_eq!(client.get(&get("k")).wait().unwrap_err().code(), Code::Unimplemented);
    client.get(&get("k")).wait().unwrap();
}

#[test]
fn a_stream_beyond_its_window_ends_alone() {
    let limits = ChannelLimits { window: 1000, ..ChannelLimits::default() };
    let (ours, theirs) = Stream::pair().unwrap();
    let channel = Channel::with_limits(ours, limits);
    thread::spawn(move || {
        let mut raw = Raw::new(theirs);
        let id = raw.receive(|frame| frame.request_id);
        raw.send(|out| {
            let methods = [(1, "Get"), (2, "Watch")].into_iter();
            encode::bind_service_reply(out, id, 1, methods, Features::ALL, 0).unwrap();
        });
        let id = next_call(&mut raw);
        for _ in 0..100 {
            raw.send(|out| encode::reply_ok(out, id, &[0x12, 0], true, false).unwrap());
            raw.send(|out| encode::reply_ok(out, id, &[[0x12, 0]; 2000].concat(), true, false).unwrap());
        }
        let id = next_call(&mut raw);
        raw.receive(|frame| assert_eq!(frame.body, RpcBody::Cancel));
        raw.send(|out| encode::reply_ok(out, id, b"", false, false).unwrap());
    });
    let client = store::Client::new(&channel);
    let events = client.watch(&watch(1, 1)).start().unwrap();
    // Another call reads the replies, which the program does not take.
    client.get(&get("a")).timeout(SOON).wait().unwrap();
    let results: Vec<_> = events.collect();
    assert!(
        matches!(results.last(), Some(Err(CallError::TooLarge { method: "Store.Watch", limit, .. })) if *limit < 160_000)
    );
    assert!(results.len() < 100, "{}", results.len());
}

#[test]
fn a_fast_caller_waits_or_is_told() {
    let (ours, theirs) = Stream::pair().unwrap();
    let channel = Channel::with_limits(ours, ChannelLimits { max_queued: 1 << 20, ..ChannelLimits::default() });
    let client = store::Client::new(&channel);
    let text = note(&"x".repeat(50_000));
    let mut sent = 0;
    // Nobody reads, and the service is not even bound.
    let error = loop {
        match client.note(&text).send_now() {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(sent < 100);
    };
    assert_eq!(error, CallError::QueueFull("Store.Note"));
    let blocked = thread::spawn(move || client.note(&note("last")).send());
    thread::sleep(Duration::from_millis(50));
    assert!(!blocked.is_finished());
    let sample = Sample::default();
    let mut server =
        esatto_ipc::ServerConnection::new(theirs, store::Serve(sample.clone()), esatto_ipc::ServerLimits::default());
    let server = thread::spawn(move || server.block());
    blocked.join().unwrap().unwrap();
    // It is sent as soon as the socket takes it.
    store::Client::new(&channel).get(&get("a")).wait().unwrap();
    drop(channel);
    server.join().unwrap();
    assert_eq!(sample.notes.lock().unwrap().len(), sent + 1);
}

#[test]
fn old_services_get_plain_frames() {
    let (ours, theirs) = Stream::pair().unwrap();
    let channel = Channel::new(ours);
    let service = thread::spawn(move || {
        let mut host = Host::new(Arc::from([&store::SERVICE]), Peer::of(&theirs));
        let mut connection = Connection::new(theirs, Limits::CLIENT);
        let mut plain = Vec::new();
        while !connection.is_closed() {
            connection.wait(None).unwrap();
            while let Some((frame, io)) = connection.next_frame().unwrap() {
                let Some(HostEvent::Invoke(call)) = host.handle(&frame, io.out.buffer()) else { continue };
                let out = io.out.buffer();
                match call.method.name {
                    "Get" => host.reply_rejected(call.request_id, out),
                    "Watch" => (0..3).for_each(|n| host.reply_ok(call.request_id, b"", n < 2, out).unwrap()),
                    _ => plain.push(call.drop_reply),
                }
            }
            connection.flush_writes().unwrap();
        }
        plain
    });
    let client = store::Client::new(&channel);
    let error = client.get(&get("a")).timeout(SOON).wait().unwrap_err();
    assert_eq!((error.code(), error.to_string()), (Code::Unknown, "Store.Get failed: rejected (UNKNOWN)".to_owned()));
    assert_eq!(client.watch(&watch(1, 1)).map(Result::unwrap).count(), 3);
    client.note(&note("x")).send().unwrap();
    drop((client, channel));
    assert_eq!(service.join().unwrap(), [true]);
}

#[test]
fn services_that_lack_something_are_named() {
    let (channel, _server) = serve(());
    let error = store::Client::new(&channel).get(&get("a")).wait().unwrap_err();
    assert_eq!(error.to_string(), "Store.Get failed: the peer does not offer the service Store");
    let (channel, _server) = serve(());
    for _ in 0..2 {
        let sent = store::Client::new(&channel).note(&note("a")).send();
        assert_eq!(sent, Err(CallError::NoSuchService("Store.Note")));
    }

    let (ours, theirs) = Stream::pair().unwrap();
    let channel = Channel::new(ours);
    thread::spawn(move || {
        let mut raw = Raw::new(theirs);
        let id = raw.receive(|frame| frame.request_id);
        let methods = [(4, "Watch")].into_iter();
        raw.send(|out| encode::bind_service_reply(out, id, 1, methods, Features::ALL, 0).unwrap());
        raw.receive(|_| ());
    });
    let client = store::Client::new(&channel);
    assert_eq!(client.note(&note("a")).send(), Err(CallError::NoSuchMethod("Store.Note")));
    assert_eq!(client.get(&get("a")).wait(), Err(CallError::NoSuchMethod("Store.Get")));
    assert_eq!(client.get(&get("a")).wait(), Err(CallError::NoSuchMethod("Store.Get")));
}

#[test]
fn an_end_at_any_byte_fails_the_calls() {
    let mut reply = Vec::new();
    encode::bind_service_reply(&mut reply, 1, 1, [(1, "Get")].into_iter(), Features::ALL, 0).unwrap();
    let bind = reply.len();
    encode::reply_ok(&mut reply, 2, b"\x0a\x01a", false, false).unwrap();
    for cut in 0..=reply.len() {
        let bytes = reply.clone();
        let (ours, theirs) = Stream::pair().unwrap();
        let channel = Channel::new(ours);
        let service = thread::spawn(move || {
            let mut raw = Raw::new(theirs);
            raw.receive(|_| ());
            raw.send_with(&bytes[..cut.min(bind)], None);
            if cut > bind {
                raw.receive(|_| ());
                raw.send_with(&bytes[bind..cut], None);
            }
        });
        let result = store::Client::new(&channel).get(&get("a")).wait();
        if cut == reply.len() {
            result.unwrap();
        } else {
            assert_eq!(result, Err(CallError::Disconnected("Store.Get")), "{cut}");
        }
        service.join().unwrap();
    }
}

#[test]
fn a_call_that_meets_a_closed_socket_fails_at_once() {
    let (ours, theirs) = Stream::pair().unwrap();
    let closed = Channel::new(ours);
    drop(theirs);
    let error = store::Client::new(&closed).get(&get("a")).then(|_| panic!("an error was returned")).unwrap_err();
    assert_eq!(error, CallError::Disconnected("Store.Get"));
    assert_eq!((closed.open_calls(), closed.is_closed()), (0, true));
}
