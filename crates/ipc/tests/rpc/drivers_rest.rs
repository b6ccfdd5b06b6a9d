//! A driver waits while the socket takes nothing.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use esatto_ipc::frame::rpc::{Features, InvokeMethod, RpcBody, encode};
use esatto_ipc::{Channel, ChannelLimits, ServerConnection, ServerLimits, Stream};

use crate::messages::sample::GetRequest;
use crate::raw_peer::Raw;
use crate::sample_store::{SOON, Sample, note};
use crate::store;

#[derive(Default)]
struct Count(AtomicUsize);

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_channel_does_not_wake_its_driver_until_the_socket_has_room() {
    let (ours, _theirs) = Stream::pair().unwrap();
    let channel = Channel::new(ours);
    let wakes = Arc::new(Count::default());
    channel.set_waker(&Waker::from(Arc::clone(&wakes)));
    let client = store::Client::new(&channel);
    // Only the bind is sent, which nobody answers; the notes wait for that. So fill the socket.
    while channel.stream().send(&[0; 4096], None).unwrap() > 0 {}
    client.note(&note("waits")).send_now().unwrap();
    while channel.pump().unwrap() {}
    assert!(channel.interest().write, "the bind waits");
    let before = wakes.get();
    for _ in 0..10 {
        assert!(!channel.pump().unwrap());
    }
    assert_eq!(wakes.get(), before);
}

#[test]
fn a_server_does_not_wake_its_driver_until_the_socket_has_room() {
    let (ours, theirs) = Stream::pair().unwrap();
    let mut server = ServerConnection::new(ours, store::Serve(Sample::default()), ServerLimits::default());
    let wakes = Arc::new(Count::default());
    server.set_waker(&Waker::from(Arc::clone(&wakes)));
    let raw = Raw::new(theirs);
    raw.send(|out| encode::bind_service(out, 1, "Store", Features::ALL, 0).unwrap());
    let request = GetRequest { payload: Some(vec![0; 50_000]), ..GetRequest::default() };
    for id in 2.. {
        raw.call(id, 1, &request, InvokeMethod::default());
        while server.pump().unwrap() {}
        if server.interest().write {
            break;
        }
    }
    let before = wakes.get();
    for _ in 0..10 {
        assert!(!server.pump().unwrap());
    }
    assert_eq!(wakes.get(), before);
}

/// Answers a client that asks for the store.
fn answer_bind(raw: &mut Raw) {
    let bind = raw.receive(|frame| frame.request_id);
    let methods = [(1, "Get"), (2, "Watch"), (3, "Note")].into_iter();
    raw.send(|out| encode::bind_service_reply(out, bind, 1, methods, Features::ALL, 0).unwrap());
}

/// Polls a one-way call, which has room.
fn send(client: &store::Client, text: &str) {
    let note = note(text);
    let call = pin!(client.note(&note).send_async());
    assert_eq!(call.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())));
}

#[test]
fn one_way_calls_of_tasks_are_written_together() {
    let (ours, theirs) = Stream::pair().unwrap();
    let channel = Channel::new(ours);
    let client = store::Client::new(&channel);
    let mut raw = Raw::new(theirs);
    send(&client, "binds");
    answer_bind(&mut raw);
    let wakes = Arc::new(Count::default());
    channel.set_waker(&Waker::from(Arc::clone(&wakes)));
    while channel.pump().unwrap() {}
    raw.receive(|frame| assert!(matches!(frame.body, RpcBody::InvokeMethod(_)), "{frame:?}"));
    let before = wakes.get();
    for number in 0..10 {
        send(&client, &number.to_string());
    }
    assert_eq!(wakes.get(), before + 1);
    assert!(raw.receive_within(Duration::ZERO, |_| ()).is_none(), "they wait for the driver");
    assert!(channel.interest().write);
    assert!(!channel.pump().unwrap());
    for _ in 0..10 {
        raw.receive(|frame| assert!(matches!(frame.body, RpcBody::InvokeMethod(_)), "{frame:?}"));
    }
    // Many do not wait.
    for _ in 0..20 {
        send(&client, &"x".repeat(10_000));
    }
    raw.receive(|_| ());
    // Nothing is lost at the end.
    while channel.interest().write {
        channel.pump().unwrap();
    }
    send(&client, "last");
    drop((client, channel));
    for _ in 0..20 {
        raw.receive(|_| ());
    }
    assert!(raw.receive_within(SOON, |_| ()).is_none(), "nothing follows");
}

#[test]
fn one_way_calls_that_wait_leave_room_for_others() {
    let (ours, theirs) = Stream::pair().unwrap();
    let channel = Channel::with_limits(ours, ChannelLimits { max_queued: 200, ..ChannelLimits::default() });
    let client = store::Client::new(&channel);
    channel.set_waker(Waker::noop());
    let mut raw = Raw::new(theirs);
    send(&client, "binds");
    while channel.pump().unwrap() {}
    answer_bind(&mut raw);
    while channel.pump().unwrap() {}
    for _ in 0..10 {
        // More than the limit, if none were written.
        (0..5).for_each(|_| send(&client, &"x".repeat(50)));
        client.note(&note("at once")).send_now().unwrap();
    }
}
