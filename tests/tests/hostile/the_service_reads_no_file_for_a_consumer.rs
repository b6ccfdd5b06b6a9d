//! A consumer that may write a file, but not read it, passes it for a trace, and asks for a copy of
//! the streamed trace.

use esatto_tests::bystander::watch;
use esatto_tests::raw::{self, RawConsumer};
use esatto_tests::wire::{self, Proto};
use std::fs::File;
use std::os::fd::AsFd as _;

const SECRET: &[u8] = b"what only the owner of this file knows";

/// Streams into a file with this access, and clones the session. Returns the answer to
/// CloneSession, and the content of the clone.
fn clone_of(access: &std::fs::OpenOptions) -> (Vec<u8>, Vec<u8>) {
    let mut outcome = None;
    watch(|harness, _, _| {
        let file = access.open(harness.write("secret", SECRET)).expect("it is there");
        let mut consumer = RawConsumer::connect(harness);
        let config = raw::config(64, &[]).int(8, 1).bytes(22, "victim");
        let (_, frame) = consumer.peer.call_frame("EnableTracing", &Proto::new().message(1, &config));
        consumer.peer.send_with_fds(&frame, &[file.as_fd()]);
        let path = harness.path("clone");
        let copy = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
        let mut cloner = RawConsumer::connect(harness);
        let (id, frame) = cloner.peer.call_frame("CloneSession", &Proto::new().bytes(4, "victim"));
        cloner.peer.send_with_fds(&frame, &[copy.as_fd()]);
        let reply = cloner.peer.reply_to(id);
        outcome = Some((reply.body, std::fs::read(&path).expect("it is there")));
    });
    outcome.expect("it was cloned")
}

#[test]
fn a_file_that_cannot_be_read_is_not_cloned() {
    let (reply, copy) = clone_of(File::options().append(true));
    assert_eq!(wire::int(&reply, 1), 0, "it fails: {reply:?}");
    let error = String::from_utf8_lossy(wire::last(&reply, 2).unwrap_or_default()).into_owned();
    assert!(error.contains("opened for writing only"), "{error}");
    assert!(!copy.windows(SECRET.len()).any(|window| window == SECRET), "the secret is in the clone");
}

#[test]
fn earlier_content_of_the_file_is_not_cloned() {
    let (reply, copy) = clone_of(File::options().read(true).append(true));
    assert_eq!(wire::int(&reply, 1), 1, "it succeeds: {reply:?}");
    assert!(!copy.is_empty() && !copy.windows(SECRET.len()).any(|window| window == SECRET), "{} bytes", copy.len());
}
