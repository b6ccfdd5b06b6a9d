//! Calls between a generated client and a generated server.

#![allow(missing_docs, reason = "a test")]

use std::future::Future;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use esatto_fidl::{CallError, ClientEnd, Handle, Progress, Responder, ServerEnd, endpoints};
use esatto_fidl_tests::test_echo::echo::{Client, Event, Events, Methods, method, serve};
use esatto_fidl_tests::test_echo::*;
use esatto_fidl_tests::test_shapes::{Choice, Color, Options};
use esatto_ipc::hooks::{self, Hooks};
use esatto_ipc::sys::{PollFd, poll};
use esatto_ipc::tokio::TokioIo;

/// Server that answers each call at once, except `Later`, which a thread answers.
#[derive(Default)]
struct Answers {
    events: Option<esatto_fidl::EventSender<Echo>>,
    unknown: Vec<u64>,
}

impl Methods for Answers {
    fn echo_string(&mut self, request: EchoEchoStringRequest, responder: Responder<method::EchoString>) {
        responder.send(&EchoEchoStringResponse { response: request.value }).unwrap();
    }

    fn send_string(&mut self, request: EchoSendStringRequest) {
        // If the client takes no events, this one is left out.
        let _ = self.events.as_ref().unwrap().on_string(&EchoOnStringRequest { response: request.value });
    }

    fn divide(&mut self, request: EchoDivideRequest, responder: Responder<method::Divide>) {
        let quotient = request.dividend.checked_div(request.divisor);
        let result = quotient.map(|quotient| EchoDivideResponse { quotient }).ok_or(DivisionError::ByZero);
        responder.send(&result).unwrap();
    }

    fn later(&mut self, request: Choice, responder: Responder<method::Later>) {
        thread::spawn(move || {
            let color = matches!(request, Choice::Text(_)).then_some(Color::Red);
            responder.send(&Options { color, ..Options::default() }).unwrap();
        });
    }

    fn ping(&mut self, responder: Responder<method::Ping>) {
        responder.send(&()).unwrap();
    }

    fn forget(&mut self) {
        self.events.as_ref().unwrap().on_end().unwrap();
    }

    fn pass(&mut self, request: EchoPassRequest, responder: Responder<method::Pass>) {
        responder.send(&EchoPassResponse { file: Some(request.file) }).unwrap();
    }

    fn fail(&mut self, responder: Responder<method::Fail>) {
        responder.close_with(-24);
    }

    fn unknown_method(&mut self, ordinal: u64) {
        self.unknown.push(ordinal);
    }
}

fn start(end: ServerEnd<Echo>) -> thread::JoinHandle<(Result<(), CallError>, Vec<u64>)> {
    let mut server = serve(end, Answers::default()).unwrap();
    server.methods().0.events = Some(server.events());
    thread::spawn(move || {
        let result = server.run();
        (result, std::mem::take(&mut server.methods().0.unknown))
    })
}

fn both_sockets(test: impl Fn(ClientEnd<Echo>, ServerEnd<Echo>)) {
    let (client, server) = endpoints().unwrap();
    test(client, server);
    let (client, server) = UnixStream::pair().unwrap();
    test(OwnedFd::from(client).into(), OwnedFd::from(server).into());
}

#[test]
fn calls_are_answered() {
    both_sockets(|client, server| {
        let server = start(server);
        let client = Client::new(client).unwrap();
        let request = EchoEchoStringRequest::new("hello".to_owned());
        assert_eq!(client.echo_string(&request).wait().unwrap().response, "hello");
        let quotient = client.divide(&EchoDivideRequest::new(7, 2)).wait().unwrap();
        assert_eq!(quotient, Ok(EchoDivideResponse::new(3)));
        assert_eq!(client.divide(&EchoDivideRequest::new(7, 0)).wait().unwrap(), Err(DivisionError::ByZero));
        client.ping().timeout(Duration::from_secs(60)).wait().unwrap();
        let options = client.later(&Choice::Text("x".to_owned())).wait().unwrap();
        assert_eq!(options.color, Some(Color::Red));
        drop(client);
        server.join().unwrap().0.unwrap();
    });
}

#[test]
fn events_come_in_order() {
    both_sockets(|client, server| {
        let _server = start(server);
        let client = Client::new(client).unwrap();
        client.send_string(&EchoSendStringRequest::new("one".to_owned())).unwrap();
        client.forget().unwrap();
        client.ping().wait().unwrap();
        let Some(Event::OnString(event)) = client.wait_event(None).unwrap() else { panic!() };
        assert_eq!(event.response, "one");
        assert!(matches!(client.wait_event(None).unwrap(), Some(Event::OnEnd)));
        assert!(client.wait_event(Some(Duration::from_millis(1))).unwrap().is_none());
    });
}

