//! The server and the clients of the tests that kill them: `esatto-rpc-yard server STYLE SOCKET`,
//! `esatto-rpc-yard client STATE STYLE SOCKET`.
//!
//! A client prints `bound`, waits for the file `go-SOCKET`, brings its calls into the state, prints
//! `in state`, and waits for the end of the connection. It prints `survived` if each call failed as
//! it should, and all its descriptors are closed. Calls that must not go on before the end wait for
//! the file `killed-SOCKET`.

#![forbid(unsafe_code)]

use core::time::Duration;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Instant;

use esatto::TraceConfig;
use esatto_ipc::server::Server;
use esatto_ipc::service::Rpc;
use esatto_ipc::sys::{PollFd, poll};
use esatto_ipc::{Address, Call, CallError, Channel, Listener};
use esatto_rpc_tests::yard::{LARGE, Place, message, yard};

esatto::categories! {
    /// Is on when the calls are recorded.
    static OWN = "yard_programs";
}

/// Far longer than anything takes.
const LONG: Duration = Duration::from_secs(100);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    assert!(esatto_rpc_trace::install());
    let tracing = esatto::Tracing::builder().system().categories(CATEGORIES);
    let tracing = tracing.start().expect("the control thread starts");
    assert!(tracing.wait_until_enabled(&OWN, LONG), "a session records");
    match arguments[..] {
        ["server", style, socket] => serve(style, socket),
        ["client", state, style, socket] => Client::connect(style, socket).play(state),
        _ => panic!("usage: server STYLE SOCKET | client STATE STYLE SOCKET"),
    }
    tracing.flush(LONG);
}

/// Serves until the file `end` is there.
fn serve(style: &str, socket: &str) {
    let listener = Listener::bind(&Address::Path(socket.into())).expect("listens");
    let server = Server::new(yard::ServeAsync::new(Place));
    let other = server.clone();
    thread::spawn(move || {
        wait_for("end");
        other.stop();
    });
    eprintln!("ready");
    match style {
        "threads" => server.serve_blocking(&listener).expect("serves"),
        _ => runtime().block_on(server.serve(&listener)).expect("serves"),
    }
    assert_eq!(server.counters().open, 0);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("starts")
}

