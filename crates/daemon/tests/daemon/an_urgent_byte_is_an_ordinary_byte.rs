//! A client sends an urgent byte (`MSG_OOB`) with a descriptor whose `close` blocks. By default,
//! the kernel skips the byte, and closes the descriptor in the thread that reads on.

use std::io::{ErrorKind, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Duration;

use crate::harness::{DEADLINE, Harness, barrier, skip};
use esatto_ipc::Stream;
use esatto_ipc::frame::encode;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

#[test]
fn its_descriptor_does_not_block_the_service() {
    let harness = Harness::start();
    let mut consumer = harness.consumer();
    barrier(&mut consumer);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut lingering = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let _other_end = listener.accept().unwrap();
    rustix::net::sockopt::set_socket_linger(&lingering, Some(Duration::from_secs(3600))).unwrap();
    lingering.set_nonblocking(true).unwrap();
    while lingering.write(&[0; 65536]).map_err(|e| assert_eq!(e.kind(), ErrorKind::WouldBlock)).is_ok() {}

    let attacker = Stream::connect(&harness.daemon.producers()[0], DEADLINE).unwrap();
    let mut frames = Vec::new();
    encode::request_error(&mut frames, 1);
    let fds = [lingering.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    let sent = rustix::net::sendmsg(&attacker, &[IoSlice::new(&frames[..1])], &mut control, SendFlags::OOB);
    match sent {
        Ok(sent) => assert_eq!(sent, 1),
        Err(e) => return skip(&format!("no urgent bytes on unix sockets: {e}")),
    }
    attacker.send(&frames[1..], None).unwrap();
    drop((lingering, attacker));
    for _ in 0..10 {
        barrier(&mut consumer);
    }
}