#[test]
fn descriptors_travel_both_ways() {
    both_sockets(|client, server| {
        let _server = start(server);
        let client = Client::new(client).unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        let request = EchoPassRequest { file: Handle::from(OwnedFd::from(far)) };
        let back = client.pass(&request).wait().unwrap().file.unwrap();
        drop(request);
        UnixStream::from(OwnedFd::from(back)).write_all(b"through").unwrap();
        let mut text = String::new();
        near.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    });
}

#[test]
fn an_epitaph_is_told_and_ends_the_connection() {
    both_sockets(|client, server| {
        let _server = start(server);
        let client = Client::new(client).unwrap();
        assert!(matches!(client.fail().wait(), Err(CallError::Epitaph(-24))));
        assert!(matches!(client.ping().wait(), Err(CallError::Epitaph(-24))));
    });
}

#[test]
fn unknown_flexible_methods_are_told() {
    let (client, server) = endpoints::<Echo>().unwrap();
    let server = start(server);
    let client = newer_echo::Client::new(OwnedFd::from(client).into()).unwrap();
    assert!(matches!(client.added().wait(), Err(CallError::UnknownMethod)));
    client.added_one_way().unwrap();
    client.ping().wait().unwrap();
    assert!(matches!(client.added_strict().wait(), Err(CallError::Closed)));
    let (result, unknown) = server.join().unwrap();
    assert_eq!(result.unwrap_err().to_string(), "the peer broke the protocol: a call of an unknown method");
    assert_eq!(unknown.len(), 2);
}

#[test]
fn threads_share_a_client() {
    let (client, server) = endpoints().unwrap();
    let _server = start(server);
    let client = Client::new(client).unwrap();
    thread::scope(|scope| {
        for thread in 0..8 {
            let client = client.clone();
            scope.spawn(move || {
                for call in 0..100 {
                    let text = format!("{thread} {call}");
                    let request = EchoEchoStringRequest::new(text.clone());
                    assert_eq!(client.echo_string(&request).wait().unwrap().response, text);
                }
            });
        }
    });
}

#[test]
fn a_value_without_an_encoding_disturbs_nothing() {
    let (client, server) = endpoints().unwrap();
    let _server = start(server);
    let client = Client::new(client).unwrap();
    let long = EchoEchoStringRequest::new("x".repeat(101));
    let error = client.echo_string(&long).wait().unwrap_err();
    assert!(matches!(error, CallError::Encode(_)), "{error}");
    let huge = EchoSendStringRequest::new("x".repeat(70_000));
    assert!(matches!(client.send_string(&huge), Err(CallError::TooLarge { .. })));
    client.ping().wait().unwrap();
}

#[test]
fn a_dropped_responder_ends_the_connection() {
    struct Drops;
    impl newer_echo::Methods for Drops {
        fn added(&mut self, responder: Responder<newer_echo::method::Added>) {
            drop(responder);
        }
        fn added_one_way(&mut self) {}
        fn added_strict(&mut self, _: Responder<newer_echo::method::AddedStrict>) {}
        fn ping(&mut self, _: Responder<newer_echo::method::Ping>) {}
    }
    let (client, server) = endpoints().unwrap();
    let mut server = newer_echo::serve(server, Drops).unwrap();
    let server = thread::spawn(move || server.run());
    let client = newer_echo::Client::new(client).unwrap();
    assert!(matches!(client.added().wait(), Err(CallError::Closed)));
    server.join().unwrap().unwrap();
}

#[test]
fn a_deadline_ends_the_wait_and_a_late_response_is_dropped() {
    let (client, server) = endpoints::<Echo>().unwrap();
    let client = Client::new(client).unwrap();
    let call = client.ping().timeout(Duration::from_millis(1));
    assert!(matches!(call.wait(), Err(CallError::Timeout)));
    let _server = start(server);
    client.ping().wait().unwrap();
}

#[test]
fn many_small_messages_on_a_stream_stay_in_order() {
    let (client, server) = UnixStream::pair().unwrap();
    let _server = start(OwnedFd::from(server).into());
    let client = Client::new(OwnedFd::from(client).into()).unwrap();
    for batch in 0..20 {
        let text = |number: usize| format!("{batch} {number}");
        for number in 0..500 {
            client.send_string(&EchoSendStringRequest::new(text(number))).unwrap();
        }
        for number in 0..500 {
            let Some(Event::OnString(event)) = client.wait_event(None).unwrap() else { panic!() };
            assert_eq!(event.response, text(number));
        }
    }
}

#[test]
fn events_that_nobody_takes_end_the_connection() {
    let (client, server) = endpoints::<Echo>().unwrap();
    let mut server = serve(server, Answers::default()).unwrap();
    let events = server.events();
    let client = Client::new(client).unwrap();
    let sender = thread::spawn(move || {
        let large = EchoOnStringRequest::new("x".repeat(60_000));
        while !matches!(events.on_string(&large), Err(CallError::Closed)) {
            if matches!(server.pump(), Ok(Progress::Ended) | Err(_)) {
                break;
            }
        }
    });
    let error = loop {
        if let Err(error) = client.ping().wait() {
            break error;
        }
    };
    assert!(matches!(error, CallError::Protocol("more events than the program takes")), "{error}");
    sender.join().unwrap();
}

