//! Servers withstand clients that break the rules: the call fails, a counter moves, and nothing
//! else is disturbed.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use esatto_ipc::frame::encode as plain;
use esatto_ipc::frame::rpc::{Features, InvokeMethod, RpcBody, WireStatus, encode};
use esatto_ipc::server::{Context, Replies, ServerConnection, ServerLimits};
use esatto_ipc::{Client, ClientEvent, Code, Error, FrameDecoder, Status, Stream};

use crate::messages::sample::{Event, GetReply, GetRequest, Text, WatchRequest};
use crate::raw_peer::Raw;
use crate::sample_store::{SOON, Sample, get, watch};
use crate::store::{self, Server};

type Connection = ServerConnection<store::ServeAsync<Sample>>;

/// Serves on a thread while `attack` runs, and returns the connection at its end.
fn attack(limits: ServerLimits, attack: impl FnOnce(&mut Raw)) -> (Connection, Arc<Error>) {
    let (ours, theirs) = Stream::pair().unwrap();
    let mut connection = ServerConnection::new(theirs, store::ServeAsync::new(Sample::default()), limits);
    let server = std::thread::spawn(move || {
        let end = connection.block();
        (connection, end)
    });
    let mut raw = Raw::new(ours);
    attack(&mut raw);
    drop(raw);
    server.join().unwrap()
}

fn is_hang_up(end: &Error) -> bool {
    matches!(end, Error::Disconnected)
}

#[test]
fn unknown_methods_services_and_frames_are_refused() {
    let (connection, end) = attack(ServerLimits::default(), |raw| {
        raw.send(|out| plain::bind_service(out, 5, &"x".repeat(100_000)).unwrap());
        raw.receive(|frame| assert!(matches!(frame.body, RpcBody::BindServiceReply { success: false, .. })));
        // The first bind had no extensions, so the failures are plain.
        for (service_id, method_id) in [(0, 1), (1, 0), (1, 4), (2, 1), (u32::MAX, u32::MAX)] {
            let call = InvokeMethod { service_id, method_id, drop_reply: true, ..Default::default() };
            raw.send(|out| encode::invoke_method(out, 7, &call, false).unwrap());
            assert_eq!(raw.failure(), (7, 0));
        }
        let garbled = InvokeMethod { service_id: 1, method_id: 1, args: b"\x0a\xff", ..Default::default() };
        raw.send(|out| encode::invoke_method(out, 8, &garbled, false).unwrap());
        assert_eq!(raw.failure(), (8, 0));
        // Frames that only a service may send.
        raw.send(|out| encode::reply_ok(out, 1, b"", true, false).unwrap());
        raw.receive(|frame| assert!(matches!(frame.body, RpcBody::RequestError { .. })));
        raw.send(|out| encode::reply_status(out, 2, &WireStatus::default()));
        raw.receive(|frame| assert!(matches!(frame.body, RpcBody::RequestError { .. })));
        raw.send_with(b"\x05\0\0\0\xff\xff\xff\xff\xff", None);
        raw.still_works();
    });
    assert!(connection.refused() >= 9 && is_hang_up(&end));
}

#[test]
fn with_extensions_the_refusals_have_codes() {
    attack(ServerLimits { max_calls: 2, ..ServerLimits::default() }, |raw| {
        raw.bind(Features(u32::MAX));
        raw.call(2, 9, &get("a"), InvokeMethod::default());
        assert_eq!(raw.failure(), (2, Code::Unimplemented.number()));
        // Two streams that have no room stay open.
        let paused = InvokeMethod { window: Some(0), ..Default::default() };
        raw.call(3, 2, &watch(5, 10), paused);
        raw.call(4, 2, &watch(5, 10), paused);
        raw.call(4, 2, &watch(5, 10), paused);
        assert_eq!(raw.failure(), (4, Code::InvalidArgument.number()));
        raw.call(5, 1, &get("a"), InvokeMethod::default());
        assert_eq!(raw.failure(), (5, Code::ResourceExhausted.number()));
        // A cancelled call has no answer, and makes room.
        raw.send(|out| encode::cancel(out, 3));
        raw.send(|out| (0..100).for_each(|id| encode::cancel(out, 1000 + id)));
        raw.still_works();
    });
}

