//! The service's side of the proof: a gate before the ports of a connection.

use core::fmt;
use std::sync::Arc;

use esatto_ipc::{Frame, Host, HostEvent, Invoke};

use super::{CHALLENGE, Nonces, PROVE, Role, SECRET_PORT, SharedSecret, decode, encode, nonce};
use crate::socket_role::Ports;

/// Frames that a connection may send before its proof. A relay sends three: a bind and two calls.
const MAX_FRAMES: u32 = 8;

/// A connection whose peer has not proved the secret yet.
#[derive(Debug)]
pub(crate) struct Gate {
    secret: SharedSecret,
    /// Ports for which the peer is admitted.
    ports: Ports,
    nonces: Option<Nonces>,
    frames: u32,
}

/// State of a proof after a frame.
#[derive(Debug)]
pub(crate) enum Progress {
    Waiting,
    /// The peer has proved the secret and may use these ports.
    Proved(Ports),
}

/// Reason why a connection gets no ports. It must be closed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The peer does not try: it has no secret, or is older.
    NoProof,
    WrongProof,
    /// The proof does not follow its rules.
    Malformed,
    TooSlow,
    /// It holds too many bytes.
    TooMuch,
    /// Too many connections have not proved the secret.
    Crowded,
    System(std::io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProof => f.write_str(
                "it asks for a port before it has proved the shared secret; only relays with --secret-file can",
            ),
            Self::WrongProof => f.write_str("it has another shared secret; compare the files of --secret-file"),
            Self::Malformed => f.write_str("its proof of the shared secret does not follow the protocol"),
            Self::TooSlow => f.write_str("it has not proved the shared secret in time"),
            Self::TooMuch => f.write_str("it sends too much before it has proved the shared secret"),
            Self::Crowded => f.write_str("too many newer connections have not proved the shared secret"),
            Self::System(e) => write!(f, "cannot get random bytes for its proof of the shared secret: {e}"),
        }
    }
}

impl Gate {
    pub(crate) fn new(secret: SharedSecret, ports: Ports) -> Self {
        Self { secret, ports, nonces: None, frames: 0 }
    }

    /// Returns the ports of a connection before its proof.
    pub(crate) fn ports() -> Ports {
        Arc::new([&SECRET_PORT])
    }

    /// Handles a frame. `host` has the ports of [`Gate::ports`].
    ///
    /// # Errors
    ///
    /// The connection must be closed, after `out` was written.
    pub(crate) fn handle(
        &mut self,
        frame: &Frame<'_>,
        host: &mut Host,
        out: &mut Vec<u8>,
    ) -> Result<Progress, Refusal> {
        self.frames += 1;
        if self.frames > MAX_FRAMES {
            return Err(Refusal::Malformed);
        }
        let refused = host.refused();
        match host.handle(frame, out) {
            Some(HostEvent::Invoke(invoke)) => self.call(&invoke, host, out),
            // It asks for another port, calls a method of one, or sends no request at all.
            _ if host.refused() > refused => Err(Refusal::NoProof),
            _ => Ok(Progress::Waiting),
        }
    }

