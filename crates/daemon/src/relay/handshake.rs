//! The relay's side of the proof of a shared secret, on a connection that has just been made.

use std::os::fd::{AsFd, BorrowedFd};

use esatto_ipc::{Client, ClientEvent, Error as IpcError, FrameDecoder, RequestId, Stream};
use rustix::event::epoll::EventFlags;
use thiserror::Error;

use crate::shared_secret::{
    CHALLENGE, Nonce, Nonces, PROVE, Role, SECRET_SERVICE, SharedSecret, decode, encode, nonce,
};

/// Bytes read at a time. The answers of a service are much shorter.
const READ_AT_ONCE: usize = 4096;

/// A proof that is under way. Nothing else may be sent on the connection until it is finished.
#[derive(Debug)]
pub(crate) struct Handshake {
    stream: Stream,
    secret: SharedSecret,
    decoder: FrameDecoder,
    client: Client,
    nonce: Nonce,
    step: Step,
    out: Vec<u8>,
}

/// Answer that the relay waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Binding,
    Challenging(RequestId),
    Proving(RequestId, Nonces),
    Done,
}

/// Reason why a service is not trusted.
#[derive(Debug, Error)]
pub(crate) enum Distrust {
    #[error(transparent)]
    Ipc(#[from] IpcError),
    #[error("the service asks for no shared secret; start it with traced --secret-file, or the relay without it")]
    NoSecret,
    #[error("the service has another shared secret; compare the files of --secret-file")]
    OtherSecret,
    #[error("the service closed the connection before it proved the shared secret")]
    Closed,
    #[error("the service does not follow the protocol of the shared secret")]
    Malformed,
}

impl Handshake {
    /// Begins a proof on a new connection.
    pub(crate) fn begin(stream: Stream, secret: SharedSecret) -> Result<Self, Distrust> {
        let nonce = nonce().map_err(IpcError::Io)?;
        let (mut client, mut out) = (Client::new(), Vec::new());
        client.bind(SECRET_SERVICE, &mut out)?;
        let mut this = Self { stream, secret, decoder: FrameDecoder::new(), client, nonce, step: Step::Binding, out };
        this.flush()?;
        Ok(this)
    }

    /// Reads and writes as much as possible without waiting. Returns whether both sides have proved
    /// the secret.
    pub(crate) fn on_socket(&mut self) -> Result<bool, Distrust> {
        let mut bytes = [0; READ_AT_ONCE];
        // A descriptor that comes along is closed.
        let received = self.stream.recv(&mut bytes)?.map(|received| received.len);
        let mut rest = &bytes[..received.unwrap_or(0)];
        while !rest.is_empty() {
            let taken = self.decoder.push(rest);
            rest = &rest[taken..];
            self.handle_frames()?;
            if taken == 0 {
                return Err(Distrust::Malformed);
            }
        }
        self.flush()?;
        match self.step {
            // The service has nothing more to say before it is asked.
            Step::Done if self.decoder.buffered() > 0 => Err(Distrust::Malformed),
            Step::Done => Ok(true),
            Step::Proving(..) if received == Some(0) => Err(Distrust::OtherSecret),
            _ if received == Some(0) => Err(Distrust::Closed),
            _ => Ok(false),
        }
    }