#[test]
fn credit_of_any_size_is_counted_without_overflow() {
    attack(ServerLimits::default(), |raw| {
        raw.bind(Features::ALL);
        raw.call(2, 2, &watch(3, 10), InvokeMethod { window: Some(u32::MAX), ..Default::default() });
        for _ in 0..1000 {
            raw.send(|out| encode::credit(out, 2, u32::MAX));
            raw.send(|out| encode::credit(out, 3, u32::MAX));
        }
        for _ in 0..4 {
            raw.receive(|frame| assert_eq!(frame.request_id, 2));
        }
        raw.still_works();
        // A window of one byte is good for one reply, whatever its size. Each frame has 28 bytes.
        raw.call(9, 2, &watch(3, 10), InvokeMethod { window: Some(1), ..Default::default() });
        for credit in [1, 1000] {
            raw.receive(|frame| assert_eq!(frame.request_id, 9));
            assert_eq!(raw.receive_within(Duration::from_millis(20), |frame| frame.request_id), None);
            raw.send(|out| encode::credit(out, 9, credit));
            if credit == 1 {
                assert_eq!(raw.receive_within(Duration::from_millis(20), |frame| frame.request_id), None);
                raw.send(|out| encode::credit(out, 9, 27));
            }
        }
        raw.receive(|frame| assert_eq!(frame.request_id, 9));
        raw.receive(|frame| {
            assert!(matches!(frame.body, RpcBody::InvokeMethodReply { has_more: false, body: None, .. }));
        });
    });
}

#[test]
fn descriptors_that_nobody_expects_are_closed() {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let (connection, _) = attack(ServerLimits::default(), |raw| {
        raw.bind(Features::ALL);
        let mut frame = Vec::new();
        let args = esatto_protozero::Owned::encode(&get("a"));
        let call = InvokeMethod { service_id: 1, method_id: 1, args: &args, ..Default::default() };
        for has_fd in [false, true] {
            frame.clear();
            encode::invoke_method(&mut frame, 2, &call, has_fd).unwrap();
            for _ in 0..20 {
                raw.send_with(&frame, Some(write.as_fd()));
                raw.receive(|frame| assert_eq!(frame.request_id, 2));
            }
            // A descriptor with every byte.
            for byte in &frame {
                raw.send_with(&[*byte], Some(write.as_fd()));
            }
            raw.receive(|frame| assert_eq!(frame.request_id, 2));
        }
        // A frame says that it has a descriptor, and has none.
        raw.send_with(&frame, None);
        raw.receive(|frame| assert_eq!(frame.request_id, 2));
        raw.still_works();
    });
    assert!(connection.unexpected_fds() >= 60, "{}", connection.unexpected_fds());
    // All of them are closed.
    drop(write);
    assert_eq!(File::from(read).read(&mut [0]).unwrap(), 0);
}

#[test]
fn requests_arrive_whole_wherever_they_are_cut() {
    let mut bytes = Vec::new();
    encode::bind_service(&mut bytes, 1, "Store", Features::ALL, 7).unwrap();
    let args = esatto_protozero::Owned::encode(&get("abc"));
    let call = InvokeMethod { service_id: 1, method_id: 1, args: &args, timeout_us: 1 << 40, ..Default::default() };
    encode::invoke_method(&mut bytes, 2, &call, false).unwrap();
    encode::cancel(&mut bytes, 77);
    for cut in 0..=bytes.len() {
        let (ours, theirs) = Stream::pair().unwrap();
        let mut connection = ServerConnection::new(theirs, store::Serve(Sample::default()), ServerLimits::default());
        let mut raw = Raw::new(ours);
        raw.send_with(&bytes[..cut], None);
        while connection.pump().unwrap() {}
        raw.send_with(&bytes[cut..], None);
        while connection.pump().unwrap() {}
        assert_eq!(raw.receive(|frame| frame.request_id), 1);
        assert_eq!(raw.receive(|frame| frame.request_id), 2);
        assert_eq!((connection.open_calls(), connection.refused()), (0, 0));
        // The end in the middle of a frame.
        raw.send_with(&bytes[..cut], None);
        drop(raw);
        assert!((0..3).any(|_| connection.pump().is_err()));
    }
}

