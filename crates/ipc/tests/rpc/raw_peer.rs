//! [`Raw`]: an end of a connection that sends any bytes.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use esatto_ipc::frame::rpc::{Features, InvokeMethod, RpcBody, RpcFrame, encode};
use esatto_ipc::sys::{PollFd, poll};
use esatto_ipc::{FrameDecoder, Stream};
use esatto_protozero::Owned;

use crate::sample_store::SOON;

/// End of a connection, without rules.
pub(crate) struct Raw {
    pub(crate) stream: Stream,
    decoder: FrameDecoder,
}

impl Raw {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, decoder: FrameDecoder::new() }
    }

    /// Sends all bytes, with a descriptor at the first one.
    pub(crate) fn send_with(&self, bytes: &[u8], mut fd: Option<BorrowedFd<'_>>) {
        let mut sent = 0;
        while sent < bytes.len() {
            let n = self.stream.send(&bytes[sent..], fd).unwrap();
            if n == 0 {
                poll(&mut [PollFd::new(self.stream.as_fd(), true)], Some(SOON)).unwrap();
            } else {
                fd = None;
            }
            sent += n;
        }
    }

    /// Sends the frames that `write` makes.
    pub(crate) fn send(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&mut out);
        self.send_with(&out, None);
    }

    /// Binds the store, as a client that knows these extensions.
    pub(crate) fn bind(&mut self, features: Features) {
        self.send(|out| encode::bind_service(out, 1, "Store", features, 0).unwrap());
        self.receive(|frame| {
            assert!(matches!(frame.body, RpcBody::BindServiceReply { success: true, service_id: 1, .. }));
            assert_eq!(frame.features, features & Features::ALL);
        });
    }

    /// Calls a method of the store.
    pub(crate) fn call(&self, id: u64, method_id: u32, request: &impl Owned, with: InvokeMethod<'_>) {
        let args = request.encode();
        let call = InvokeMethod { service_id: 1, method_id, args: &args, ..with };
        self.send(|out| encode::invoke_method(out, id, &call, false).unwrap());
    }

    /// Waits for a frame.
    pub(crate) fn receive<T>(&mut self, visit: impl FnOnce(&RpcFrame<'_>) -> T) -> T {
        self.receive_within(SOON, visit).expect("a frame")
    }

    /// Waits for a frame, for some time.
    pub(crate) fn receive_within<T>(&mut self, wait: Duration, visit: impl FnOnce(&RpcFrame<'_>) -> T) -> Option<T> {
        let end = Instant::now() + wait;
        while !self.decoder.has_frame() {
            let room = self.decoder.spare();
            match self.stream.recv(room).unwrap() {
                Some(received) if received.len > 0 => self.decoder.advance(received.len),
                Some(_) => return None,
                None => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    poll(&mut [PollFd::new(self.stream.as_fd(), false)], Some(left)).unwrap();
                }
            }
        }
        let (frame, _) = self.decoder.next_rpc_frame().unwrap().unwrap();
        Some(visit(&frame))
    }

    /// Waits for a failure, and returns its number and code.
    pub(crate) fn failure(&mut self) -> (u64, i32) {
        self.receive(|frame| match frame.body {
            RpcBody::InvokeMethodReply { success: false, status, .. } => {
                (frame.request_id, status.map_or(0, |status| status.code))
            }
            ref body => panic!("{body:?}"),
        })
    }

    /// Makes a call that must succeed: the connection works.
    pub(crate) fn still_works(&mut self) {
        self.call(99_999, 1, &crate::sample_store::get("alive"), InvokeMethod::default());
        self.receive(|frame| {
            assert_eq!(frame.request_id, 99_999);
            assert!(matches!(frame.body, RpcBody::InvokeMethodReply { success: true, .. }), "{frame:?}");
        });
    }
}
