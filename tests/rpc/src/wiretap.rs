//! [`Wiretap`]: a relay between clients and a service, in this process or another one. It keeps the
//! bytes that pass, and can leave out what old peers do not know.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use esatto_ipc::sys::{PollFd, poll};
use esatto_ipc::{Address, Listener, Stream};
use esatto_tests::wire;

/// Treatment of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All bytes pass as they are.
    Pass,
    /// The extensions of Esatto's RPC library are left out, as if the other side did not know them.
    StripExtensions,
}

/// Bytes of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// From the client, as it sent them.
    pub sent: Vec<u8>,
    /// From the service, as it sent them.
    pub received: Vec<u8>,
}

/// Relay at a socket.
#[derive(Debug)]
pub struct Wiretap {
    conversations: Arc<Mutex<Vec<Conversation>>>,
}

impl Wiretap {
    /// Listens at `socket`, and passes each connection on to `target`.
    ///
    /// # Panics
    ///
    /// The socket cannot be made.
    #[must_use]
    pub fn start(socket: &Path, target: &Path, mode: Mode) -> Self {
        let listener = Listener::bind(&Address::Path(socket.to_owned())).expect("listens");
        let conversations = Arc::new(Mutex::new(Vec::new()));
        let (target, kept) = (target.to_owned(), Arc::clone(&conversations));
        thread::spawn(move || accept(&listener, &target, mode, &kept));
        Self { conversations }
    }

    /// Returns the bytes of each connection so far.
    #[must_use]
    pub fn conversations(&self) -> Vec<Conversation> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn accept(listener: &Listener, target: &Path, mode: Mode, kept: &Arc<Mutex<Vec<Conversation>>>) {
    loop {
        wait(listener.as_fd(), false);
        let Some(client) = listener.accept().expect("accepts") else { continue };
        let Ok(service) = Stream::connect(&Address::Path(target.to_owned()), Duration::from_secs(60)) else { continue };
        let number = {
            let mut all = kept.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(Conversation::default());
            all.len() - 1
        };
        let (client, service) = (Arc::new(client), Arc::new(service));
        for is_sent in [true, false] {
            let (from, to) = if is_sent { (&client, &service) } else { (&service, &client) };
            let (from, to, kept) = (Arc::clone(from), Arc::clone(to), Arc::clone(kept));
            thread::spawn(move || {
                forward(&from, &to, mode, |bytes| {
                    let conversation = &mut kept.lock().unwrap_or_else(PoisonError::into_inner)[number];
                    let kept = if is_sent { &mut conversation.sent } else { &mut conversation.received };
                    kept.extend_from_slice(bytes);
                });
                to.shutdown_write();
            });
        }
    }
}

/// Passes bytes and descriptors on until an end closes.
fn forward(from: &Stream, to: &Stream, mode: Mode, mut keep: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 1 << 17];
    let mut waiting = Vec::new();
    loop {
        wait(from.as_fd(), false);
        let received = match from.recv(&mut buffer) {
            Ok(None) => continue,
            Ok(Some(received)) if received.len > 0 => received,
            _ => return,
        };
        let bytes = &buffer[..received.len];
        keep(bytes);
        let fd = received.fd.map(esatto_ipc::foreign_fd::ForeignFd::into_owned);
        let passed = match mode {
            Mode::Pass => send(to, bytes, fd),
            Mode::StripExtensions => {
                waiting.extend_from_slice(bytes);
                let frames: Vec<u8> = split(&mut waiting).iter().flat_map(|frame| strip(frame).frame()).collect();
                send(to, &frames, fd)
            }
        };
        if passed.is_err() {
            return;
        }
    }
}

fn send(to: &Stream, mut bytes: &[u8], mut fd: Option<OwnedFd>) -> Result<(), esatto_ipc::Error> {
    while !bytes.is_empty() {
        let sent = to.send(bytes, fd.as_ref().map(AsFd::as_fd))?;
        if sent == 0 {
            wait(to.as_fd(), true);
        } else {
            fd = None;
            bytes = &bytes[sent..];
        }
    }
    Ok(())
}

fn wait(fd: std::os::fd::BorrowedFd<'_>, is_writing: bool) {
    let result = poll(&mut [PollFd::new(fd, is_writing)], None);
    assert!(result.is_ok() || result.is_err_and(|error| error.kind() == io::ErrorKind::Interrupted));
}

/// Takes the payloads of whole frames from the front of `bytes`.
fn split(bytes: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*header) as usize;
        let Some(payload) = rest.get(..length) else { break };
        frames.push(payload.to_vec());
        bytes.drain(..4 + length);
    }
    frames
}

/// Returns the payloads of all frames of one direction.
#[must_use]
pub fn frames(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let frames = split(&mut bytes);
    assert!(bytes.is_empty(), "a frame is cut");
    frames
}

/// First number of Esatto's extensions.
const EXTENSIONS: u32 = 4001;
/// The seed in a frame.
const TRACE_SEED: u32 = 4001;
/// Members of a frame that have extensions of their own.
const INVOKE_METHOD: u32 = 5;
const INVOKE_METHOD_REPLY: u32 = 6;

/// Returns a frame without the extensions.
fn strip(frame: &[u8]) -> wire::Proto {
    let known = |message| wire::fields(message).into_iter().filter(|(field, _)| *field < EXTENSIONS);
    known(frame).fold(wire::Proto::new(), |message, (field, value)| match value {
        wire::Value::Int(value) => message.int(field, value),
        wire::Value::Bytes(bytes) if matches!(field, INVOKE_METHOD | INVOKE_METHOD_REPLY) => {
            message.message(field, &wire::Proto::of(known(bytes)))
        }
        wire::Value::Bytes(bytes) => message.bytes(field, bytes),
    })
}

impl Conversation {
    /// Returns the seed that the client told; 0 if it told none.
    #[must_use]
    pub fn seed(&self) -> u64 {
        frames(&self.sent).first().map_or(0, |bind| wire::int(bind, TRACE_SEED))
    }

    /// Returns the conversation with zeros in place of the seed, which is random.
    #[must_use]
    pub fn without_seed(&self) -> Self {
        let seed = self.seed().to_le_bytes();
        let mask = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            while let Some(at) = bytes.windows(8).position(|window| window == seed) {
                bytes[at..at + 8].fill(0);
            }
            bytes
        };
        if self.seed() == 0 { self.clone() } else { Self { sent: mask(&self.sent), received: mask(&self.received) } }
    }
}