#[test]
fn a_client_that_does_not_read_bounds_the_memory_of_its_server() {
    let limits = ServerLimits::default();
    let (ours, theirs) = Stream::pair().unwrap();
    let mut connection = ServerConnection::new(theirs, store::ServeAsync::new(Sample::default()), limits);
    let mut raw = Raw::new(ours);
    // A stream without window, as an old client asks for it, and then calls without end.
    raw.call(2, 2, &watch(1_000_000, 10_000), InvokeMethod::default());
    let args = esatto_protozero::Owned::encode(&GetRequest { payload: Some(vec![0; 50_000]), ..get("a") });
    let call = InvokeMethod { service_id: 1, method_id: 1, args: &args, ..Default::default() };
    let mut request = Vec::new();
    encode::invoke_method(&mut request, 3, &call, false).unwrap();
    let (mut sent, mut rounds_without_progress) = (0, 0);
    while rounds_without_progress < 3 {
        let n = raw.stream.send(&request[sent % request.len()..], None).unwrap();
        sent += n;
        rounds_without_progress = if n == 0 { rounds_without_progress + 1 } else { 0 };
        for _ in 0..100 {
            connection.pump().unwrap();
        }
        assert!(connection.queued() < limits.pause_at + 2 * 131_072, "{}", connection.queued());
        assert!(sent < 4 << 20, "the server reads on although its replies are not read");
    }
    // It continues when the client reads.
    let end = Instant::now() + SOON;
    let mut replies = 0;
    while replies < 1000 {
        assert!(Instant::now() < end);
        connection.pump().unwrap();
        while raw.receive_within(Duration::ZERO, |_| ()).is_some() {
            replies += 1;
        }
    }
    raw.send(|out| encode::cancel(out, 2));
    let _ = raw.stream.send(&request[sent % request.len()..], None);
}

#[derive(Debug)]
struct Never;

impl Server for Never {
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
fn deadlines_in_the_past_and_in_the_far_future_are_kept() {
    let (ours, theirs) = Stream::pair().unwrap();
    let mut connection = ServerConnection::new(theirs, store::ServeAsync::new(Never), ServerLimits::default());
    std::thread::spawn(move || connection.block());
    let mut raw = Raw::new(ours);
    raw.bind(Features::ALL);
    for (id, timeout_us) in [(2, u64::MAX), (3, 1), (4, 20_000), (5, 0)] {
        raw.call(id, 1, &get("a"), InvokeMethod { timeout_us, ..Default::default() });
    }
    assert_eq!(raw.failure(), (3, Code::DeadlineExceeded.number()));
    assert_eq!(raw.failure(), (4, Code::DeadlineExceeded.number()));
    assert_eq!(raw.receive_within(Duration::from_millis(50), |frame| frame.request_id), None);
}

#[test]
fn clients_without_extensions_are_served() {
    attack(ServerLimits::default(), |raw| {
        let mut client = Client::new();
        let mut out = Vec::new();
        let mut decoder = FrameDecoder::new();
        let mut exchange = |out: &mut Vec<u8>, client: &mut Client, replies: usize| {
            raw.send_with(out, None);
            out.clear();
            let mut seen = Vec::new();
            while seen.len() < replies {
                let mut bytes = [0; 4096];
                if let Some(received) = raw.stream.recv(&mut bytes).unwrap() {
                    assert_eq!(decoder.push(&bytes[..received.len]), received.len);
                }
                while let Some(frame) = decoder.next_frame().unwrap() {
                    seen.push(match client.handle(&frame) {
                        Some(ClientEvent::Reply { success, has_more, body, .. }) => (success, has_more, body.len()),
                        Some(ClientEvent::Bound) => (true, false, 0),
                        event => panic!("{event:?}"),
                    });
                }
            }
            seen
        };
        client.bind("Store", &mut out).unwrap();
        exchange(&mut out, &mut client, 1);
        client.invoke("Get", b"\x0a\x01a", false, &mut out).unwrap();
        client.invoke("Get", b"\x0a\x07missing", false, &mut out).unwrap();
        client.invoke("Watch", b"\x08\x02", false, &mut out).unwrap();
        let seen = exchange(&mut out, &mut client, 5);
        assert_eq!(seen[..2], [(true, false, 3), (false, false, 0)]);
        assert_eq!(
            seen[2..].iter().map(|(ok, more, _)| (*ok, *more)).collect::<Vec<_>>(),
            [(true, true), (true, true), (true, false)]
        );
    });
}
