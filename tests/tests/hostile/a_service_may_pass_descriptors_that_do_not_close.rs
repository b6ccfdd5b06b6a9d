//! A service passes descriptors to a program with the SDK, and each of them takes an hour to close.
//! The program still records elsewhere, uses few threads, and reports its refusals.

use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use esatto::data_source::FlushReason;
use esatto::{BufferExhausted, DataSource, Session, Setup, Source, Tracing};
use esatto_tests::fake::FakeProducerPort;
use esatto_tests::sdk::{Recorder, Scenario};
use esatto_tests::wait_until;
use esatto_tests::wire::Proto;

use crate::descriptors::{Lingering, borrowed};
use crate::strangers;

mod of_a_stranger {
    use super::*;

    esatto_tests::scenario!([in_process] Scenario::new(|recorder| record(recorder, strangers::listen)));
}

mod of_the_same_user {
    use super::*;

    esatto_tests::scenario!([in_process] Scenario::new(|recorder| {
        record(recorder, |path| UnixListener::bind(path).expect("a socket"));
    }));
}

/// Commands to producers.
const SETUP_TRACING: u32 = 3;
const CLEAR: u32 = 7;

/// As many threads close descriptors.
const MAX_CLOSING_THREADS: usize = 4;
/// As many descriptors of a service may wait for that.
const MAX_WAITING_DESCRIPTORS: usize = 16;

struct Numbers;

impl DataSource for Numbers {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

/// Recorded by the bystander, the session in the process.
static NUMBERS: Source<Numbers> =
    Source::new("com.example.numbers").buffer_exhausted(BufferExhausted::Stall).on_flush(|_, flush| {
        if flush.reason() == FlushReason::Explicit {
            IS_INSIDE.store(true, Ordering::SeqCst);
            drop(gate());
        }
    });

/// Holds up the control thread, which calls back when a session is flushed.
static GATE: Mutex<()> = Mutex::new(());
static IS_INSIDE: AtomicBool = AtomicBool::new(false);

fn gate() -> MutexGuard<'static, ()> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes descriptors while the program does not look, so that it closes them last.
fn unseen(session: &Session, pass: impl FnOnce()) {
    let closed = gate();
    IS_INSIDE.store(false, Ordering::SeqCst);
    let flushed = session.flush(Some(Duration::from_secs(60)));
    wait_until("the callback", || IS_INSIDE.load(Ordering::SeqCst).then_some(()));
    pass();
    drop(closed);
    flushed.wait().expect("the control thread goes on");
}

fn record(recorder: &Recorder, listen: fn(&std::path::Path) -> UnixListener) {
    std::fs::set_permissions(recorder.harness().folder(), Permissions::from_mode(0o777)).expect("ours");
    let socket = recorder.path("service");
    let listener = listen(&socket);
    NUMBERS.register().expect("registers");
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let said = |line: &str| SAID.lock().unwrap().push(line.to_owned());
    let builder = Tracing::builder().in_process().socket(socket.display().to_string()).notices(said);
    let tracing = builder.start().expect("the control thread starts");
    let session = recorder.start(strangers::numbers());

    let is_over = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let recording = scope.spawn(|| strangers::record_numbers(&NUMBERS, &is_over));
        attack(recorder, &listener, &session, &|| SAID.lock().unwrap().clone());
        is_over.store(true, Ordering::Relaxed);
        recording.join().expect("does not panic")
    });
    let trace = session.stop().expect("stops");
    strangers::assert_has_numbers(&trace, written);
    drop(tracing);
}

fn attack(recorder: &Recorder, listener: &UnixListener, session: &Session, said: &dyn Fn() -> Vec<String>) {
    let mut lingering = Lingering::new();
    // As the memory. It is no memory, so the program hangs up.
    let mut port = accept(recorder, listener);
    let fd = lingering.socket();
    unseen(session, || {
        port.command_with(SETUP_TRACING, &Proto::new().int(1, 4), Some(&fd));
        drop(fd);
    });
    while port.serve() {}

    // Where none belongs, and two at once.
    let mut port = accept(recorder, listener);
    let fds = lingering.sockets(2);
    unseen(session, || pass(&mut port, fds));
    // In the queue of a connection that the program ends.
    let fds = [lingering.sockets(1), lingering.sockets(1)];
    unseen(session, || {
        port.command_with(SETUP_TRACING, &Proto::new().int(1, 3), None);
        fds.into_iter().for_each(|fds| pass(&mut port, fds));
    });
    while port.serve() {}

    // As many as the program takes.
    let mut port = accept(recorder, listener);
    let fds: Vec<_> = (0..MAX_WAITING_DESCRIPTORS).map(|_| lingering.sockets(1)).collect();
    unseen(session, || fds.into_iter().for_each(|fds| pass(&mut port, fds)));
    while port.serve() {}
    let why = format!("{MAX_WAITING_DESCRIPTORS} descriptors that the service passed cannot be closed");
    wait_until("the reason", || {
        recorder.save("poke", "");
        std::fs::remove_file(recorder.path("poke")).expect("is there");
        said()
            .iter()
            .any(|line| line.starts_with("not connected to the tracing service") && line.ends_with(&why))
            .then_some(())
    });
    assert!(closing_threads() <= MAX_CLOSING_THREADS);

    // When they are closed it comes again, and records.
    drop(lingering);
    let mut port = accept(recorder, listener);
    port.setup_tracing();
    let config = Proto::new().bytes(1, b"com.example.numbers").int(2, 1);
    for command in [6, 1] {
        port.command(command, &Proto::new().int(1, 1).message(2, &config));
    }
    port.serve_until("CommitData", 3);
    wait_until("the end of the threads", || (closing_threads() == 0).then_some(()));
}

fn accept(recorder: &Recorder, listener: &UnixListener) -> FakeProducerPort {
    let mut port = strangers::accept(recorder, listener);
    port.serve_until("GetAsyncCommand", 1);
    port
}

/// Sends a command with descriptors.
fn pass(port: &mut FakeProducerPort, fds: Vec<OwnedFd>) {
    port.command_with_all(CLEAR, &Proto::new().int(1, 77), &borrowed(&fds));
}

/// Threads of this process that close descriptors.
fn closing_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("there is /proc");
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == "esatto-close").count()
}
