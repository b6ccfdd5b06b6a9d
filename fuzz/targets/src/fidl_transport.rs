//! FIDL's bindings, at a socket whose other end sends any bytes and descriptors.

use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use esatto_fidl::{Progress, Responder};
use esatto_fidl_tests::test_echo::echo::{Client, Methods, method, serve};
use esatto_fidl_tests::test_echo::*;
use esatto_fidl_tests::test_shapes::{Choice, Options};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, sendmsg, shutdown};

/// A server that answers some calls at once and others with the next one.
#[derive(Default)]
struct Answers(Vec<Responder<method::Later>>);

impl Methods for Answers {
    fn echo_string(&mut self, request: EchoEchoStringRequest, responder: Responder<method::EchoString>) {
        let _ = responder.send(&EchoEchoStringResponse { response: request.value });
    }

    fn send_string(&mut self, _: EchoSendStringRequest) {}

    fn divide(&mut self, _: EchoDivideRequest, responder: Responder<method::Divide>) {
        let _ = responder.send(&Err(DivisionError::ByZero));
    }

    fn later(&mut self, _: Choice, responder: Responder<method::Later>) {
        self.0.push(responder);
    }

    fn ping(&mut self, responder: Responder<method::Ping>) {
        let _ = responder.send(&());
    }

    fn forget(&mut self) {
        for responder in self.0.drain(..) {
            let _ = responder.send(&Options::default());
        }
    }

    fn pass(&mut self, request: EchoPassRequest, responder: Responder<method::Pass>) {
        let _ = responder.send(&EchoPassResponse { file: Some(request.file) });
    }

    fn fail(&mut self, responder: Responder<method::Fail>) {
        responder.close_with(-1);
    }

    fn unknown_method(&mut self, _: u64) {}
}

/// A byte that chooses the end, the kind of socket and the number of descriptors, one with the size
/// of the pieces, and the bytes.
pub fn fidl_transport(bytes: &[u8]) {
    let Some((&[choice, size], bytes)) = bytes.split_first_chunk() else { return };
    let (ours, theirs): (OwnedFd, OwnedFd) = if choice & 1 == 0 {
        esatto_fidl::socket::pair().expect("there are descriptors")
    } else {
        let (ours, theirs) = UnixStream::pair().expect("there are descriptors");
        (ours.into(), theirs.into())
    };
    let descriptors = usize::from(choice >> 2 & 3);
    let pieces = bytes.chunks((usize::from(size) * 4).max(1));
    let mut pieces = pieces.map(|piece| send(&ours, piece, descriptors));
    // The answers of a client that is gone are dropped.
    let end = || shutdown(&ours, Shutdown::Both).expect("a socket");
    if choice & 2 == 0 {
        let mut server = serve(theirs.into(), Answers::default()).expect("a socket");
        let mut pump = || !matches!(server.pump(), Ok(Progress::Idle | Progress::More));
        while pieces.next() == Some(true) && !pump() {}
        end();
        assert!((0..1000).any(|_| pump()), "the server sees the end");
    } else {
        let client = Client::new(theirs.into()).expect("a socket");
        let now = Some(Duration::ZERO);
        while pieces.next() == Some(true) {
            let _ = client.ping().timeout(Duration::ZERO).wait();
            let _ = client.wait_event(now);
        }
        end();
        assert!((0..2000).any(|_| client.wait_event(now).is_err()), "the client sees the end");
        assert!(client.ping().wait().is_err());
    }
}

/// Sends a piece. Returns false if the peer takes nothing.
fn send(socket: &OwnedFd, piece: &[u8], descriptors: usize) -> bool {
    let null = File::open("/dev/null").expect("is there");
    let fds = [null.as_fd(); 3];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if descriptors > 0 {
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds[..descriptors])));
    }
    sendmsg(socket, &[IoSlice::new(piece)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_ok()
}
