//! A service of another user hands over memory that it can take away again. The program does not
//! use it, reports this, and continues. Its traces elsewhere are whole.

use std::fs::Permissions;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use esatto::{BufferExhausted, DataSource, Setup, Source, Tracing};
use esatto_tests::fake::FakeProducerPort;
use esatto_tests::sdk::{Recorder, Scenario};
use esatto_tests::wire::Proto;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use crate::strangers;

esatto_tests::scenario!([in_process] Scenario::new(record));

/// Commands to producers.
const START: u32 = 1;
const SETUP_TRACING: u32 = 3;
const SETUP: u32 = 6;

const BYTES: u64 = 64 << 10;

struct Numbers;

impl DataSource for Numbers {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

/// Recorded by the bystander, the session in the process, and by the strange service.
static NUMBERS: Source<Numbers> = Source::new("com.example.numbers").buffer_exhausted(BufferExhausted::Stall);

fn record(recorder: &Recorder) {
    std::fs::set_permissions(recorder.harness().folder(), Permissions::from_mode(0o777)).expect("ours");
    let socket = recorder.path("strange");
    let listener = strangers::listen(&socket);
    NUMBERS.register().expect("registers");
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let said = |line: &str| SAID.lock().unwrap().push(line.to_owned());
    let builder = Tracing::builder().in_process().socket(socket.display().to_string()).notices(said);
    let _tracing = builder.start().expect("the control thread starts");
    let session = recorder.start(strangers::numbers());

    let is_over = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let tracing = scope.spawn(|| strangers::record_numbers(&NUMBERS, &is_over));
        for memory in [not_sealed(), sealed_against(SealFlags::GROW), no_memfd(recorder)] {
            attack(recorder, &listener, &memory);
        }
        // Memory that cannot vanish is used, from any service.
        let mut port = strangers::accept(recorder, &listener);
        port.setup_tracing();
        start(&mut port);
        port.serve_until("CommitData", 3);
        is_over.store(true, Ordering::Relaxed);
        tracing.join().expect("does not panic")
    });
    let trace = session.stop().expect("stops");
    strangers::assert_has_numbers(&trace, written);
    let said = SAID.lock().unwrap();
    assert_eq!(said.len(), 3, "{said:?}");
    for (line, why) in said.iter().zip(["has seals 0x0 and lacks 0x7", "has seals 0x4 and lacks 0x3", "not a memfd"]) {
        let begin = "not recorded by the tracing service: its memory cannot be used: ";
        assert!(line.starts_with(begin) && line.contains(why), "{line}");
    }
}

fn start(port: &mut FakeProducerPort) {
    let config = Proto::new().bytes(1, b"com.example.numbers").int(2, 1);
    for command in [SETUP, START] {
        port.command(command, &Proto::new().int(1, 1).message(2, &config));
    }
}

/// Hands over memory, and takes it away as soon as the program records into it.
fn attack(recorder: &Recorder, listener: &std::os::unix::net::UnixListener, memory: &OwnedFd) {
    let mut port = strangers::accept(recorder, listener);
    port.serve_until("GetAsyncCommand", 1);
    port.command_with(SETUP_TRACING, &Proto::new().int(1, 4), Some(memory));
    start(&mut port);
    while port.serve() {
        if port.service.calls.contains(&"NotifyDataSourceStarted") {
            ftruncate(memory, 0).expect("nothing keeps it from that");
        }
    }
}

fn not_sealed() -> OwnedFd {
    let memory = memfd_create("perfetto_shmem", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("a memfd");
    ftruncate(&memory, BYTES).expect("a size");
    memory
}

fn sealed_against(seals: SealFlags) -> OwnedFd {
    let memory = not_sealed();
    fcntl_add_seals(memory.as_fd(), seals).expect("seals");
    memory
}

fn no_memfd(recorder: &Recorder) -> OwnedFd {
    let file =
        std::fs::File::options().read(true).write(true).create(true).truncate(true).open(recorder.path("memory"));
    let file = file.expect("a file");
    file.set_len(BYTES).expect("a size");
    file.into()
}