fn wait_for(file: &str) {
    let begin = Instant::now();
    while !Path::new(file).exists() {
        assert!(begin.elapsed() < LONG, "{file} is missing");
        thread::sleep(Duration::from_millis(5));
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("is there").count()
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Blocking,
    Callback,
    Future,
}

struct Client {
    style: Style,
    socket: String,
    channel: Channel,
    client: yard::Client,
    before: usize,
}

type Results = Vec<Result<(), CallError>>;

impl Client {
    fn connect(style: &str, socket: &str) -> Self {
        let style = match style {
            "blocking" => Style::Blocking,
            "callback" => Style::Callback,
            _ => Style::Future,
        };
        let before = descriptors();
        let channel = Channel::connect(&Address::Path(socket.into()), LONG).expect("connects");
        let client = yard::Client::new(&channel);
        Self { style, socket: socket.to_owned(), channel, client, before }
    }

    fn play(self, state: &str) {
        if !["connected", "bind"].contains(&state) {
            self.client.get(&message(1, 1)).wait().expect("is answered");
        }
        eprintln!("bound");
        wait_for(&format!("{}.go", self.socket));
        let all = |count, method| vec![Err(CallError::Disconnected(method)); count];
        let expected = |method| all(1, method);
        let (results, expected) = match state {
            "connected" => {
                eprintln!("in state");
                (self.get_after_end(), expected("Yard.Get"))
            }
            "bind" | "queued" => (self.results(vec![self.client.get(&message(1, 1))]), expected("Yard.Get")),
            "half-request" => {
                let request = message(1, LARGE);
                (self.results((0..8).map(|_| self.client.get(&request)).collect()), all(8, "Yard.Get"))
            }
            "handler" => (self.results(vec![self.client.hold(&message(1, 1))]), expected("Yard.Hold")),
            "deadline" => (self.results(vec![self.client.hold(&message(1, 1)).timeout(LONG)]), expected("Yard.Hold")),
            "descriptor" => {
                let fd: OwnedFd = std::fs::File::options().write(true).open("fifo").expect("the test reads").into();
                (self.results(vec![self.client.hold(&message(1, 1)).attach(fd)]), expected("Yard.Hold"))
            }
            "half-reply" => {
                let file = format!("{}.large", self.socket);
                let request = TraceConfig { unique_session_name: Some(file.into()), ..TraceConfig::default() };
                (self.results((0..8).map(|_| self.client.large(&request)).collect()), all(8, "Yard.Large"))
            }
            "stream" => (self.watch(3, 3, 10), expected("Yard.Watch")),
            "window" => (self.watch(1_000_000, 1, 10_000), expected("Yard.Watch")),
            "one-way" => {
                for _ in 0..3 {
                    self.client.note(&message(1, 1)).send().expect("is sent");
                }
                eprintln!("in state");
                (self.get_after_end(), expected("Yard.Get"))
            }
            "cancel" => {
                let call = self.client.hold(&message(1, 1)).timeout(Duration::from_millis(100));
                let timeout = vec![Err(CallError::Timeout("Yard.Hold"))];
                let first = self.results(vec![call]);
                (first.into_iter().chain(self.get_after_end()).collect(), [timeout, expected("Yard.Get")].concat())
            }
            _ => panic!("no such state: {state}"),
        };
        // Of large replies, some may have arrived whole.
        let has_failed = results.iter().any(|result| result.is_err());
        let are_as_expected =
            results.iter().zip(&expected).all(|(is, should)| is == should || state == "half-reply" && is.is_ok());
        assert!(has_failed && are_as_expected && results.len() == expected.len(), "{results:?}");
        assert!(self.channel.is_closed());
        assert_eq!(self.channel.open_calls(), 0);
        let Self { channel, client, before, .. } = self;
        drop((channel, client));
        // Each thread that has waited for a socket keeps one, which its end closes.
        let begin = Instant::now();
        while descriptors() > before + 1 {
            assert!(begin.elapsed() < LONG, "{} descriptors, {before} before", descriptors());
            thread::sleep(Duration::from_millis(5));
        }
        eprintln!("survived");
    }

    /// Prints when so many calls are open.
    fn tell_state(&self, calls: usize) -> thread::JoinHandle<()> {
        let channel = self.channel.clone();
        thread::spawn(move || {
            let begin = Instant::now();
            while channel.open_calls() < calls && begin.elapsed() < LONG {
                thread::sleep(Duration::from_millis(2));
            }
            thread::sleep(Duration::from_millis(100));
            eprintln!("in state");
        })
    }

    /// Makes the calls at once, in the style of this client.
    fn results<M: Rpc<Reply: Send>>(&self, calls: Vec<Call<'_, M>>) -> Results {
        let teller = self.tell_state(calls.len());
        let results = match self.style {
            Style::Blocking => thread::scope(|scope| {
                let threads: Vec<_> = calls.into_iter().map(|call| scope.spawn(|| call.wait().map(drop))).collect();
                threads.into_iter().map(|thread| thread.join().expect("ends")).collect()
            }),
            Style::Callback => {
                let (sender, received) = mpsc::channel();
                let count = calls.len();
                for call in calls {
                    let sender = sender.clone();
                    call.then(move |result| drop(sender.send(result.map(drop)))).expect("is sent");
                }
                let mut results = Vec::new();
                while results.len() < count {
                    self.turn();
                    results.extend(received.try_iter());
                }
                results
            }
            Style::Future => {
                let runtime = runtime();
                let _inside = runtime.enter();
                self.channel.spawn_driver().expect("drives");
                let calls: Vec<_> = calls.into_iter().map(|call| runtime.spawn(call.into_future())).collect();
                runtime.block_on(async {
                    let mut results = Vec::new();
                    for call in calls {
                        results.push(call.await.expect("ends").map(drop));
                    }
                    results
                })
            }
        };
        teller.join().expect("ends");
        results
    }

    /// One turn of an event loop.
    fn turn(&self) {
        if matches!(self.channel.pump(), Ok(true) | Err(_)) {
            return;
        }
        let now = Instant::now();
        let wait = self.channel.next_deadline().map_or(LONG, |deadline| deadline.saturating_duration_since(now));
        let socket = PollFd::new(self.channel.as_fd(), self.channel.interest().write);
        poll(&mut [socket], Some(wait)).expect("waits");
    }

    /// Takes `taken` replies of a stream, and then none until the connection has ended.
    fn watch(&self, count: u32, taken: u32, size: usize) -> Results {
        let mut events = self.client.watch(&message(count, size));
        let killed = format!("{}.killed", self.socket);
        match self.style {
            Style::Blocking => {
                (0..taken).for_each(|number| assert_eq!(number_of(&events.next_reply()), Some(number)));
                self.let_replies_arrive();
                wait_for(&killed);
                vec![events.find_map(Result::err).map_or(Ok(()), Err)]
            }
            Style::Callback => {
                let (seen, result) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None)));
                let (counter, end) = (Arc::clone(&seen), Arc::clone(&result));
                let callback = move |event: Result<Option<TraceConfig>, CallError>| match event {
                    Ok(Some(_)) => {
                        if counter.fetch_add(1, Ordering::Relaxed) + 1 == taken as usize {
                            eprintln!("in state");
                            wait_for(&killed);
                        }
                    }
                    end_of => *end.lock().expect("no panic") = Some(end_of.map(drop)),
                };
                events.for_each(callback).expect("is sent");
                while result.lock().expect("no panic").is_none() {
                    self.turn();
                }
                let result = result.lock().expect("no panic").take();
                vec![result.expect("was there")]
            }
            Style::Future => {
                let runtime = runtime();
                runtime.block_on(async {
                    self.channel.spawn_driver().expect("drives");
                    for number in 0..taken {
                        let event = std::future::poll_fn(|cx| events.poll_reply(cx)).await;
                        assert_eq!(number_of(&event.expect("goes on").map(Some)), Some(number));
                    }
                    self.let_replies_arrive();
                    wait_for(&killed);
                    loop {
                        match std::future::poll_fn(|cx| events.poll_reply(cx)).await {
                            Some(Ok(_)) => {}
                            end => return vec![end.transpose().map(drop)],
                        }
                    }
                })
            }
        }
    }

    /// Reads for the stream, whose replies the program does not take.
    fn let_replies_arrive(&self) {
        for _ in 0..20 {
            self.client.get(&message(1, 1)).wait().expect("is answered");
            thread::sleep(Duration::from_millis(5));
        }
        eprintln!("in state");
    }

    /// Calls when the connection has ended.
    fn get_after_end(&self) -> Results {
        wait_for(&format!("{}.killed", self.socket));
        vec![self.client.get(&message(1, 1)).wait().map(drop)]
    }
}

fn number_of(event: &Result<Option<TraceConfig>, CallError>) -> Option<u32> {
    event.as_ref().expect("goes on").as_ref().and_then(|event| event.duration_ms)
}