    fn call(&mut self, invoke: &Invoke<'_>, host: &mut Host, out: &mut Vec<u8>) -> Result<Progress, Refusal> {
        let id = invoke.request_id;
        let reply = |host: &Host, body: &[u8; 32], out: &mut Vec<u8>| {
            host.reply_ok(id, &encode(body), false, out).map_err(|_| Refusal::Malformed)
        };
        let Some(bytes) = decode(invoke.args) else {
            host.reply_not_invoked(id, out);
            return Err(Refusal::Malformed);
        };
        match (invoke.method.name, self.nonces) {
            (CHALLENGE, None) => {
                let nonces = Nonces { relay: bytes, service: nonce().map_err(Refusal::System)? };
                self.nonces = Some(nonces);
                reply(host, &nonces.service, out)?;
                Ok(Progress::Waiting)
            }
            (PROVE, Some(nonces)) if self.secret.verifies(Role::Relay, &nonces, &bytes) => {
                reply(host, &self.secret.proof(Role::Service, &nonces), out)?;
                Ok(Progress::Proved(Arc::clone(&self.ports)))
            }
            // One attempt for each connection.
            (PROVE, Some(_)) => {
                host.reply_rejected(id, out);
                Err(Refusal::WrongProof)
            }
            _ => {
                host.reply_rejected(id, out);
                Err(Refusal::Malformed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_ipc::{Family, FrameDecoder, Peer, frame::encode as frames};
    use esatto_ports::producer_port;

    /// A gate, and a peer that sends frames to it.
    struct Door {
        gate: Gate,
        host: Host,
        secret: SharedSecret,
    }

    impl Door {
        fn new() -> Self {
            let secret = SharedSecret::new(&[7; 32]).unwrap();
            let gate = Gate::new(secret.clone(), Arc::new([&producer_port::SERVICE]));
            let host = Host::new(Gate::ports(), Peer::remote(Family::Inet, String::new()));
            Self { gate, host, secret }
        }

        /// Sends a frame. Returns the body of the reply.
        fn send(&mut self, frame: &[u8]) -> Result<(Progress, Vec<u8>), Refusal> {
            let (mut decoder, mut out) = (FrameDecoder::new(), Vec::new());
            decoder.push(frame);
            let progress = self.gate.handle(&decoder.next_frame().unwrap().unwrap(), &mut self.host, &mut out)?;
            let mut replies = FrameDecoder::new();
            replies.push(&out);
            let body = match replies.next_frame().unwrap().map(|frame| frame.body) {
                Some(esatto_ipc::FrameBody::InvokeMethodReply { success: true, body, .. }) => body.to_vec(),
                _ => Vec::new(),
            };
            Ok((progress, body))
        }

        fn call(&mut self, method: u32, args: &[u8]) -> Result<(Progress, Vec<u8>), Refusal> {
            let mut frame = Vec::new();
            frames::invoke_method(&mut frame, 1, 1, method, args, false).unwrap();
            self.send(&frame)
        }

        /// Exchanges the nonces.
        fn challenge(&mut self, relay: [u8; 32]) -> Nonces {
            let (_, body) = self.call(1, &encode(&relay)).unwrap();
            Nonces { relay, service: decode(&body).unwrap() }
        }
    }

    #[test]
    fn a_proof_opens_the_ports_and_is_answered_by_the_services_own() {
        let mut door = Door::new();
        let nonces = door.challenge([1; 32]);
        let proof = door.secret.proof(Role::Relay, &nonces);
        let (progress, body) = door.call(2, &encode(&proof)).unwrap();
        assert!(
            matches!(progress, Progress::Proved(ports) if ports.len() == 1 && core::ptr::eq(ports[0], &producer_port::SERVICE))
        );
        assert!(door.secret.verifies(Role::Service, &nonces, &decode(&body).unwrap()));
    }

    #[test]
    fn a_wrong_proof_has_no_second_attempt() {
        for other in [[0; 32], [255; 32]] {
            let mut door = Door::new();
            door.challenge([1; 32]);
            assert!(matches!(door.call(2, &encode(&other)), Err(Refusal::WrongProof)));
        }
        // Replayed from another connection.
        let mut first = Door::new();
        let nonces = first.challenge([1; 32]);
        let proof = first.secret.proof(Role::Relay, &nonces);
        let mut second = Door::new();
        second.challenge([1; 32]);
        assert!(matches!(second.call(2, &encode(&proof)), Err(Refusal::WrongProof)));
        // The service's own proof of another connection.
        let (_, own) = first.call(2, &encode(&proof)).unwrap();
        let mut third = Door::new();
        third.challenge([1; 32]);
        assert!(matches!(third.call(2, &own), Err(Refusal::WrongProof)));
    }

    #[test]
    fn everything_else_closes_the_connection() {
        let frame = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            out
        };
        for asks in [
            frame(&|out| frames::bind_service(out, 1, "ProducerPort").unwrap()),
            frame(&|out| frames::invoke_method(out, 1, 2, 1, &[], true).unwrap()),
            frame(&|out| frames::invoke_method(out, 1, 1, 3, &[], false).unwrap()),
            frame(&|out| frames::reply_rejected(out, 1)),
        ] {
            assert!(matches!(Door::new().send(&asks), Err(Refusal::NoProof)), "{asks:?}");
        }
        // A proof without nonces, two challenges, and nonces of a wrong length.
        assert!(matches!(Door::new().call(2, &encode(&[0; 32])), Err(Refusal::Malformed)));
        let mut door = Door::new();
        door.challenge([1; 32]);
        assert!(matches!(door.call(1, &encode(&[2; 32])), Err(Refusal::Malformed)));
        assert!(matches!(Door::new().call(1, &[]), Err(Refusal::Malformed)));
        assert!(matches!(Door::new().call(1, &[0x0a, 1, 0]), Err(Refusal::Malformed)));
        // Harmless frames, but too many.
        let bind = frame(&|out| frames::bind_service(out, 1, "EsattoSecretPort").unwrap());
        let mut door = Door::new();
        for _ in 0..MAX_FRAMES {
            assert!(matches!(door.send(&bind), Ok((Progress::Waiting, _))));
        }
        assert!(matches!(door.send(&bind), Err(Refusal::Malformed)));
    }
}
