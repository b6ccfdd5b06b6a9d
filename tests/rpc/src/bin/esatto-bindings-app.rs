//! The programs of the tests of traced bindings. They meet at the sockets that the test names:
//!
//! - `server SOCKET`: offers the service `Shop` until somebody calls `quit`;
//! - `client SCENARIO SOCKET CONTROL`: plays a scenario with the server at `SOCKET`. The methods
//!   that control the server go to `CONTROL`, which leads to the same server without a detour;
//! - `peer OWN OTHER`: offers the service, and calls that of another peer;
//! - `relay SOCKET TARGET`: passes bytes on;
//! - `ports CONSUMER PRODUCER`: calls a tracing service;
//! - `consumer_port SOCKET`: answers one client of a tracing service.
//!
//! With `WITHOUT_ADAPTER` in the environment, nothing records calls. With `WITHOUT_CATEGORY`, the
//! service has no category. With `OFF`, the program does not wait until its calls are recorded;
//! with `AT_ONCE`, it does not wait for any recording.

#![deny(unsafe_code)]

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Waker};
use core::time::Duration;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use esatto::{Category, Flow, Session, Tracing};
use esatto_ipc::frame::rpc::{Features, InvokeMethod, RpcBody, encode};
use esatto_ipc::hooks::{self, Hooks};
use esatto_ipc::service::Rpc;
use esatto_ipc::sys::{PollFd, poll};
use esatto_ipc::{Address, CallError, Channel, Code, FrameDecoder, Listener, Server, Stream};
use esatto_protozero::Owned;
use esatto_rpc_tests::ports;
use esatto_rpc_tests::shop::{CATEGORY, Shelf, cellar, item, item_of_size, plain, traced};
use esatto_rpc_tests::wiretap::{Mode, Wiretap};

esatto::categories! {
    static APP = "app";
}

/// Far longer than anything takes.
const LONG: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let has_category = std::env::var_os("WITHOUT_CATEGORY").is_none();
    let has_adapter = std::env::var_os("WITHOUT_ADAPTER").is_none();
    assert!(!has_adapter || esatto_rpc_trace::install(), "the first adapter");
    if let ["relay", socket, target] = arguments[..] {
        let _relay = Wiretap::start(Path::new(socket), Path::new(target), Mode::Pass);
        println!("ready");
        loop {
            thread::park();
        }
    }
    // No event is lost, even if the service takes nothing before the end.
    let tracing = Tracing::builder().system().shared_memory(4096, 4).categories(CATEGORIES);
    let tracing = tracing.start().expect("the control thread starts");
    let category = Category::dynamic_with_tags(CATEGORY, &["rpc"]);
    let wait = || assert!(tracing.wait_until_enabled(category, LONG), "a session records calls");
    if std::env::var_os("AT_ONCE").is_none() {
        assert!(tracing.wait_until_enabled(&APP, LONG), "a session records");
        if std::env::var_os("OFF").is_none() {
            wait();
        }
    }
    match arguments[..] {
        ["server", socket] => serve(socket, has_category).wait_for_end(),
        ["client", scenario, socket, control] => client(scenario, socket, control, &wait),
        ["peer", own, other] => peer(own, other),
        ["ports", consumer, producer] => ports::call(&connect(consumer), &connect(producer), has_category),
        ["consumer_port", socket] => ports::serve(&Listener::bind(&address(socket)).expect("listens"), has_category),
        _ => panic!("unknown arguments: {arguments:?}"),
    }
    if !has_adapter {
        assert!(hooks::install(Hooks::none()).is_ok(), "there was no table");
    }
    tracing.flush(LONG);
}

/// Returns the address of a file in the folder, or of `HOST:PORT`.
fn address(socket: &str) -> Address {
    if socket.contains(':') { Address::parse(socket).expect("a host") } else { Address::Path(socket.into()) }
}

fn connect(socket: &str) -> Channel {
    Channel::connect(&address(socket), LONG).expect("a server listens")
}

fn serve(socket: &str, has_category: bool) -> Shelf {
    let shelf = Shelf::default();
    let listener = Listener::bind(&address(socket)).expect("listens");
    let port = listener.port();
    if has_category {
        let server = Server::new(traced::shop::Serve(shelf.clone()));
        thread::spawn(move || server.serve_blocking(&listener));
    } else {
        let server = Server::new(plain::shop::Serve(shelf.clone()));
        thread::spawn(move || server.serve_blocking(&listener));
    }
    println!("ready {}", port.map_or(String::new(), |port| port.to_string()));
    shelf
}

