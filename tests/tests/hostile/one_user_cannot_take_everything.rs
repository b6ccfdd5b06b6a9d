//! Users share limited resources: a user who takes everything that the service allows leaves the
//! shares of other users.

use crate::users::{ALICE, BOB, as_user, open_to_all, require_root};
use esatto_tests::bystander::{watch, watch_behind_relay};
use esatto_tests::raw::{self, RawProducer};
use esatto_tests::wire::{self, Peer, Proto};
use esatto_tests::{Harness, Skip, skip, wait_until};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};

/// A pipe into which nothing more fits, and its other end.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (read_end, write_end) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).expect("a pipe");
    let mut pipe = File::from(write_end);
    while pipe.write(&[0; 4096]).is_ok() {}
    (read_end, pipe.into())
}

/// Records into a file, and ends the session at once.
fn record_into(harness: &Harness, file: &OwnedFd) {
    let mut consumer = Peer::consumer(harness);
    let config = raw::config(64, &[]).int(8, 1);
    let (_, frame) = consumer.call_frame("EnableTracing", &Proto::new().message(1, &config));
    consumer.send_with_fds(&frame, &[file.as_fd()]);
    let _ = consumer.call("DisableTracing", &Proto::new());
}

#[test]
fn trace_files_are_shared() {
    skip(|| {
        require_root()?;
        watch(|harness, service, _| {
            open_to_all(harness, &[&harness.producer_socket(), &harness.consumer_socket()]);
            let mut other_ends = Vec::new();
            as_user(ALICE, || {
                for _ in 0..80 {
                    let (read_end, write_end) = full_pipe();
                    record_into(harness, &write_end);
                    other_ends.push(read_end);
                }
            });
            let path = harness.path("bob");
            let file = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
            as_user(BOB, || record_into(harness, &file.into()));
            wait_until("the session of the other user is written", || {
                std::fs::metadata(&path).is_ok_and(|file| file.len() > 0).then_some(())
            });
            // A session counts for its user until its file has taken everything.
            assert!(service.log().contains("at most 5 are possible"), "{}", service.log());
            drop(other_ends);
        });
        Ok(())
    });
}

#[test]
fn connections_of_a_relay_are_shared() {
    skip(|| {
        require_root()?;
        watch_behind_relay(|harness, relay, socket| {
            open_to_all(harness, &[socket]);
            // More than there can be, and as long as they are served.
            let taken = as_user(ALICE, || (0..1100).map(|_| Peer::connect(socket)).collect::<Vec<_>>());
            relay.wait_for_log("half of those that other users leave");
            as_user(BOB, || Peer::connect(socket).bind("ProducerPort"));
            drop(taken);
        });
        Ok::<(), Skip>(())
    });
}

/// Offers the largest memory there can be; the connection, and whether it was adopted.
fn offer_memory(harness: &Harness) -> (RawProducer, bool) {
    let memory = memfd_create("smb", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).expect("a memfd");
    ftruncate(&memory, 32 << 20).expect("a size");
    fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).expect("seals");
    let introduction = Proto::new().int(1, 4096).bytes(3, "offer").int(6, 1);
    let producer = RawProducer::introduce(Peer::producer(harness), &introduction, &[memory.as_fd()]);
    let is_adopted = wire::int(&producer.answer, 1) != 0;
    (producer, is_adopted)
}

#[test]
fn shared_memory_is_shared_by_users() {
    skip(|| {
        require_root()?;
        watch(|harness, _, _| {
            open_to_all(harness, &[&harness.producer_socket()]);
            let offered = as_user(ALICE, || (0..140).map(|_| offer_memory(harness)).collect::<Vec<_>>());
            // Half of 8 GiB, of which the bystander has 256 KiB.
            assert_eq!(offered.iter().filter(|(_, is_adopted)| *is_adopted).count(), 127);
            assert!(as_user(BOB, || offer_memory(harness)).1, "the other user gets his share");
        });
        Ok(())
    });
}
