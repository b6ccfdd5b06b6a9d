//! A driver waits while the socket takes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use esatto_ipc::frame::rpc::{Features, InvokeMethod};
use esatto_ipc::{Channel, ServerConnection, ServerLimits, Stream};

use crate::messages::sample::GetRequest;
use crate::raw_peer::Raw;
use crate::sample_store::{Sample, note};
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
    raw.send(|out| esatto_ipc::frame::rpc::encode::bind_service(out, 1, "Store", Features::ALL, 0).unwrap());
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