/// Plays the calls of a conversation whose bytes are compared. Ends the server.
macro_rules! conversation {
    ($client:expr) => {{
        let client = $client;
        assert_eq!(client.get(&item(7)).wait(), Ok(item(7)));
        client.refuse(&item(7)).wait().expect_err("fails");
        client.note(&item(7)).send().expect("is sent");
        let own = Stream::pair().expect("a pair").0;
        let fd = own.as_fd().try_clone_to_owned().expect("a descriptor");
        assert_eq!(client.get(&item(8)).attach(fd).wait(), Ok(item(8)));
        assert_eq!(client.watch(&item(3)).map(Result::unwrap).collect::<Vec<_>>(), [item(1), item(2), item(3)]);
        assert_eq!(client.list(&item(1)).map(Result::unwrap).collect::<Vec<_>>(), [item(1)]);
        cellar::Client::new(client.channel()).open(&item(1)).wait().expect_err("there is none");
        client.await_held(&item(0)).wait().expect("is answered");
    }};
}

fn client(scenario: &str, socket: &str, control: &str, wait_until_enabled: &dyn Fn()) {
    let control = traced::shop::Client::new(&connect(control));
    let channel = connect(socket);
    let shop = traced::shop::Client::new(&channel);
    let await_held = |count| assert!(control.await_held(&item(count)).wait().is_ok());
    let release = || assert!(control.release(&item(0)).wait().is_ok());
    // Sends the calls that wait, runs the callbacks of those that are answered, and then sees the
    // reply to an untraced call.
    let pump = || shop.await_held(&item(0)).wait();
    if !matches!(scenario, "unary" | "callback" | "first_of_two" | "second_of_two" | "missing_service")
        && !scenario.ends_with("conversation")
    {
        // Binds the service, so that the calls are sent at once.
        pump().expect("is answered");
    }
    match scenario {
        "unary" => assert_eq!(shop.get(&item(7)).wait(), Ok(item(7))),
        "in_two_sessions" => {
            esatto::instant!(APP, "calls");
            assert_eq!(shop.get(&item(7)).wait(), Ok(item(7)));
            shop.note(&item(7)).send().expect("is sent");
            pump().expect("is answered");
        }
        "callback" => {
            let (sender, replies) = mpsc::channel();
            shop.get(&item(7)).then(move |reply| sender.send(reply).expect("is awaited")).expect("is sent");
            pump().expect("is answered");
            assert_eq!(replies.try_recv(), Ok(Ok(item(7))));
        }
        "one_way" => {
            shop.note(&item(7)).send().expect("is sent");
            pump().expect("is answered");
        }
        "many" => {
            for _ in 0..5000 {
                shop.note(&item(7)).send().expect("is sent");
            }
            pump().expect("is answered");
        }
        // Two processes play these at the same time.
        "first_of_two" => {
            thread::scope(|scope| {
                scope.spawn(|| shop.hold(&item_of_size("a")).wait().expect("is answered"));
                await_held(2);
                release();
            });
            // The other one has its reply when it says so.
            control.await_signal(&item(0)).wait().expect("is answered");
        }
        "second_of_two" => {
            shop.hold(&item_of_size("another")).wait().expect("is answered");
            pump().expect("is answered");
            control.signal(&item(0)).send().expect("is sent");
            return;
        }
        "stream" => {
            let replies = shop.watch(&item(3)).start().expect("is sent");
            control.await_streams(&item(1)).wait().expect("is answered");
            assert_eq!(replies.map(Result::unwrap).count(), 3);
        }
        "open_stream" => {
            let replies = shop.list(&item(3)).start().expect("is sent");
            control.await_streams(&item(1)).wait().expect("is answered");
            assert_eq!(replies.map(Result::unwrap).count(), 3);
        }
        "worker" => thread::scope(|scope| {
            scope.spawn(|| shop.hold(&item(1)).wait().expect("is answered"));
            await_held(1);
            release();
        }),
        "cancel" => {
            start_and_drop(shop.hold(&item(1)).into_future(), || await_held(1));
            pump().expect("is answered");
            release();
            pump().expect("is answered");
            assert_eq!(channel.unexpected(), 0, "the server knew of it");
        }
        // The server never learns of the cancel.
        "late_reply" => {
            start_and_drop(shop.hold(&item(1)).into_future(), || await_held(1));
            release();
            pump().expect("is answered");
            assert_eq!(channel.unexpected(), 1, "a reply that nobody waits for");
        }
        "stream_cancel" => {
            let mut replies = shop.watch(&item(3)).start().expect("is sent");
            control.await_streams(&item(1)).wait().expect("is answered");
            assert_eq!(replies.next_reply(), Ok(Some(item(1))));
            drop(replies);
        }
        "failures" => {
            assert_eq!(shop.refuse(&item(1)).wait().expect_err("fails").code(), Code::NotFound);
            let refused =
                shop.refuse(&item(1)).then(|reply| assert_eq!(reply.expect_err("fails").code(), Code::NotFound));
            refused.expect("is sent");
            pump().expect("is answered");
        }
        "timeout" => {
            let error = shop.hold(&item(1)).timeout(Duration::from_millis(20)).wait();
            assert_eq!(error, Err(CallError::Timeout("Shop.Hold")));
        }
        "missing_service" => {
            let cellar = cellar::Client::new(&channel);
            // The first asks for the service; the others know that it is missing.
            cellar.open(&item(1)).wait().expect_err("there is none");
            cellar.open(&item(1)).wait().expect_err("there is none");
            let sent = cellar.open(&item(1)).then(|_| panic!("is not sent"));
            assert_eq!(sent, Err(CallError::NoSuchService("Cellar.Open")));
            cellar.knock(&item(1)).send().expect_err("there is none");
        }
        "descriptor" => {
            let own = Stream::pair().expect("a pair").0;
            let fd = own.as_fd().try_clone_to_owned().expect("a descriptor");
            assert_eq!(shop.get(&item(7)).attach(fd).wait(), Ok(item(7)));
        }
        "lost_callbacks" => {
            let (sender, failed) = mpsc::channel();
            for _ in 0..2 {
                let sender = sender.clone();
                let failed = move |reply| sender.send(reply).expect("is awaited");
                shop.hold(&item(1)).then(failed).expect("is sent");
            }
            await_held(2);
            pump().expect("is answered");
            control.quit(&item(0)).send().expect("is sent");
            let never = shop.await_held(&item(3)).wait();
            assert_eq!(never, Err(CallError::Disconnected("Shop.AwaitHeld")));
            for _ in 0..2 {
                assert_eq!(failed.recv(), Ok(Err(CallError::Disconnected("Shop.Hold"))));
            }
            return;
        }
        "lost_threads" => {
            thread::scope(|scope| {
                for name in ["first", "second", "third"] {
                    let wait = || assert_eq!(shop.hold(&item(1)).wait(), Err(CallError::Disconnected("Shop.Hold")));
                    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, wait).expect("starts");
                }
                await_held(3);
                pump().expect("is answered");
                control.quit(&item(0)).send().expect("is sent");
            });
            return;
        }
        // One thread reads the replies of all.
        "failed_threads" => thread::scope(|scope| {
            for name in ["first", "second", "third"] {
                let wait = || {
                    let error = shop.hold(&item(1)).timeout(Duration::from_millis(20)).wait();
                    assert_eq!(error, Err(CallError::Timeout("Shop.Hold")));
                };
                thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, wait).expect("starts");
            }
        }),
        "mid_call" => {
            thread::scope(|scope| {
                scope.spawn(|| shop.hold(&item(1)).wait().expect("is answered"));
                let held = shop.hold(&item(1)).then(|reply| assert_eq!(reply, Ok(item(2))));
                held.expect("is sent");
                await_held(2);
                println!("held");
                // The test says when it records.
                control.await_signal(&item(0)).wait().expect("is answered");
                control.await_recording(&item(0)).wait().expect("is answered");
                wait_until_enabled();
                release();
            });
            pump().expect("is answered");
            assert_eq!(shop.get(&item(7)).wait(), Ok(item(7)));
        }
        "internal_thread" => {
            let (sender, answered) = mpsc::channel();
            let session = Session::open(esatto::Backend::System).expect("opens");
            let client = shop.clone();
            // Callbacks of sessions run on the thread that talks to services.
            session.service_state().then(move |_| {
                sender.send(client.get(&item(7)).wait()).expect("is awaited");
            });
            assert_eq!(answered.recv(), Ok(Ok(item(7))));
        }
        "fork" => {
            let (sender, replies) = mpsc::channel();
            shop.hold(&item(1)).then(move |reply| sender.send(reply).expect("is awaited")).expect("is sent");
            await_held(1);
            in_child(|| calls_of_a_child(socket));
            release();
            pump().expect("is answered");
            assert_eq!(replies.try_recv(), Ok(Ok(item(2))));
        }
        "vectors" => vectors(socket),
        "traced_conversation" => conversation!(&shop),
        "plain_conversation" => conversation!(plain::shop::Client::new(&channel)),
        other => panic!("no scenario {other}"),
    }
    // The methods have returned when a later call on the connection is answered. Conversations have
    // one.
    if !scenario.ends_with("conversation") {
        pump().expect("is answered");
    }
    control.quit(&item(0)).send().expect("is sent");
}

