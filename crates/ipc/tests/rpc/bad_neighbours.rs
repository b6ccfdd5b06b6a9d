//! Hostile clients of a server, each at a real socket, all at once: a well-behaved client beside
//! them is served, their memory is bounded, and the counters tell.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use esatto_ipc::frame::encode as plain;
use esatto_ipc::frame::rpc::{Features, InvokeMethod, RpcBody, encode};
use esatto_ipc::{Address, Channel, Code, Listener, Server, Stream};
use esatto_protozero::Owned;

use crate::raw_peer::Raw;
use crate::sample_store::{SOON, Sample, get, watch};
use crate::store;

fn connect(address: &Address) -> Raw {
    Raw::new(Stream::connect(address, SOON).unwrap())
}

/// Invalid requests of all kinds, each with its answer.
fn ask_nonsense(address: &Address) {
    let mut raw = connect(address);
    raw.bind(Features::ALL);
    raw.send(|out| plain::bind_service(out, 2, &"x".repeat(100_000)).unwrap());
    raw.receive(|frame| assert!(matches!(frame.body, RpcBody::BindServiceReply { success: false, .. })));
    for (service_id, method_id) in [(0, 1), (2, 1), (1, 0), (1, 4), (u32::MAX, u32::MAX)] {
        let call = InvokeMethod { service_id, method_id, ..Default::default() };
        raw.send(|out| encode::invoke_method(out, 3, &call, false).unwrap());
        assert_eq!(raw.failure(), (3, Code::Unimplemented.number()));
    }
    raw.send(|out| encode::reply_ok(out, 4, b"", true, true).unwrap());
    raw.receive(|frame| assert!(matches!(frame.body, RpcBody::RequestError { .. })));
    // A stream without room, whose number is used again, and credit beyond all bounds.
    raw.call(5, 2, &watch(3, 10), InvokeMethod { window: Some(0), ..Default::default() });
    raw.call(5, 2, &watch(3, 10), InvokeMethod::default());
    assert_eq!(raw.failure(), (5, Code::InvalidArgument.number()));
    raw.send(|out| (0..1000).for_each(|_| encode::credit(out, 5, u32::MAX)));
    for number in 0..4 {
        let has_more = raw.receive(|frame| match frame.body {
            RpcBody::InvokeMethodReply { success: true, has_more, .. } => has_more,
            ref body => panic!("{body:?}"),
        });
        assert_eq!(has_more, number < 3);
    }
    raw.send(|out| (0..1000).for_each(|id| encode::cancel(out, id)));
    // Deadlines: none, nearly passed, in centuries.
    for timeout_us in [0, u64::MAX] {
        raw.call(6, 1, &get("a"), InvokeMethod { timeout_us, ..Default::default() });
        raw.receive(|frame| assert!(matches!(frame.body, RpcBody::InvokeMethodReply { success: true, .. })));
    }
    let null = std::fs::File::open("/dev/null").unwrap();
    let mut cancel = Vec::new();
    encode::cancel(&mut cancel, 77);
    (0..50).for_each(|_| raw.send_with(&cancel, Some(null.as_fd())));
    raw.still_works();
}

/// A frame of 4 GB, or of one byte too many.
fn announce_too_much(address: &Address) {
    for header in [[0xff; 4], [0xfd, 0xff, 1, 0]] {
        let mut raw = connect(address);
        raw.send_with(&header, None);
        assert_eq!(raw.receive_within(SOON, |_| ()), None, "the connection ends");
    }
}

/// Calls without end, and reads nothing.
fn never_read(address: &Address, is_over: &AtomicBool) {
    let raw = connect(address);
    let mut payload = get("a");
    payload.payload = Some(vec![0; 50_000]);
    let args = payload.encode();
    let mut bytes = Vec::new();
    plain::bind_service(&mut bytes, 1, "Store").unwrap();
    raw.send_with(&bytes, None);
    // Streams without a window, then large replies.
    (2..100).for_each(|id| raw.call(id, 2, &watch(1_000_000, 10_000), InvokeMethod::default()));
    let mut request = Vec::new();
    let call = InvokeMethod { service_id: 1, method_id: 1, args: &args, ..Default::default() };
    encode::invoke_method(&mut request, 200, &call, false).unwrap();
    let mut sent = 0;
    while !is_over.load(Ordering::Relaxed) {
        match raw.stream.send(&request[sent % request.len()..], None) {
            Ok(0) => thread::sleep(Duration::from_millis(1)),
            Ok(n) => sent += n,
            Err(error) => panic!("a client that does not read may stay: {error}"),
        }
        assert!(sent < 8 << 20, "its requests are read although it does not read");
    }
}

/// Floods the server with calls and reads the replies.
fn flood(address: &Address, is_over: &AtomicBool) {
    let channel = Channel::connect(address, SOON).unwrap();
    let client = store::Client::new(&channel);
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..100 {
            let _ = client.get(&get("a")).then(|result| drop(result.unwrap()));
        }
        channel.pump().unwrap();
    }
}

fn own_memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_client_is_served_beside_all_kinds_of_hostile_ones() {
    let address = Address::Abstract(format!("esatto-neighbours-{}", std::process::id()).into_bytes());
    let listener = Listener::bind(&address).unwrap();
    let server = Server::new(store::ServeAsync::new(Sample::default()));
    let other = server.clone();
    let served = thread::spawn(move || other.serve_blocking(&listener));
    let channel = Channel::connect(&address, SOON).unwrap();
    let neighbour = store::Client::new(&channel);
    neighbour.get(&get("a")).wait().unwrap();
    let (is_over, memory) = (AtomicBool::new(false), own_memory_kb());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| never_read(&address, &is_over));
        }
        scope.spawn(|| flood(&address, &is_over));
        let attacks = scope.spawn(|| {
            for _ in 0..5 {
                ask_nonsense(&address);
                announce_too_much(&address);
            }
        });
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end || !attacks.is_finished() {
            neighbour.get(&get("a")).timeout(SOON).wait().unwrap();
            assert_eq!(neighbour.watch(&watch(5, 1000)).timeout(SOON).map(Result::unwrap).count(), 5);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // Other tests of this process have some, too.
    let held = own_memory_kb().saturating_sub(memory);
    assert!(held < 200_000, "{held} KiB");
    assert_eq!(channel.unexpected(), 0);
    let counters = server.counters();
    assert_eq!((counters.refused, counters.unexpected_fds, counters.broken), (5 * 8, 5 * 50, 5 * 2));
    server.stop();
    served.join().unwrap().unwrap();
    assert_eq!(server.counters().open, 0);
}
