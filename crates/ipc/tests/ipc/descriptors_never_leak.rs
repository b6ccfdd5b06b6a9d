//! wire-protocol.md §6 and §21: one descriptor is sent with the first byte, and further ones are
//! never kept.

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use esatto_ipc::frame::encode;
use esatto_ipc::{Address, Admission, Connection, Disposal, Error, FrameBody, Limits, Listener, Stream};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::listeners_do_not_steal_sockets::accept;

/// Pipe whose reader sees the end of the stream when all copies of the writing end are closed. It
/// shows leaked descriptors.
fn tracer() -> (File, OwnedFd) {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    (read.into(), write)
}

fn is_closed_everywhere(reader: &mut File) -> bool {
    rustix::io::ioctl_fionbio(&*reader, true).unwrap();
    matches!(reader.read(&mut [0; 1]), Ok(0))
}

/// Sends bytes with any number of descriptors, as a hostile peer can.
fn send_fds(stream: &Stream, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    send_fds_with(stream, bytes, fds, SendFlags::empty());
}

fn send_fds_with(stream: &Stream, bytes: &[u8], fds: &[BorrowedFd<'_>], flags: SendFlags) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
    rustix::net::sendmsg(stream, &[IoSlice::new(bytes)], &mut control, flags).unwrap();
}

#[test]
fn one_descriptor_arrives_and_is_closed_on_exec() {
    let (a, b) = Stream::pair().unwrap();
    let (mut reader, writer) = tracer();
    assert_eq!(a.send(b"frame", Some(writer.as_fd())).unwrap(), 5);
    drop(writer);
    let received = b.recv(&mut [0; 64]).unwrap().unwrap();
    assert_eq!(received.len, 5);
    let fd = received.fd.unwrap().into_owned();
    assert!(rustix::io::fcntl_getfd(&fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    File::from(fd).write_all(b"x").unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "x");
}

/// A descriptor with an urgent byte is received, because closing it could block.
#[test]
fn a_descriptor_with_an_urgent_byte_is_received_like_any_other() {
    let address = Address::Abstract(format!("esatto-urgent-{}", std::process::id()).into_bytes());
    let listener = Listener::bind(&address).unwrap();
    let connected = Stream::connect(&address, std::time::Duration::from_secs(10)).unwrap();
    for (a, b) in [Stream::pair().unwrap(), (connected, accept(&listener))] {
        let (mut reader, writer) = tracer();
        send_fds_with(&a, b"!", &[writer.as_fd()], SendFlags::OOB);
        drop(writer);
        a.send(b"frame", None).unwrap();
        let received = b.recv(&mut [0; 64]).unwrap().expect("it is not skipped");
        assert!(received.fd.is_some() && !is_closed_everywhere(&mut reader));
        drop(received);
        assert!(is_closed_everywhere(&mut reader));
    }
}

#[test]
fn of_two_descriptors_the_first_is_kept_and_the_connection_lives() {
    let (a, b) = Stream::pair().unwrap();
    let (mut first_reader, first) = tracer();
    let (mut second_reader, second) = tracer();
    send_fds(&a, b"ab", &[first.as_fd(), second.as_fd()]);
    drop((first, second));
    let received = b.recv(&mut [0; 64]).unwrap().unwrap();
    assert!(is_closed_everywhere(&mut second_reader));
    assert!(!is_closed_everywhere(&mut first_reader));
    drop(received);
    assert!(is_closed_everywhere(&mut first_reader));
    a.send(b"more", None).unwrap();
    assert_eq!(b.recv(&mut [0; 64]).unwrap().unwrap().len, 4);
}

#[test]
fn three_or_more_end_the_connection_and_all_are_closed() {
    for count in [3, 4, 5, 16] {
        let (a, b) = Stream::pair().unwrap();
        let (mut reader, writer) = tracer();
        let fds = vec![writer.as_fd(); count];
        send_fds(&a, b"x", &fds);
        drop(writer);
        let error = b.recv(&mut [0; 64]).unwrap_err();
        assert!(matches!(error, Error::TooManyDescriptors), "{count}: {error}");
        assert!(is_closed_everywhere(&mut reader), "{count}");
    }
}

#[test]
fn of_many_descriptors_only_the_newest_stays_open() {
    let (a, b) = Stream::pair().unwrap();
    let mut connection = Connection::new(b, Limits::CLIENT);
    let mut readers = Vec::new();
    for id in 0..50 {
        let (reader, writer) = tracer();
        let mut frame = Vec::new();
        encode::request_error(&mut frame, id);
        a.send(&frame, Some(writer.as_fd())).unwrap();
        readers.push(reader);
    }
    let mut frames = 0;
    for _ in 0..50 {
        connection.on_readable().unwrap();
        while let Some((frame, io)) = connection.next_frame().unwrap() {
            assert_eq!(frame.request_id, frames);
            assert!(io.fd.is_some(), "handled together with its own descriptor");
            frames += 1;
        }
    }
    assert_eq!(frames, 50);
    let (last, older) = readers.split_last_mut().unwrap();
    assert!(older.iter_mut().all(is_closed_everywhere));
    assert!(!is_closed_everywhere(last));
    assert!(connection.take_fd().is_some());
    assert!(is_closed_everywhere(last), "taken and dropped");
}

#[test]
fn an_untaken_descriptor_is_closed_with_the_connection() {
    let (a, b) = Stream::pair().unwrap();
    let mut connection = Connection::new(b, Limits::CLIENT);
    let (mut reader, writer) = tracer();
    a.send(b"\x06\0\0\0", Some(writer.as_fd())).unwrap();
    drop(writer);
    connection.on_readable().unwrap();
    assert!(connection.next_frame().unwrap().is_none(), "half a frame");
    assert!(!is_closed_everywhere(&mut reader));
    drop(connection);
    assert!(is_closed_everywhere(&mut reader));
}

#[test]
fn a_descriptor_travels_with_its_frame_among_others() {
    let (a, b) = Stream::pair().unwrap();
    let mut sender = Connection::new(a, Limits::CLIENT);
    let mut receiver = Connection::new(b, Limits::CLIENT);
    let (mut reader, writer) = tracer();
    encode::reply_ok(sender.out().buffer(), 1, b"before", true).unwrap();
    sender.out().with_fd(writer, |buffer| encode::reply_ok(buffer, 2, b"with", true)).unwrap();
    encode::reply_ok(sender.out().buffer(), 3, b"after", true).unwrap();
    sender.flush_writes().unwrap();
    assert!(!sender.wants_write());
    let mut seen = Vec::new();
    for _ in 0..3 {
        receiver.on_readable().unwrap();
        while let Some((frame, io)) = receiver.next_frame().unwrap() {
            let FrameBody::InvokeMethodReply { body, .. } = frame.body else { panic!() };
            // A handler that expects a descriptor takes it.
            seen.push((frame.request_id, if body == b"with" { io.fd.take() } else { None }));
        }
    }
    let with_fd: Vec<_> = seen.iter().map(|(id, fd)| (*id, fd.is_some())).collect();
    assert_eq!(with_fd, [(1, false), (2, true), (3, false)]);
    assert!(!is_closed_everywhere(&mut reader));
    drop(seen);
    assert!(is_closed_everywhere(&mut reader));
}

#[test]
fn a_frame_that_was_not_written_takes_its_descriptor_with_it() {
    let (a, _b) = Stream::pair().unwrap();
    let mut sender = Connection::new(a, Limits::CLIENT);
    let (mut reader, writer) = tracer();
    let too_large = vec![0; 131_072];
    sender.out().with_fd(writer, |buffer| encode::reply_ok(buffer, 2, &too_large, true)).unwrap_err();
    assert!(is_closed_everywhere(&mut reader));
    assert!(!sender.wants_write());
}

/// Disposal that keeps the descriptors that it should close.
#[derive(Debug, Default)]
struct Keeper {
    passed: Mutex<Vec<OwnedFd>>,
    connections: Mutex<Vec<OwnedFd>>,
    is_full: AtomicBool,
    is_stuck: AtomicBool,
}

impl Disposal for Keeper {
    fn close_passed(&self, fd: OwnedFd) {
        self.passed.lock().unwrap().push(fd);
    }

    fn close_connection(&self, fd: OwnedFd) {
        self.connections.lock().unwrap().push(fd);
    }

    fn admission(&self) -> Admission {
        match (self.is_full.load(Ordering::Relaxed), self.is_stuck.load(Ordering::Relaxed)) {
            (false, _) => Admission::Granted,
            (true, false) => Admission::Later,
            (true, true) => Admission::Denied,
        }
    }
}

#[test]
fn all_descriptors_of_a_stranger_go_to_the_disposal() {
    // As many descriptors as a message can have.
    for count in [1, 2, 3, 253] {
        let keeper = Arc::new(Keeper::default());
        let (a, mut b) = Stream::pair().unwrap();
        b.set_disposal(Arc::<Keeper>::clone(&keeper));
        let (mut reader, writer) = tracer();
        send_fds(&a, b"x", &vec![writer.as_fd(); count]);
        drop(writer);
        let mut connection = Connection::new(b, Limits::CLIENT);
        assert_eq!(connection.on_readable().is_err(), count > 2);
        drop(connection);
        assert_eq!(keeper.passed.lock().unwrap().len(), count);
        assert_eq!(keeper.connections.lock().unwrap().len(), 1);
        assert!(!is_closed_everywhere(&mut reader), "{count}");
        assert_eq!(a.recv(&mut [0; 64]).unwrap().unwrap().len, 0, "the peer sees the end at once");
        keeper.passed.lock().unwrap().clear();
        assert!(is_closed_everywhere(&mut reader), "{count}");
    }
}

#[test]
fn a_descriptor_that_may_not_be_passed_stays_in_the_kernel() {
    let keeper = Arc::new(Keeper::default());
    keeper.is_full.store(true, Ordering::Relaxed);
    let (a, mut b) = Stream::pair().unwrap();
    b.set_disposal(Arc::<Keeper>::clone(&keeper));
    let mut bytes = [0; 64];
    assert!(b.recv(&mut bytes).unwrap().is_none());
    a.send(b"without", None).unwrap();
    assert_eq!(b.recv(&mut bytes).unwrap().unwrap().len, 7);
    let (mut reader, writer) = tracer();
    send_fds(&a, b"with", &[writer.as_fd()]);
    drop(writer);
    assert!(b.recv(&mut bytes).unwrap().is_none(), "it waits");
    keeper.is_stuck.store(true, Ordering::Relaxed);
    assert!(matches!(b.recv(&mut bytes), Err(Error::DescriptorRefused)));
    drop(b);
    // It stays in the queue of the connection until that is closed.
    assert!(!is_closed_everywhere(&mut reader) && keeper.passed.lock().unwrap().is_empty());
    keeper.connections.lock().unwrap().clear();
    assert!(is_closed_everywhere(&mut reader));
}

#[test]
fn memory_is_distinguished_from_other_files() {
    let (a, b) = Stream::pair().unwrap();
    let memory = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    let file = File::open("/dev/null").unwrap();
    for (fd, is_memory) in [(memory.as_fd(), true), (file.as_fd(), false)] {
        a.send(b"x", Some(fd)).unwrap();
        let received = b.recv(&mut [0; 64]).unwrap().unwrap().fd.unwrap();
        assert_eq!(received.as_memory().is_ok(), is_memory);
    }
}

#[test]
fn tcp_carries_no_descriptors() {
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let address = Address::Inet { host: "127.0.0.1".into(), port: listener.port().unwrap() };
    let client = Stream::connect(&address, core::time::Duration::from_secs(10)).unwrap();
    let _server = accept(&listener);
    let (_reader, writer) = tracer();
    assert!(matches!(client.send(b"x", Some(writer.as_fd())), Err(Error::DescriptorsUnsupported)));
}