/// Sends a call, and drops it when the server has it.
fn start_and_drop(call: impl Future, wait: impl FnOnce()) {
    let mut call = pin!(call);
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    wait();
}

#[expect(unsafe_code, reason = "functions of the C library")]
mod libc {
    unsafe extern "C" {
        pub(crate) safe fn fork() -> i32;
        pub(crate) safe fn waitpid(pid: i32, status: Option<&mut i32>, options: i32) -> i32;
    }
}

/// Runs a function in a child of this process, and waits for its end.
fn in_child(child: impl FnOnce()) {
    match libc::fork() {
        0 => {
            child();
            std::process::exit(0);
        }
        pid => {
            let mut status = -1;
            assert_eq!((libc::waitpid(pid, Some(&mut status), 0), status), (pid, 0));
        }
    }
}

/// Calls on a connection of its own: first without tracing, which is off after a fork.
fn calls_of_a_child(socket: &str) {
    let shop = traced::shop::Client::new(&connect(socket));
    assert_eq!(shop.get(&item(7)).wait(), Ok(item(7)));
    let tracing = Tracing::builder().system().shared_memory(4096, 4).start().expect("the control thread starts");
    assert!(tracing.wait_until_enabled(Category::dynamic_with_tags(CATEGORY, &["rpc"]), LONG));
    assert_eq!(shop.get(&item_of_size("child")).wait(), Ok(item_of_size("child")));
    tracing.flush(LONG);
}

