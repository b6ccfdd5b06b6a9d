//! A producer may bring its own shared memory. The service adopts only a sealed memfd of a proper
//! size, because the producer could truncate any other (`docs/spec/wire-protocol.md` §8, §21).

use crate::attacker::{SEALS, memory};
use esatto_tests::bystander::{self, Logged};
use esatto_tests::wire::{self, Peer, Proto};
use esatto_tests::{Harness, skip};
use rustix::fs::{SealFlags, ftruncate};
use std::os::fd::{AsFd, BorrowedFd};

/// Offers memory; whether the service adopts it. The connection must survive.
fn offer(harness: &Harness, page_size: u64, fd: Option<BorrowedFd<'_>>) -> bool {
    let mut peer = Peer::producer(harness);
    let args = Proto::new().int(1, page_size).int(2, 16384).bytes(3, "offer").int(6, 1);
    let (id, frame) = peer.call_frame("InitializeConnection", &args);
    match fd {
        Some(fd) => peer.send_with_fds(&frame, &[fd]),
        None => peer.send(&frame),
    }
    let reply = peer.reply_to(id);
    assert!(reply.success, "the connection is initialized: {reply:?}");
    assert!(peer.call("Sync", &Proto::new()).success);
    wire::int(&reply.body, 1) != 0
}

#[test]
fn a_sealed_memfd_is_adopted() {
    skip(|| {
        bystander::attack(|harness, _| {
            assert!(offer(harness, 4096, Some(memory(16384, SEALS).as_fd())));
            Logged::No
        })
    });
}

#[test]
fn everything_else_is_not() {
    skip(|| {
        bystander::attack(|harness, _| {
            let refuse = |what: &str, page_size: u64, fd: Option<BorrowedFd<'_>>| {
                assert!(!offer(harness, page_size, fd), "adopted: {what}");
            };
            refuse("no descriptor", 4096, None);
            refuse("an empty memfd", 4096, Some(memory(0, SEALS).as_fd()));
            refuse("less than a page", 4096, Some(memory(1000, SEALS).as_fd()));
            refuse("not whole pages", 4096, Some(memory(16384 + 100, SEALS).as_fd()));
            refuse("a page of 12 KiB", 12288, Some(memory(12288 * 4, SEALS).as_fd()));
            refuse("a page of 64 KiB", 65536, Some(memory(1 << 18, SEALS).as_fd()));
            refuse("no page size", 0, Some(memory(16384, SEALS).as_fd()));
            refuse("40 MiB", 4096, Some(memory(40 << 20, SEALS).as_fd()));
            refuse("a memfd without seals", 4096, Some(memory(16384, SealFlags::empty()).as_fd()));
            refuse("a memfd that may shrink", 4096, Some(memory(16384, SealFlags::GROW | SealFlags::SEAL).as_fd()));
            refuse("a memfd nobody may write", 4096, Some(memory(16384, SEALS | SealFlags::WRITE).as_fd()));

            let path = harness.write("file", vec![0; 16384]);
            let file = std::fs::File::options().read(true).write(true).open(path).expect("a file");
            refuse("a file", 4096, Some(file.as_fd()));
            refuse("a file of the system", 4096, Some(std::fs::File::open("/proc/self/stat").expect("proc").as_fd()));
            refuse("a device", 4096, Some(std::fs::File::open("/dev/zero").expect("a device").as_fd()));
            refuse("a folder", 4096, Some(std::fs::File::open("/").expect("a folder").as_fd()));
            refuse("a pipe", 4096, Some(rustix::pipe::pipe().expect("a pipe").0.as_fd()));
            let (socket, _other) = std::os::unix::net::UnixStream::pair().expect("sockets");
            refuse("a socket", 4096, Some(socket.as_fd()));
            Logged::Yes
        })
    });
}

/// Memory that the service makes cannot be cut off by a producer either.
#[test]
fn memory_from_the_service_cannot_be_truncated() {
    skip(|| {
        bystander::attack(|harness, _| {
            let mut peer = Peer::producer(harness);
            assert!(peer.call("InitializeConnection", &Proto::new().bytes(3, "cutter")).success);
            let (commands, frame) = peer.call_frame("GetAsyncCommand", &Proto::new());
            peer.send(&frame);
            // The bystander's session wants this data source.
            let source = Proto::new().bytes(1, "track_event").int(7, 5);
            assert!(peer.call("RegisterDataSource", &Proto::new().message(1, &source)).success);
            let setup = loop {
                let reply = peer.reply_to(commands);
                if let Some(setup) = wire::last(&reply.body, 3) {
                    break setup.to_vec();
                }
            };
            assert_eq!(wire::int(&setup, 1), 4, "pages of 4 KiB");
            let memory = peer.take_descriptor().expect("setup_tracing brings a descriptor");
            let size = rustix::fs::fstat(&memory).expect("a size").st_size;
            assert_eq!(size, 256 << 10);
            assert_eq!(ftruncate(&memory, 0), Err(rustix::io::Errno::PERM), "the memory is sealed");
            assert_eq!(ftruncate(&memory, 1 << 30), Err(rustix::io::Errno::PERM), "the memory is sealed");
            Logged::No
        })
    });
}
