//! Typed calls of all kinds over each kind of socket.

use std::future::poll_fn;
use std::thread;
use std::time::Duration;

use esatto_ipc::server::{Context, Replies, Server as RpcServer};
use esatto_ipc::{Address, CallError, Channel, Code, Error, Listener, Status};

use crate::messages::sample::{Event, GetReply, GetRequest, Text, WatchRequest};
use crate::sample_store::{SOON, Sample, get, note, watch};
use crate::skip::{Skip, skip};
use crate::store::{self, Server};

/// Store that does not answer the key `never`, and counts the calls that were dropped.
#[derive(Clone, Debug, Default)]
struct Patient {
    sample: Sample,
}

impl Server for Patient {
    async fn get(&self, context: &Context, request: GetRequest) -> Result<GetReply, Status> {
        if request.key.as_ref().and_then(|key| key.to_str()) == Some("never") {
            let notes = self.sample.notes.clone();
            let _dropped = OnDrop(move || notes.lock().unwrap().push("dropped".to_owned()));
            return std::future::pending().await;
        }
        self.sample.get(context, request).await
    }

    async fn watch(&self, context: &Context, request: WatchRequest, replies: Replies<Event>) -> Result<(), Status> {
        self.sample.watch(context, request, replies).await
    }

    async fn note(&self, context: &Context, request: Text) {
        self.sample.note(context, request).await;
    }
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Waits until the server has this many notes.
fn wait_for(sample: &Sample, notes: usize) -> Vec<String> {
    let end = std::time::Instant::now() + SOON;
    loop {
        let now = sample.notes.lock().unwrap().clone();
        if now.len() >= notes {
            return now;
        }
        assert!(std::time::Instant::now() < end, "{now:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Serves on threads and on tokio, and makes calls of all kinds in all styles.
fn play(listener: Listener, address: &Address) {
    let patient = Patient::default();
    let server = RpcServer::new(store::ServeAsync::new(patient.clone()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let other = server.clone();
    let served = if address.as_path().is_some() {
        thread::spawn(move || other.serve_blocking(&listener))
    } else {
        let handle = runtime.handle().clone();
        thread::spawn(move || handle.block_on(other.serve(&listener)))
    };
    let channel = Channel::connect(address, SOON).unwrap();
    let client = store::Client::new(&channel);

    // One reply: small, large, none.
    assert_eq!(client.get(&get("a")).timeout(SOON).wait().unwrap().value.unwrap().to_str(), Some("a"));
    let mut request = get("large");
    request.payload = Some(vec![7; 120_000]);
    assert_eq!(client.get(&request).wait().unwrap().payload, request.payload);
    assert_eq!(client.get(&get("missing")).wait().unwrap_err().code(), Code::NotFound);
    // Replies that pause many times, because they are more than the window.
    let sizes: Vec<_> = client.watch(&watch(60, 100_000)).map(|event| event.unwrap().payload.unwrap().len()).collect();
    assert_eq!(sizes, [100_000; 60]);
    // No reply.
    (0..100).for_each(|number| client.note(&note(&number.to_string())).send().unwrap());
    client.get(&get("a")).wait().unwrap();
    assert_eq!(wait_for(&patient.sample, 100).len(), 100);
    // A deadline, a cancelled call and a cancelled stream: the service drops its work.
    let late = client.get(&get("never")).timeout(Duration::from_millis(30)).wait();
    assert_eq!(late, Err(CallError::Timeout("Store.Get")));
    assert_eq!(wait_for(&patient.sample, 101)[100], "dropped");
    let mut events = client.watch(&watch(1_000_000, 10));
    events.next_reply().unwrap().unwrap();
    drop(events);
    runtime.block_on(async {
        channel.spawn_driver().unwrap();
        let call = client.get(&get("never")).into_future();
        tokio::time::timeout(Duration::from_millis(30), call).await.unwrap_err();
        let mut events = client.watch(&watch(3, 100_000));
        for number in 0..3 {
            let event = poll_fn(|cx| events.poll_reply(cx)).await.unwrap().unwrap();
            assert_eq!(event.number, Some(number));
        }
        assert!(poll_fn(|cx| events.poll_reply(cx)).await.is_none());
        client.note(&note("async")).send_async().await.unwrap();
        client.get(&get("a")).await.unwrap();
    });
    assert_eq!(wait_for(&patient.sample, 103)[101..], ["dropped", "async"]);
    assert_eq!(channel.open_calls(), 0);

    let counters = server.counters();
    assert_eq!((counters.accepted, counters.open, counters.refused), (1, 1, 0));
    server.stop();
    served.join().unwrap().unwrap();
    let after = client.get(&get("a")).wait();
    assert_eq!(after, Err(CallError::Disconnected("Store.Get")));
}

#[test]
fn unix_sockets_carry_typed_calls() {
    let path = std::env::temp_dir().join(format!("esatto-every-{}", std::process::id()));
    for address in [Address::Path(path.clone()), Address::Abstract(path.to_str().unwrap().into())] {
        play(Listener::bind(&address).unwrap(), &address);
    }
    let _ = std::fs::remove_file(path);
}

#[test]
fn tcp_carries_typed_calls() {
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let address = Address::Inet { host: "127.0.0.1".into(), port: listener.port().unwrap() };
    play(listener, &address);
}

#[test]
fn vsock_carries_typed_calls() {
    skip(|| {
        let port = 0x5000_0000 | std::process::id();
        let no = |error: Error| Skip(format!("no vsock loopback: {error}"));
        let listener = Listener::bind(&Address::Vsock { cid: u32::MAX, port }).map_err(no)?;
        let address = Address::Vsock { cid: 1, port };
        // The connection is refused later, or has nobody to go to.
        drop(esatto_ipc::Stream::connect(&address, SOON).map_err(no)?);
        while listener.accept().unwrap().is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        play(listener, &address);
        Ok(())
    });
}
