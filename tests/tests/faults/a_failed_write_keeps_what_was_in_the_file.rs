//! A session appends its trace to a file that has content and takes no more. The session ends with
//! the reason, and the content stays.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};

use esatto::{Backend, Session, SessionConfig, Tracing};
use esatto_tests::{Harness, Implementation, raw, wire};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

esatto::categories! {
    static APP = "app";
}

const BEFORE: &[u8] = b"what was there before";

/// Returns a file that cannot grow, open for appending.
fn full_file() -> File {
    let mut file = File::from(memfd_create("full", MemfdFlags::ALLOW_SEALING).expect("a memfd"));
    file.write_all(BEFORE).expect("it has room");
    fcntl_add_seals(&file, SealFlags::GROW).expect("it can be sealed");
    // Another open file, whose position is still 0.
    File::options().read(true).append(true).open(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("it is ours")
}

fn assert_kept(mut file: File) {
    let mut content = Vec::new();
    file.rewind().expect("it is a file");
    file.read_to_end(&mut content).expect("it can be read");
    assert_eq!(content, BEFORE);
}

#[test]
fn of_a_program() {
    let file = full_file();
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start().expect("connects");
    let config = SessionConfig::new().write_into_fd(file.try_clone().expect("a descriptor"));
    let session = Session::start(Backend::InProcess, config).expect("starts");
    esatto::instant!(APP, "lost");
    let error = session.stop().expect_err("the file takes nothing").to_string();
    assert!(error.contains("the trace file cannot be written"), "{error}");
    assert_kept(file);
}

#[test]
fn of_the_service() {
    let file = full_file();
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut consumer = raw::RawConsumer::connect(&harness);
    let config = raw::config(64, &[]).int(8, 1);
    let (call, frame) = consumer.peer.call_frame("EnableTracing", &wire::Proto::new().message(1, &config));
    consumer.peer.send_with_fds(&frame, &[file.as_fd()]);
    assert!(consumer.peer.call("DisableTracing", &wire::Proto::new()).success);
    let reply = consumer.peer.reply_to(call);
    let error = String::from_utf8_lossy(wire::last(&reply.body, 3).expect("an error text")).into_owned();
    assert!(error.contains("the trace file cannot be written"), "{error}");
    assert_kept(file);
}
