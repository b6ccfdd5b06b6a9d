//! A peer that sends any bytes and descriptors.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use esatto_fidl::{Header, Strictness};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Packets,
    Stream,
}

pub(crate) const KINDS: [Kind; 2] = [Kind::Packets, Kind::Stream];

impl Kind {
    pub(crate) fn pair(self) -> (Raw, OwnedFd) {
        let (ours, theirs) = match self {
            Self::Packets => esatto_fidl::socket::pair().unwrap(),
            Self::Stream => {
                let (ours, theirs) = UnixStream::pair().unwrap();
                (ours.into(), theirs.into())
            }
        };
        (Raw { fd: ours, kind: self, received: Vec::new() }, theirs)
    }
}

/// End of a connection without bindings. It blocks.
pub(crate) struct Raw {
    pub(crate) fd: OwnedFd,
    pub(crate) kind: Kind,
    received: Vec<u8>,
}

impl Raw {
    /// Sends these bytes, with descriptors of `/dev/null`. Returns false if the peer is gone.
    pub(crate) fn bytes(&self, bytes: &[u8], descriptors: usize) -> bool {
        self.try_bytes(bytes, descriptors, SendFlags::NOSIGNAL).is_ok()
    }

    fn try_bytes(&self, bytes: &[u8], descriptors: usize, flags: SendFlags) -> Result<usize, Errno> {
        let null = File::open("/dev/null").unwrap();
        let fds = vec![null.as_fd(); descriptors];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(100))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(&self.fd, &[IoSlice::new(bytes)], &mut control, flags)
    }

    /// Returns the bytes of a message with all that the socket needs.
    pub(crate) fn frame(&self, message: &[u8], announced: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.kind == Kind::Stream {
            bytes.extend_from_slice(&u32::try_from(message.len()).unwrap().to_le_bytes());
            bytes.extend_from_slice(&u32::try_from(announced).unwrap().to_le_bytes());
        }
        bytes.extend_from_slice(message);
        bytes
    }

    pub(crate) fn message(&self, message: &[u8]) -> bool {
        self.with_descriptors(message, 0)
    }

    pub(crate) fn with_descriptors(&self, message: &[u8], descriptors: usize) -> bool {
        self.bytes(&self.frame(message, descriptors), descriptors)
    }

    /// Sends a message over and over until the peer takes none for a while, or is gone. Returns
    /// how many it took.
    pub(crate) fn flood(&self, message: &[u8], pause: Duration) -> usize {
        let frame = self.frame(message, 0);
        let (mut at, mut count) = (0, 0);
        loop {
            match self.try_bytes(&frame[at..], 0, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => at += sent,
                Err(Errno::AGAIN) => {
                    let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
                    if poll(&mut fds, Some(&Timespec::try_from(pause).unwrap())).unwrap() == 0 {
                        return count;
                    }
                }
                Err(_) => return count,
            }
            if at == frame.len() {
                (at, count) = (0, count + 1);
            }
        }
    }

    /// Receives the next message. Returns `None` at the end.
    pub(crate) fn receive(&mut self) -> Option<Vec<u8>> {
        loop {
            if self.kind == Kind::Stream {
                if let Some(prefix) = self.received.first_chunk::<4>() {
                    let end = 8 + u32::from_le_bytes(*prefix) as usize;
                    if self.received.len() >= end {
                        return Some(self.received.drain(..end).skip(8).collect());
                    }
                }
            }
            let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
            assert_ne!(poll(&mut fds, Some(&Timespec::try_from(LONG).unwrap())).unwrap(), 0, "nothing comes");
            let mut space = vec![0; 1 << 16];
            let mut control = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(100))];
            let mut control = RecvAncillaryBuffer::new(&mut control);
            let read = recvmsg(&self.fd, &mut [IoSliceMut::new(&mut space)], &mut control, RecvFlags::CMSG_CLOEXEC);
            match read {
                Ok(read) if read.bytes > 0 => space.truncate(read.bytes),
                _ => return None,
            }
            if self.kind == Kind::Packets {
                return Some(space);
            }
            self.received.extend(space);
        }
    }

    /// Receives the next call that the program made.
    pub(crate) fn receive_call(&mut self) -> (u32, u64) {
        loop {
            let header = Header::parse(&self.receive().unwrap()).unwrap();
            // Control messages have this bit.
            if header.ordinal >> 63 == 0 {
                return (header.txid, header.ordinal);
            }
        }
    }
}

/// Makes a message.
pub(crate) fn message(txid: u32, strictness: Strictness, ordinal: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = Header { txid, strictness, ordinal }.to_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

/// Keeps other tests away, and checks at its end that no descriptor was left.
pub(crate) struct Alone {
    _guard: MutexGuard<'static, ()>,
    descriptors: usize,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Alone {
    pub(crate) fn new() -> Self {
        let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self { _guard: guard, descriptors: descriptors() }
    }

    pub(crate) fn check(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while descriptors() != self.descriptors && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(descriptors(), self.descriptors, "descriptors stay open");
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
