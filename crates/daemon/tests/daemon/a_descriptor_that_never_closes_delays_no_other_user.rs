//! A client passes files of a file system that it serves, which never answers when one is closed.
//! No signal can interrupt that `close`.

use crate::fuse::Fuse;
use crate::harness::{DEADLINE, Folder, Harness, barrier, config, enable, packet, read, skip};
use esatto_ipc::Stream;
use esatto_ipc::frame::encode;
use std::os::fd::AsFd as _;

/// Descriptors of one user that may wait to be closed.
const MAX_PASSED: usize = 64;

#[test]
fn a_client_that_passes_too_many_is_disconnected() {
    let folder = Folder::create();
    let fuse = match Fuse::mount(folder.path("fuse")) {
        Ok(fuse) => fuse,
        Err(e) => return skip(&format!("no file system of our own: {e}")),
    };
    let harness = Harness::start();
    let mut consumer = harness.consumer();
    consumer.send("EnableTracing", &enable(config()), None).unwrap();
    barrier(&mut consumer);
    let mut bystander = harness.producer();
    bystander.await_start();
    bystander.commit(&packet(500));

    // The file must never be closed here, or this test would hang.
    let file = std::mem::ManuallyDrop::new(fuse.open());
    let attacker = Stream::connect(&harness.daemon.producers()[0], DEADLINE).unwrap();
    let mut frame = Vec::new();
    encode::request_error(&mut frame, 1);
    let (mut passed, mut packets) = (0, 1);
    // Further descriptors stay in the kernel, which at some point takes no more (0 bytes are sent).
    // When the file stays open for too long, the service ends the connection.
    while let Ok(sent) = attacker.send(&frame, Some(file.as_fd())) {
        passed += usize::from(sent > 0);
        // The service receives each before the next is sent.
        if packets <= MAX_PASSED {
            bystander.commit(&packet(500));
            packets += 1;
        }
        barrier(&mut consumer);
    }
    assert!(passed >= MAX_PASSED, "{passed}");
    // The service still serves connections of the same user that pass no descriptor.
    barrier(&mut harness.consumer());
    let found = read(&mut consumer);
    let whole = |packet: &&Vec<u8>| packet.windows(500).any(|part| part == [b'x'; 500]);
    assert_eq!(found.iter().filter(whole).count(), packets, "packets of the bystander");
    drop(fuse);
}

/// While a connection waits, its socket is readable. The loop must not poll it again and again.
#[test]
fn the_service_sleeps_while_a_descriptor_waits() {
    let folder = Folder::create();
    let fuse = match Fuse::mount(folder.path("fuse")) {
        Ok(fuse) => fuse,
        Err(e) => return skip(&format!("no file system of our own: {e}")),
    };
    let harness = Harness::start();
    let file = std::mem::ManuallyDrop::new(fuse.open());
    let attacker = Stream::connect(&harness.daemon.producers()[0], DEADLINE).unwrap();
    let mut frame = Vec::new();
    encode::request_error(&mut frame, 1);
    // As many as may wait, one that the connection keeps until the next one, and one too many.
    for _ in 0..MAX_PASSED + 2 {
        assert!(attacker.send(&frame, Some(file.as_fd())).unwrap() > 0);
        // The service receives each but the last before the next is sent.
        barrier(&mut harness.consumer());
    }
    let before = harness.daemon.stats().rounds;
    // Ignore all replies until the connection ends.
    let patience = rustix::event::Timespec { tv_sec: DEADLINE.as_secs() as i64, tv_nsec: 0 };
    while attacker.recv(&mut [0; 4096]).unwrap().is_none_or(|received| received.len > 0) {
        let mut fds = [rustix::event::PollFd::new(&attacker, rustix::event::PollFlags::IN)];
        assert_eq!(rustix::event::poll(&mut fds, Some(&patience)).unwrap(), 1, "it is never closed");
    }
    let rounds = harness.daemon.stats().rounds - before;
    assert!(rounds < 500, "{rounds} rounds until the connection was closed");
    drop(fuse);
}
