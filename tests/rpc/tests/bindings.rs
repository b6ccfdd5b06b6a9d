//! Calls of generated bindings, as Perfetto's trace processor sees them: cases of
//! `docs/spec/ipc-tracing.md` §14.

#![allow(missing_docs, reason = "tests")]

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use esatto::{Backend, Session, SessionConfig, TraceConfig, Tracing};
use esatto_ipc::server::{Context, Incoming, Reply, ServerConnection, ServerLimits};
use esatto_ipc::{CallError, Channel, Status, Stream};
use esatto_tests::{Harness, Peer, skip, tp};

#[esatto::trace_rpc(category = "bindings")]
trait Shop {
    async fn get(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
    /// The test answers it.
    async fn wait(&self, context: &Context, request: TraceConfig) -> Result<TraceConfig, Status>;
}

struct Held(Sender<Reply<TraceConfig>>);

impl shop::Handler for Held {
    fn get(&mut self, call: Incoming<'_, shop::method::Get>) {
        call.answer(Ok);
    }

    fn wait(&mut self, call: Incoming<'_, shop::method::Wait>) {
        let _ = self.0.send(call.into_reply());
    }
}

static TRACING: LazyLock<Tracing> = LazyLock::new(|| {
    assert!(esatto_rpc_trace::install());
    Tracing::builder().in_process().start().expect("connects")
});

/// Sessions record all threads, so only one test at a time has one.
static TURN: Mutex<()> = Mutex::new(());

fn session(category: &str) -> Session {
    LazyLock::force(&TRACING);
    let config = SessionConfig::new().categories([category]).without_categories(["*"]);
    Session::start(Backend::InProcess, config).expect("starts")
}

struct Sides {
    client: shop::Client,
    /// Calls of `wait`.
    held: Receiver<Reply<TraceConfig>>,
    server: thread::JoinHandle<()>,
}

fn connect() -> Sides {
    LazyLock::force(&TRACING);
    let (ours, theirs) = Stream::pair().expect("a pair");
    let (sender, held) = mpsc::channel();
    let server = thread::spawn(move || {
        ServerConnection::new(theirs, shop::Serve(Held(sender)), ServerLimits::default()).block();
    });
    Sides { client: shop::Client::new(&Channel::new(ours)), held, server }
}

impl Sides {
    fn end(self) {
        self.client.channel().close();
        self.server.join().expect("ends");
    }
}

/// Plays calls, and judges each session's trace by a query for one column `text`.
fn play(calls: impl FnOnce() -> Vec<Session>, sql: &str, expected: &[&[&str]]) {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let harness = Harness::new();
        for (session, expected) in calls().into_iter().zip(expected) {
            let trace = harness.write("trace", session.stop().expect("stops"));
            tp::assert_clean(&trace);
            assert!(tp::rows(&trace, "select * from slice where dur < 0").is_empty(), "all slices end");
            let rows = tp::rows(&trace, sql);
            assert_eq!(rows.iter().map(|row| row.text("text")).collect::<Vec<_>>(), *expected);
        }
        Ok(())
    });
}

const ARROWS: &str = "select one.name || ' ' || extract_arg(one.arg_set_id, 'debug.role') || ' to '
    || other.name || ' ' || extract_arg(other.arg_set_id, 'debug.role') as text
    from flow join slice as one on slice_out = one.id join slice as other on slice_in = other.id order by one.ts";
const STATUSES: &str = "select extract_arg(slice.arg_set_id, 'debug.status') as text
    from slice join track on slice.track_id = track.id where track.name = 'rpc' order by slice.ts";

fn config() -> TraceConfig {
    TraceConfig { duration_ms: Some(7), ..TraceConfig::default() }
}

#[test]
fn a_connection_that_breaks_ends_its_pending_calls() {
    let calls = || {
        let (session, sides) = (session("bindings"), connect());
        let (sender, failed) = mpsc::channel();
        for _ in 0..2 {
            let sender = sender.clone();
            sides.client.wait(&config()).then(move |result| sender.send(result).expect("is awaited")).expect("is sent");
        }
        sides.client.get(&config()).wait().expect("is answered");
        sides.end();
        for _ in 0..2 {
            assert_eq!(failed.recv().expect("fails"), Err(CallError::Disconnected("Shop.Wait")));
        }
        vec![session]
    };
    play(calls, STATUSES, &[&["disconnected", "disconnected"]]);
}

#[test]
fn a_reply_from_another_thread_goes_on_with_the_flow() {
    let calls = || {
        let (session, sides) = (session("bindings"), connect());
        thread::scope(|scope| {
            scope.spawn(|| sides.client.wait(&config()).wait().expect("is answered"));
            sides.held.recv().expect("is called").send(&config());
        });
        sides.end();
        vec![session]
    };
    let expected = [
        "Shop.Wait client to Shop.Wait server",
        "Shop.Wait server to Shop.Wait reply server",
        "Shop.Wait reply server to Shop.Wait reply client",
    ];
    play(calls, ARROWS, &[&expected]);
}

#[test]
fn a_session_that_starts_in_mid_call_has_no_end_without_begin() {
    let calls = || {
        let sides = connect();
        let session = thread::scope(|scope| {
            scope.spawn(|| sides.client.wait(&config()).wait().expect("is answered"));
            let reply = sides.held.recv().expect("is called");
            let session = session("bindings");
            reply.send(&config());
            session
        });
        sides.end();
        vec![session]
    };
    play(calls, "select name as text from slice", &[&[]]);
}

#[test]
fn of_two_sessions_only_that_with_the_category_has_the_calls() {
    let calls = || {
        let sessions = vec![session("bindings"), session("another")];
        let sides = connect();
        sides.client.get(&config()).wait().expect("is answered");
        sides.end();
        sessions
    };
    let expected = ["Shop.Get client to Shop.Get server", "Shop.Get server to Shop.Get reply client"];
    play(calls, ARROWS, &[&expected, &[]]);
}