    fn handle_frames(&mut self) -> Result<(), Distrust> {
        while let Some(frame) = self.decoder.next_frame()? {
            let event = self.client.handle(&frame);
            self.step = match (self.step, event) {
                (Step::Binding, Some(ClientEvent::Bound)) => {
                    let args = encode(&self.nonce);
                    let request = self.client.invoke(CHALLENGE, &args, false, &mut self.out)?;
                    Step::Challenging(request.ok_or(Distrust::Malformed)?)
                }
                (Step::Binding, Some(ClientEvent::BindFailed)) => return Err(Distrust::NoSecret),
                (Step::Challenging(expected), Some(ClientEvent::Reply { request_id, body, .. }))
                    if request_id == expected =>
                {
                    let service = decode(body).ok_or(Distrust::Malformed)?;
                    let nonces = Nonces { relay: self.nonce, service };
                    let args = encode(&self.secret.proof(Role::Relay, &nonces));
                    let request = self.client.invoke(PROVE, &args, false, &mut self.out)?;
                    Step::Proving(request.ok_or(Distrust::Malformed)?, nonces)
                }
                (Step::Proving(expected, nonces), Some(ClientEvent::Reply { request_id, success, body, .. }))
                    if request_id == expected =>
                {
                    let proof = decode(body).filter(|_| success).ok_or(Distrust::OtherSecret)?;
                    if !self.secret.verifies(Role::Service, &nonces, &proof) {
                        return Err(Distrust::OtherSecret);
                    }
                    Step::Done
                }
                _ => return Err(Distrust::Malformed),
            };
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Distrust> {
        let sent = self.stream.send(&self.out, None)?;
        self.out.drain(..sent);
        Ok(())
    }

    /// Returns the events to wait for on the socket.
    pub(crate) fn wanted(&self) -> EventFlags {
        let mut flags = EventFlags::IN;
        flags.set(EventFlags::OUT, !self.out.is_empty());
        flags
    }

    /// Returns the connection after the proof.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }
}

impl AsFd for Handshake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_secret::{Gate, Progress};
    use esatto_ipc::frame::encode as frames;
    use esatto_ipc::{Connection, Host, Limits, Peer};
    use esatto_ports::producer_port;
    use std::sync::Arc;

    fn secret(byte: u8) -> SharedSecret {
        SharedSecret::new(&[byte; 32]).unwrap()
    }

    /// A service with this secret on the other end of a new connection.
    struct Service {
        connection: Connection,
        gate: Gate,
        host: Host,
    }

    fn connect(relay: u8, service: u8) -> (Handshake, Service) {
        let (ours, theirs) = Stream::pair().unwrap();
        let host = Host::new(Gate::ports(), Peer::of(&theirs));
        let gate = Gate::new(secret(service), Arc::new([&producer_port::SERVICE]));
        let service = Service { connection: Connection::new(theirs, Limits::CLIENT), gate, host };
        (Handshake::begin(ours, secret(relay)).unwrap(), service)
    }

    impl Service {
        /// Answers what has arrived. Returns whether the relay has proved the secret.
        fn turn(&mut self) -> bool {
            self.connection.on_readable().unwrap();
            let mut proved = false;
            while let Some((frame, io)) = self.connection.next_frame().unwrap() {
                let progress = self.gate.handle(&frame, &mut self.host, io.out.buffer());
                proved |= matches!(progress, Ok(Progress::Proved(_)));
            }
            self.connection.flush_writes().unwrap();
            proved
        }
    }

    #[test]
    fn both_sides_prove_the_same_secret() {
        let (mut relay, mut service) = connect(7, 7);
        let mut proved = false;
        for _ in 0..3 {
            assert!(!proved && !relay.on_socket().unwrap(), "nothing was answered yet");
            proved = service.turn();
            if proved {
                break;
            }
        }
        assert!(proved && relay.on_socket().unwrap());
        relay.into_stream().send(b"hello", None).unwrap();
        service.connection.on_readable().unwrap();
        assert_eq!(service.connection.decoder().buffered(), 5);
    }

    #[test]
    fn a_service_with_another_secret_is_not_trusted() {
        let (mut relay, mut service) = connect(7, 8);
        let distrust = loop {
            assert!(!service.turn());
            match relay.on_socket() {
                Ok(is_done) => assert!(!is_done),
                Err(distrust) => break distrust,
            }
        };
        assert!(matches!(distrust, Distrust::OtherSecret), "{distrust}");
    }

    /// A service that knows no secret, but answers.
    fn answers(reply: impl Fn(&esatto_ipc::Frame<'_>, &mut Vec<u8>)) -> Distrust {
        let (mut relay, mut service) = connect(7, 7);
        for _ in 0..5 {
            service.connection.on_readable().unwrap();
            while let Some((frame, io)) = service.connection.next_frame().unwrap() {
                reply(&frame, io.out.buffer());
            }
            service.connection.flush_writes().unwrap();
            match relay.on_socket() {
                Ok(is_done) => assert!(!is_done),
                Err(distrust) => return distrust,
            }
        }
        panic!("it still waits");
    }

    #[test]
    fn a_service_that_reflects_the_proof_is_not_trusted() {
        let distrust = answers(|frame, out| match frame.body {
            esatto_ipc::FrameBody::BindService { .. } => {
                frames::bind_service_reply(out, frame.request_id, 1, [(1, CHALLENGE), (2, PROVE)].into_iter()).unwrap();
            }
            // Its own nonce and then its own proof come back.
            esatto_ipc::FrameBody::InvokeMethod { args, .. } => {
                frames::reply_ok(out, frame.request_id, args, false).unwrap();
            }
            _ => {}
        });
        assert!(matches!(distrust, Distrust::OtherSecret), "{distrust}");
    }

    #[test]
    fn a_service_without_the_secret_service_is_not_trusted() {
        let distrust = answers(|frame, out| frames::bind_service_failed(out, frame.request_id).unwrap());
        assert!(matches!(distrust, Distrust::NoSecret), "{distrust}");
        let distrust = answers(|frame, out| frames::request_error(out, frame.request_id));
        assert!(matches!(distrust, Distrust::NoSecret), "{distrust}");
    }

    #[test]
    fn a_service_that_sends_more_is_not_trusted() {
        let (mut relay, mut service) = connect(7, 7);
        while !service.turn() {
            assert!(!relay.on_socket().unwrap());
        }
        service.connection.stream().send(&[0; 3], None).unwrap();
        assert!(matches!(relay.on_socket(), Err(Distrust::Malformed)));
    }
}
