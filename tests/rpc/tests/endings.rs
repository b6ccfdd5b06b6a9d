//! Calls that fail in every way: their slices end, on the threads that began them
//! (`docs/spec/ipc-tracing.md` §7).

#![allow(missing_docs, reason = "tests")]

use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use esatto::{Backend, Session, SessionConfig, TraceConfig, Tracing};
use esatto_ipc::server::{Context, Replies, ServerConnection, ServerLimits};
use esatto_ipc::{CallError, Channel, Code, Status, Stream};
use esatto_tests::{Harness, Peer, skip, tp};

#[esatto::trace_rpc(category = "endings")]
trait Depot {
    /// Answers if there is a duration. Panics if it is 13.
    async fn get(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
    /// Never answers.
    async fn wait(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
    /// Sends no reply, and never ends.
    async fn watch(&self, context: &Context, request: TraceConfig, replies: Replies<TraceConfig>)
    -> Result<(), Status>;
    async fn note(&self, context: &Context, request: TraceConfig);
}

#[derive(Debug)]
struct Shelf;

impl Depot for Shelf {
    async fn get(&self, _: &Context, request: TraceConfig) -> Result<TraceConfig, Status> {
        match request.duration_ms {
            Some(13) => panic!("the test wants it"),
            Some(_) => Ok(request),
            None => Err(Status::new(Code::NotFound, "no duration")),
        }
    }

    async fn wait(&self, _: &Context, _: TraceConfig) -> Result<TraceConfig, Status> {
        std::future::pending().await
    }

    async fn watch(&self, _: &Context, _: TraceConfig, _: Replies<TraceConfig>) -> Result<(), Status> {
        std::future::pending().await
    }

    async fn note(&self, _: &Context, _: TraceConfig) {}
}

static TRACING: LazyLock<Tracing> = LazyLock::new(|| {
    assert!(esatto_rpc_trace::install());
    Tracing::builder().in_process().start().expect("connects")
});

/// Sessions record all threads, so only one test at a time has one.
static TURN: Mutex<()> = Mutex::new(());

/// Plays `calls`, and checks that its `slices` slices have ended on their own threads.
///
/// A slice that another thread's end closed would end too early, and leave that thread's one open.
fn all_slices_end(slices: i64, calls: impl FnOnce()) {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        LazyLock::force(&TRACING);
        let harness = Harness::new();
        let config = SessionConfig::new().categories(["endings"]).without_categories(["*"]);
        let session = Session::start(Backend::InProcess, config).expect("starts");
        calls();
        let trace = harness.write("trace", stop(session));
        tp::assert_clean(&trace);
        let all = tp::rows(&trace, "select name, dur, depth, track_id from slice where dur != 0");
        let open: Vec<_> = all.iter().filter(|row| row.int("dur") < 0 || row.int("depth") > 0).collect();
        assert!(open.is_empty(), "{open:#?}\nof {all:#?}");
        assert_eq!(all.len() as i64, slices, "{all:#?}");
        Ok(())
    });
}

fn stop(session: Session) -> Vec<u8> {
    session.stop().expect("stops")
}

fn config() -> TraceConfig {
    TraceConfig { duration_ms: Some(7), ..TraceConfig::default() }
}

/// A client, and the thread of its server.
fn connect() -> (depot::Client, thread::JoinHandle<()>) {
    let (ours, theirs) = Stream::pair().expect("a pair");
    let server = thread::spawn(move || {
        ServerConnection::new(theirs, depot::ServeAsync::new(Shelf), ServerLimits::default()).block();
    });
    (depot::Client::new(&Channel::new(ours)), server)
}

fn end((client, server): (depot::Client, thread::JoinHandle<()>)) {
    client.channel().close();
    let _ = server.join();
}

#[test]
fn threads_that_wait_end_their_own_slices_when_the_connection_breaks() {
    all_slices_end(8, || {
        let sides = connect();
        thread::scope(|scope| {
            let wait = || {
                let result = sides.0.wait(&config()).wait();
                assert_eq!(result, Err(CallError::Disconnected("Depot.Wait")));
            };
            let waiting: Vec<_> = (0..4).map(|_| scope.spawn(wait)).collect();
            while sides.0.channel().open_calls() < 4 {
                thread::sleep(Duration::from_millis(5));
            }
            // They are about to sleep.
            thread::sleep(Duration::from_millis(50));
            sides.0.channel().close();
            waiting.into_iter().for_each(|thread| thread.join().expect("ends"));
        });
        end(sides);
    });
}

#[test]
fn threads_that_wait_end_their_own_slices_at_a_deadline_and_a_failure() {
    all_slices_end(6, || {
        let sides = connect();
        thread::scope(|scope| {
            // The first thread reads for all.
            let first = scope.spawn(|| sides.0.wait(&config()).timeout(Duration::from_millis(400)).wait());
            thread::sleep(Duration::from_millis(50));
            let second = scope.spawn(|| sides.0.wait(&config()).timeout(Duration::from_millis(200)).wait());
            let error = sides.0.get(&TraceConfig::default()).wait().expect_err("there is no duration");
            assert_eq!(error.code(), Code::NotFound);
            assert_eq!(second.join().expect("ends"), Err(CallError::Timeout("Depot.Wait")));
            assert_eq!(first.join().expect("ends"), Err(CallError::Timeout("Depot.Wait")));
        });
        end(sides);
    });
}

/// Serves nothing.
fn connect_to_nothing() -> (depot::Client, thread::JoinHandle<()>) {
    let (ours, theirs) = Stream::pair().expect("a pair");
    let server = thread::spawn(move || {
        ServerConnection::new(theirs, (), ServerLimits::default()).block();
    });
    (depot::Client::new(&Channel::new(ours)), server)
}

#[test]
fn calls_of_a_missing_service_end_in_every_style() {
    // Each call has a slice on its thread; of those that nobody waits for, some have one of their
    // own track.
    all_slices_end(7, || {
        let sides = connect_to_nothing();
        let missing = Err(CallError::NoSuchService("Depot.Get"));
        // The first call asks for the service; later ones fail at once.
        for _ in 0..2 {
            assert_eq!(sides.0.get(&config()).wait(), missing);
        }
        sides.0.get(&config()).then(|_| panic!("it was not sent")).expect_err("fails at once");
        assert!(sides.0.watch(&config()).next_reply().is_err());
        assert!(sides.0.note(&config()).send().is_err());
        end(sides);
    });
}

#[test]
fn calls_that_meet_a_closed_socket_end_in_every_style() {
    all_slices_end(6, || {
        for style in 0..4 {
            let (ours, theirs) = Stream::pair().expect("a pair");
            let client = depot::Client::new(&Channel::new(ours));
            drop(theirs);
            let result = match style {
                0 => client.get(&config()).wait().map(drop),
                1 => client.get(&config()).then(|_| panic!("it was not sent")),
                2 => client.watch(&config()).next_reply().map(drop),
                _ => client.note(&config()).send(),
            };
            assert!(matches!(result, Err(CallError::Disconnected(_))), "{style}: {result:?}");
        }
    });
}

#[test]
fn a_method_that_panics_ends_its_slice() {
    all_slices_end(3, || {
        let sides = connect();
        let (sender, failed) = mpsc::channel();
        let request = TraceConfig { duration_ms: Some(13), ..TraceConfig::default() };
        let call = sides.0.get(&request);
        call.then(move |result| sender.send(result).expect("is awaited")).expect("is sent");
        while sides.0.channel().pump().is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(failed.recv().expect("fails"), Err(CallError::Disconnected("Depot.Get")));
        end(sides);
    });
}