#[test]
fn two_peers_that_both_wait_for_room_go_on() {
    both_sockets(|client, server| {
        let _server = start(server);
        let client = Client::new(client).unwrap();
        // The server's events fill one direction while the client fills the other. The server
        // leaves out events that find no room.
        let text = "x".repeat(30_000);
        let take = |wait| client.wait_event(Some(wait)).unwrap().is_some();
        for _ in 0..200 {
            while let Err(error) = client.send_string(&EchoSendStringRequest::new(text.clone())) {
                assert!(matches!(error, CallError::Full), "{error}");
                assert!(take(Duration::from_secs(60)), "neither end goes on");
            }
        }
        while take(Duration::from_millis(200)) {}
        client.ping().timeout(Duration::from_secs(60)).wait().unwrap();
    });
}

#[tokio::test]
async fn tasks_of_tokio_end_with_the_last_client() {
    let (client, server) = endpoints::<Echo>().unwrap();
    let mut server = serve(server, Answers::default()).unwrap();
    let serving = tokio::spawn(async move { server.drive_on_tokio().await });
    let client = Client::new(client).unwrap();
    client.channel().spawn_driver().unwrap();
    let other = client.clone();
    drop(client);
    let request = EchoEchoStringRequest::new("hello".to_owned());
    assert_eq!(other.echo_string(&request).await.unwrap().response, "hello");
    drop(other);
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn calls_and_events_are_awaited() {
    let (client, server) = endpoints::<Echo>().unwrap();
    let mut server = serve(server, Answers::default()).unwrap();
    server.methods().0.events = Some(server.events());
    let io = TokioIo::duplicate(&server).unwrap();
    let serving = tokio::spawn(async move { server.drive(io).await });
    let client = Client::new(client).unwrap();
    let (driven, io) = (client.clone(), TokioIo::duplicate(client.channel()).unwrap());
    let driving = tokio::spawn(async move { driven.channel().drive(io).await });

    let request = EchoEchoStringRequest::new("hello".to_owned());
    assert_eq!(client.echo_string(&request).await.unwrap().response, "hello");
    let (first, second) = (EchoDivideRequest::new(8, 2), EchoDivideRequest::new(8, 0));
    let (first, second) = tokio::join!(client.divide(&first), client.divide(&second));
    assert_eq!((first.unwrap(), second.unwrap()), (Ok(EchoDivideResponse::new(4)), Err(DivisionError::ByZero)));

    // More events than a client keeps: the rest stays in the socket until the program takes some.
    for number in 0..2000 {
        client.send_string(&EchoSendStringRequest::new(number.to_string())).unwrap();
        if number % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    for number in 0..2000 {
        let Event::OnString(event) = client.next_event().await.unwrap() else { panic!() };
        assert_eq!(event.response, number.to_string());
    }
    client.channel().close();
    assert!(matches!(driving.await.unwrap(), CallError::Closed));
    serving.await.unwrap().unwrap();
    assert!(matches!(client.ping().await, Err(CallError::Closed)));
}

/// Client's socket of the test below, and if it had something to read when the response was
/// recorded.
static CLIENT: Mutex<Option<OwnedFd>> = Mutex::new(None);
static WAS_READABLE: Mutex<Option<bool>> = Mutex::new(None);

/// Text of the response that the test below looks for: the table of hooks is that of all tests.
const RECORDED: &str = "recorded first";

fn is_readable(socket: &OwnedFd) -> bool {
    let mut socket = [PollFd::new(socket.as_fd(), false)];
    poll(&mut socket, Some(Duration::ZERO)).unwrap();
    socket[0].is_readable()
}

#[test]
fn a_response_is_recorded_before_the_client_can_have_it() {
    let mut table = Hooks::none();
    table.enabled = |_| true;
    table.reply_sent = |_, reply| {
        if reply.message.windows(RECORDED.len()).any(|text| text == RECORDED.as_bytes()) {
            *WAS_READABLE.lock().unwrap() = CLIENT.lock().unwrap().as_ref().map(is_readable);
        }
    };
    hooks::install(table).unwrap();
    let (client, server) = endpoints().unwrap();
    let mut server = serve(server, Answers::default()).unwrap();
    let client = Client::new(client).unwrap();
    let socket = client.channel().as_fd().try_clone_to_owned().unwrap();
    *CLIENT.lock().unwrap() = Some(socket.try_clone().unwrap());
    // Nobody reads the response.
    let request = EchoEchoStringRequest::new(RECORDED.to_owned());
    let mut call = pin!(client.echo_string(&request));
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    while !is_readable(&socket) {
        server.pump().unwrap();
    }
    assert_eq!(*WAS_READABLE.lock().unwrap(), Some(false));
}
