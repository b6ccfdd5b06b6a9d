//! [`Server::serve_blocking`]: its limits, its counters and its end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use esatto_ipc::frame::encode as plain;
use esatto_ipc::server::{Context, Replies, Server as RpcServer, ServerCounters};
use esatto_ipc::{Address, CallError, Channel, Error, Listener, ServerLimits, Status, Stream};

use crate::messages::sample::{Event, GetReply, GetRequest, Text, WatchRequest};
use crate::raw_peer::Raw;
use crate::sample_store::{SOON, Sample, get, watch};
use crate::store::{self, Server};

type Served = RpcServer<store::ServeAsync<Sample>>;

/// Serves at an address of its own.
fn serve(name: &str, server: &Served) -> (Address, JoinHandle<Result<(), Error>>) {
    let address = Address::Abstract(format!("esatto-serve-{name}-{}", std::process::id()).into_bytes());
    let listener = Listener::bind(&address).unwrap();
    let server = server.clone();
    (address, thread::spawn(move || server.serve_blocking(&listener)))
}

fn connect(address: &Address) -> store::Client {
    store::Client::new(&Channel::connect(address, SOON).unwrap())
}

fn wait_for(server: &Served, what: &str, is_there: impl Fn(&ServerCounters) -> bool) -> ServerCounters {
    let end = Instant::now() + SOON;
    loop {
        let counters = server.counters();
        if is_there(&counters) {
            return counters;
        }
        assert!(Instant::now() < end, "{what}: {counters:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn server() -> Served {
    RpcServer::new(store::ServeAsync::new(Sample::default()))
}

#[test]
fn connections_beyond_the_limit_wait_for_their_turn() {
    let server = server().max_connections(2);
    let (address, _) = serve("limit", &server);
    let (first, second) = (connect(&address), connect(&address));
    first.get(&get("a")).wait().unwrap();
    second.get(&get("a")).wait().unwrap();
    let third = connect(&address);
    let short = Duration::from_millis(200);
    assert_eq!(third.get(&get("a")).timeout(short).wait(), Err(CallError::Timeout("Store.Get")));
    assert_eq!((server.counters().accepted, server.counters().open), (2, 2));
    first.get(&get("a")).wait().unwrap();
    drop(first);
    third.get(&get("a")).timeout(SOON).wait().unwrap();
    second.get(&get("a")).wait().unwrap();
    drop((second, third));
    let counters = wait_for(&server, "all end", |counters| counters.open == 0);
    assert_eq!((counters.accepted, counters.broken, counters.evicted), (3, 0, 0));
}

#[test]
fn clients_that_never_ask_lose_their_place_to_others() {
    let server = server().max_connections(3);
    let (address, _) = serve("evict", &server);
    let idle: Vec<_> = (0..3).map(|_| Stream::connect(&address, SOON).unwrap()).collect();
    wait_for(&server, "all are served", |counters| counters.open == 3);
    let active = connect(&address);
    active.get(&get("a")).timeout(SOON).wait().unwrap();
    assert_eq!(wait_for(&server, "one is gone", |counters| counters.open == 3).evicted, 1);
    // One that has asked keeps its place.
    thread::sleep(Duration::from_millis(1100));
    let others: Vec<_> = (0..3).map(|_| connect(&address)).collect();
    for other in &others[..2] {
        other.get(&get("a")).timeout(SOON).wait().unwrap();
    }
    assert!(others[2].get(&get("a")).timeout(Duration::from_millis(1500)).wait().is_err());
    active.get(&get("a")).wait().unwrap();
    assert_eq!(server.counters().evicted, 3);
    drop(idle);
}

#[test]
fn a_stop_ends_all_connections_and_the_server() {
    let server = server();
    let (address, served) = serve("stop", &server);
    let idle = Stream::connect(&address, SOON).unwrap();
    let (calls, client) = (connect(&address), connect(&address));
    let mut events = calls.watch(&watch(1_000_000, 1000));
    events.next_reply().unwrap();
    client.get(&get("a")).wait().unwrap();
    wait_for(&server, "all are served", |counters| counters.open == 3);
    server.stop();
    served.join().unwrap().unwrap();
    assert_eq!(server.counters().open, 0);
    let failed = std::iter::from_fn(|| events.next_reply().transpose()).find_map(Result::err);
    assert_eq!(failed, Some(CallError::Disconnected("Store.Watch")));
    assert_eq!(client.get(&get("a")).wait(), Err(CallError::Disconnected("Store.Get")));
    drop(idle);
    // It is over for good.
    let (_, served) = serve("again", &server);
    served.join().unwrap().unwrap();
}

/// Waits in its methods as code does that knows no futures.
#[derive(Clone, Debug, Default)]
struct Slow {
    running: Arc<AtomicUsize>,
}

impl Server for Slow {
    async fn get(&self, _: &Context, _: GetRequest) -> Result<GetReply, Status> {
        self.running.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(300));
        self.running.fetch_sub(1, Ordering::Relaxed);
        Ok(GetReply::default())
    }

    async fn watch(&self, _: &Context, _: WatchRequest, _: Replies<Event>) -> Result<(), Status> {
        panic!("the test wants it");
    }

    async fn note(&self, _: &Context, _: Text) {}
}

#[test]
fn a_stop_waits_for_functions_that_run() {
    let slow = Slow::default();
    let server = RpcServer::new(store::ServeAsync::new(slow.clone()));
    let address = Address::Abstract(format!("esatto-serve-function-{}", std::process::id()).into_bytes());
    let listener = Listener::bind(&address).unwrap();
    let other = server.clone();
    let served = thread::spawn(move || other.serve_blocking(&listener));
    let client = connect(&address);
    client.get(&get("a")).then(|_| {}).unwrap();
    while slow.running.load(Ordering::Relaxed) == 0 {
        client.channel().pump().unwrap();
    }
    server.stop();
    served.join().unwrap().unwrap();
    assert_eq!(slow.running.load(Ordering::Relaxed), 0);
}

#[test]
fn a_method_that_panics_ends_its_connection_only() {
    let server = RpcServer::new(store::ServeAsync::new(Slow::default()));
    let address = Address::Abstract(format!("esatto-serve-panic-{}", std::process::id()).into_bytes());
    let listener = Listener::bind(&address).unwrap();
    let other = server.clone();
    thread::spawn(move || other.serve_blocking(&listener));
    let client = connect(&address);
    client.get(&get("a")).wait().unwrap();
    let error = connect(&address).watch(&watch(1, 1)).next_reply().unwrap_err();
    assert_eq!(error, CallError::Disconnected("Store.Watch"));
    client.get(&get("a")).wait().unwrap();
    let end = Instant::now() + SOON;
    while server.counters().open > 1 {
        assert!(Instant::now() < end);
    }
    assert_eq!(server.counters().broken, 1);
}

#[test]
fn the_counters_add_up_over_all_connections() {
    let server = server();
    let (address, _) = serve("count", &server);
    for _ in 0..3 {
        let mut raw = Raw::new(Stream::connect(&address, SOON).unwrap());
        raw.send(|out| plain::bind_service(out, 1, "Nothing").unwrap());
        raw.receive(|_| ());
        raw.send_with(b"\x00\0\0\0\x05\0\0\0\xff\xff\xff\xff\xff", None);
        raw.send(|out| plain::request_error(out, 2));
        raw.receive(|_| ());
    }
    // A frame of 4 GB.
    let mut raw = Raw::new(Stream::connect(&address, SOON).unwrap());
    raw.send_with(&[0xff; 4], None);
    assert_eq!(raw.receive_within(SOON, |_| ()), None);
    let counters = wait_for(&server, "all end", |counters| counters.open == 0);
    assert_eq!((counters.accepted, counters.refused, counters.malformed, counters.broken), (4, 6, 6, 1));
}

#[test]
fn a_client_that_sends_byte_by_byte_delays_nobody_and_ends() {
    let limits = ServerLimits { max_frame_time: Duration::from_millis(400), ..ServerLimits::default() };
    let server = server().limits(limits);
    let (address, _) = serve("slow", &server);
    let client = connect(&address);
    let mut bind = Vec::new();
    plain::bind_service(&mut bind, 1, "Store").unwrap();
    // Each frame has its own time.
    let mut patient = Raw::new(Stream::connect(&address, SOON).unwrap());
    for _ in 0..4 {
        patient.send_with(&bind[..5], None);
        thread::sleep(Duration::from_millis(150));
        patient.send_with(&bind[5..], None);
        patient.receive(|_| ());
    }
    let slow = Stream::connect(&address, SOON).unwrap();
    let begin = Instant::now();
    let mut sent = 0;
    while let Ok(1) = slow.send(&bind[sent..=sent], None) {
        sent += 1;
        assert!(sent < bind.len(), "it is cut off");
        client.get(&get("a")).timeout(Duration::from_millis(300)).wait().unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    assert!(begin.elapsed() > Duration::from_millis(350));
    assert_eq!(wait_for(&server, "one ends", |counters| counters.open == 2).broken, 1);
}

/// Never answers.
#[derive(Clone, Debug)]
struct Silent;

impl Server for Silent {
    async fn get(&self, _: &Context, _: GetRequest) -> Result<GetReply, Status> {
        std::future::pending().await
    }

    async fn watch(&self, _: &Context, _: WatchRequest, _: Replies<Event>) -> Result<(), Status> {
        std::future::pending().await
    }

    async fn note(&self, _: &Context, _: Text) {
        std::future::pending().await
    }
}

#[test]
fn a_flood_of_calls_is_charged_to_its_connection() {
    let limits = ServerLimits { max_request_bytes: 500_000, ..ServerLimits::default() };
    let server = RpcServer::new(store::ServeAsync::new(Silent)).limits(limits);
    let address = Address::Abstract(format!("esatto-serve-flood-{}", std::process::id()).into_bytes());
    let listener = Listener::bind(&address).unwrap();
    let other = server.clone();
    thread::spawn(move || other.serve_blocking(&listener));
    let (client, neighbour) = (connect(&address), connect(&address));
    let mut request = get("a");
    request.payload = Some(vec![0; 100_000]);
    let (sender, failed) = mpsc::channel();
    for _ in 0..20 {
        let sender = sender.clone();
        let callback = move |result: Result<GetReply, CallError>| drop(sender.send(result.unwrap_err()));
        client.get(&request).then(callback).unwrap();
    }
    // Four of them fit. One-way calls are charged in the same way, and only counted.
    let mut texts = Vec::new();
    while texts.len() < 16 {
        client.channel().pump().unwrap();
        texts.extend(failed.try_iter().map(|error| error.to_string()));
    }
    let text = "Store.Get failed: Store.Get: the open calls have more than 500000 bytes (RESOURCE_EXHAUSTED)";
    assert!(texts.iter().all(|other| other == text), "{texts:?}");
    let long = Text { text: Some("x".repeat(100_000).into()), ..Text::default() };
    (0..10).for_each(|_| client.note(&long).send().unwrap());
    let end = Instant::now() + SOON;
    while server.counters().refused < 26 {
        client.channel().pump().unwrap();
        assert!(Instant::now() < end, "{:?}", server.counters());
    }
    // Another connection has its own account.
    for _ in 0..4 {
        let error = neighbour.get(&request).timeout(Duration::from_millis(20)).wait();
        assert_eq!(error, Err(CallError::Timeout("Store.Get")));
    }
    assert_eq!(server.counters().refused, 26);
    server.stop();
}

/// Store whose calls end when nobody waits for them.
#[derive(Default)]
struct Attentive {
    cancelled: AtomicUsize,
}

impl Attentive {
    fn run(&self, context: &Context) {
        let end = Instant::now() + SOON;
        while !context.is_cancelled() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        self.cancelled.fetch_add(usize::from(context.is_cancelled()), Ordering::Relaxed);
    }
}

impl Server for Arc<Attentive> {
    async fn get(&self, context: &Context, _: GetRequest) -> Result<GetReply, Status> {
        self.run(context);
        Ok(GetReply::default())
    }

    async fn watch(&self, _: &Context, _: WatchRequest, _: Replies<Event>) -> Result<(), Status> {
        Ok(())
    }

    async fn note(&self, context: &Context, _: Text) {
        self.run(context);
    }
}

#[test]
fn a_busy_thread_can_ask_if_anybody_waits() {
    let attentive = Arc::new(Attentive::default());
    let (channel, thread) = crate::sample_store::serve(store::ServeAsync::new(Arc::clone(&attentive)));
    let client = store::Client::new(&channel);
    // The deadline passes.
    client.get(&get("a")).timeout(Duration::from_millis(50)).wait().unwrap_err();
    let end = Instant::now() + SOON;
    while attentive.cancelled.load(Ordering::Relaxed) == 0 {
        assert!(Instant::now() < end, "it does not know of its deadline");
        thread::sleep(Duration::from_millis(1));
    }
    // The client goes away.
    client.get(&get("a")).then(|_| ()).unwrap();
    thread::sleep(Duration::from_millis(20));
    assert_eq!(attentive.cancelled.load(Ordering::Relaxed), 1, "somebody waits");
    channel.close();
    thread.join().unwrap();
    assert_eq!(attentive.cancelled.load(Ordering::Relaxed), 2);
}