/// Offers the service, and calls that of another process, both at the same time.
fn peer(own: &str, other: &str) {
    let shelf = serve(own, true);
    let channel = loop {
        match Channel::connect(&address(other), LONG) {
            Ok(channel) => break channel,
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    };
    let shop = traced::shop::Client::new(&channel);
    // The bind is request 1.
    for _ in 2..7 {
        shop.await_held(&item(0)).wait().expect("is answered");
    }
    let (sender, replies) = mpsc::channel();
    shop.hold(&item(7)).then(move |reply| sender.send(reply).expect("is awaited")).expect("is sent");
    shelf.wait_for_held(1);
    shelf.release();
    while replies.try_recv().is_err() {
        shop.await_held(&item(0)).wait().expect("is answered");
    }
    shop.quit(&item(0)).send().expect("is sent");
    shelf.wait_for_end();
}

/// Sends the seeds of the specification by hand, and records its ids.
fn vectors(socket: &str) {
    let watch = traced::shop::method::Watch::METHOD;
    let get = traced::shop::method::Get::METHOD;
    let first = 0x0123_4567_89ab_cdef;
    raw_call(socket, first, (1, watch), &[0xd573_529b_34a1_d093], &[0x77a6_486d_ff4e_0f94, 0xd27a_6a41_6ad6_b4e8]);
    raw_call(socket, first, (2, get), &[0xa2d4_1933_4c46_67ec], &[]);
    raw_call(socket, 1, (1, get), &[0xbeeb_8da1_658e_ec67], &[]);
    // Its id would be 0.
    raw_call(socket, 0_u64.wrapping_sub(2_u64.wrapping_mul(0x9e37_79b9_7f4a_7c15)), (1, get), &[1], &[]);
}

/// Makes a call over a new connection. Records `before` it an instant with each of these flows, and
/// `after` each reply one with its flow.
fn raw_call(socket: &str, seed: u64, (id, method_id): (u64, u32), before: &[u64], after: &[u64]) {
    let stream = Stream::connect(&address(socket), LONG).expect("a server listens");
    let mut decoder = FrameDecoder::new();
    let send = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        assert_eq!(stream.send(&bytes, None).expect("is sent"), bytes.len());
    };
    let mut receive = || loop {
        if let Some((frame, _)) = decoder.next_rpc_frame().expect("a frame") {
            return matches!(frame.body, RpcBody::InvokeMethodReply { has_more: true, .. });
        }
        poll(&mut [PollFd::new(stream.as_fd(), false)], None).expect("waits");
        if let Some(received) = stream.recv(decoder.spare()).expect("is received") {
            assert_ne!(received.len, 0, "the server closed");
            decoder.advance(received.len);
        }
    };
    send(&|out| encode::bind_service(out, 100, "Shop", Features::default(), seed).expect("is small"));
    receive();
    for &flow in before {
        esatto::instant!(APP, dynamic: format!("{flow:#x}"), flow: Flow::global(flow));
    }
    let args = item(u32::try_from(after.len()).expect("few")).encode();
    let call = InvokeMethod { service_id: 1, method_id, args: &args, ..InvokeMethod::default() };
    send(&|out| encode::invoke_method(out, id, &call, false).expect("is small"));
    let mut has_more = true;
    for &flow in after {
        has_more = receive();
        esatto::instant!(APP, dynamic: format!("{flow:#x}"), flow: Flow::global(flow));
    }
    if has_more {
        receive();
    }
    let args = item(0).encode();
    let method_id = traced::shop::method::AwaitHeld::METHOD;
    let last = InvokeMethod { service_id: 1, method_id, args: &args, ..InvokeMethod::default() };
    send(&|out| encode::invoke_method(out, 101, &last, false).expect("is small"));
    receive();
}
