//! [`Socket`]: messages with descriptors over a UNIX socket.
//!
//! On a socket of packets (`SOCK_SEQPACKET`), a packet is a message. On a stream, 8 bytes are
//! before each message: its length and the number of its handles, both as `u32`, little endian.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use esatto_ipc::Interest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_type;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// Bytes of a message, header included. It is the limit of Fuchsia's channels.
pub const MAX_MESSAGE_BYTES: usize = 65_536;

/// Handles of a message. It is the limit of Fuchsia's channels.
pub const MAX_MESSAGE_HANDLES: usize = 64;

/// Bytes before a message on a stream.
const PREFIX: usize = 8;

/// Handles that came and whose messages are not complete. More come only from a peer that breaks
/// the rules.
const MAX_WAITING_HANDLES: usize = 128;

/// Message as it travels.
#[derive(Debug, Default)]
pub struct Message {
    /// The header, and the body.
    pub bytes: Vec<u8>,
    /// Descriptors.
    pub handles: Vec<OwnedFd>,
}

/// Non-blocking UNIX socket, of packets or as a stream.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    is_stream: bool,
}

/// Makes two connected sockets of packets, which exec closes.
///
/// # Errors
///
/// The process has no descriptors left.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

impl Socket {
    /// Takes a connected UNIX socket, and makes it non-blocking.
    ///
    /// # Errors
    ///
    /// It is no socket, or neither of packets nor a stream.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let is_stream = match socket_type(&fd)? {
            SocketType::STREAM => true,
            SocketType::SEQPACKET => false,
            other => {
                let message = format!("FIDL needs a socket of packets or a stream, not {other:?}");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
        };
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self { fd, is_stream })
    }

    /// Waits for one of these events, or for a ring of the bell, which is taken, or until the time
    /// is over.
    pub(crate) fn wait(
        &self,
        interest: Interest,
        bell: &OwnedFd,
        timeout: Option<std::time::Duration>,
    ) -> io::Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, interest.read);
        flags.set(PollFlags::OUT, interest.write);
        let timeout = match timeout {
            Some(duration) => Some(Timespec::try_from(duration).map_err(|_| io::ErrorKind::InvalidInput)?),
            None => None,
        };
        let mut fds = [PollFd::new(&self.fd, flags), PollFd::new(bell, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if fds[1].revents().contains(PollFlags::IN) {
            // Another thread may have taken it.
            let _ = rustix::io::read(bell, &mut [0; 8]);
        }
        Ok(())
    }

    /// Ends both directions, for all processes.
    pub(crate) fn shutdown(&self) {
        // It may be disconnected already.
        let _ = rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Both);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Message that waits for room in the socket.
#[derive(Debug)]
struct Waiting {
    bytes: Vec<u8>,
    handles: Vec<OwnedFd>,
    sent: usize,
}

/// Bytes that a waiting handle counts as, because a process has few of them.
const HANDLE_COST: usize = 16 * 1024;

/// Returns the bytes that a waiting message counts as.
pub(crate) fn cost(bytes: usize, handles: usize) -> usize {
    bytes + handles * HANDLE_COST
}

/// Messages that wait for room, in their order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Waiting>,
    cost: usize,
}

impl Waiting {
    fn cost(&self) -> usize {
        cost(self.bytes.len(), self.handles.len())
    }
}

impl Outbox {
    /// Sum of the [`cost`] of the messages that wait.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends a message, or keeps it until the socket has room.
    pub(crate) fn send(&mut self, socket: &Socket, message: &[u8], handles: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut bytes = Vec::new();
        let framed = if socket.is_stream {
            let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes();
            bytes.reserve_exact(PREFIX + message.len());
            bytes.extend_from_slice(&count(message.len()));
            bytes.extend_from_slice(&count(handles.len()));
            bytes.extend_from_slice(message);
            &bytes[..]
        } else {
            message
        };
        let sent = if self.is_empty() { write(socket, framed, handles)? } else { 0 };
        if sent == framed.len() {
            return Ok(());
        }
        let handles: io::Result<Vec<_>> = match sent {
            0 => handles.iter().map(BorrowedFd::try_clone_to_owned).collect(),
            _ => Ok(Vec::new()),
        };
        let waiting = Waiting { bytes: framed.to_vec(), handles: handles?, sent };
        self.cost += waiting.cost();
        self.waiting.push_back(waiting);
        Ok(())
    }

    /// Sends messages that wait. Returns true if none is left.
    pub(crate) fn flush(&mut self, socket: &Socket) -> io::Result<bool> {
        while let Some(first) = self.waiting.front_mut() {
            let handles: Vec<_> = first.handles.iter().map(AsFd::as_fd).collect();
            let sent = write(socket, &first.bytes[first.sent..], &handles)?;
            if sent == 0 {
                return Ok(false);
            }
            self.cost -= first.cost();
            first.handles.clear();
            first.sent += sent;
            if first.sent == first.bytes.len() {
                self.waiting.pop_front();
            } else {
                self.cost += first.cost();
            }
        }
        Ok(true)
    }
}

/// Writes as much as the socket takes. Returns 0 if it has no room.
fn write(socket: &Socket, bytes: &[u8], handles: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_MESSAGE_HANDLES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !handles.is_empty() && !control.push(SendAncillaryMessage::ScmRights(handles)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message has too many handles"));
    }
    loop {
        match sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Ok(sent) => return Ok(sent),
            Err(Errno::AGAIN) => return Ok(0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Bytes and descriptors that came, up to whole messages.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Space for what the socket has; empty before the first read.
    space: Vec<u8>,
    /// Of a stream: what came, from the byte `taken` on.
    bytes: Vec<u8>,
    taken: usize,
    handles: VecDeque<OwnedFd>,
    /// The socket has told that the peer is gone. What the peer sent before can still be read.
    is_reset: bool,
}

/// Result of [`Inbox::receive`].
#[derive(Debug)]
pub(crate) enum Received {
    Message(Message),
    /// Nothing is there now.
    Nothing,
    /// The peer has closed the connection.
    End,
}

impl Inbox {
    /// Reads the next message.
    pub(crate) fn receive(&mut self, socket: &Socket) -> io::Result<Received> {
        loop {
            let complete = if socket.is_stream { self.next_of_stream()? } else { None };
            if let Some(message) = complete {
                return Ok(Received::Message(message));
            }
            self.space.resize(MAX_MESSAGE_BYTES, 0);
            let (read, is_cut) = match self.read(socket) {
                Ok(result) => result,
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                Err(Errno::INTR) => continue,
                Err(Errno::CONNRESET) if !self.is_reset => {
                    self.is_reset = true;
                    continue;
                }
                Err(Errno::CONNRESET) => return Ok(Received::End),
                Err(error) => return Err(error.into()),
            };
            // The space for handles is rounded up.
            if is_cut || !socket.is_stream && self.handles.len() > MAX_MESSAGE_HANDLES {
                return Err(invalid(ABOVE_LIMIT));
            }
            if read == 0 {
                return match self.bytes.len() == self.taken {
                    true => Ok(Received::End),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
            if socket.is_stream {
                self.bytes.drain(..self.taken);
                self.taken = 0;
                self.bytes.extend_from_slice(&self.space[..read]);
                if self.handles.len() > MAX_WAITING_HANDLES {
                    return Err(invalid(WITHOUT_MESSAGE));
                }
            } else {
                return Ok(Received::Message(Message {
                    bytes: self.space[..read].to_vec(),
                    handles: self.handles.drain(..).collect(),
                }));
            }
        }
    }

    /// Returns the bytes that came, and if something was cut off.
    fn read(&mut self, socket: &Socket) -> Result<(usize, bool), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_MESSAGE_HANDLES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let result = recvmsg(socket, &mut [IoSliceMut::new(&mut self.space)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(handles) = message {
                self.handles.extend(handles);
            }
        }
        Ok((result.bytes, result.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)))
    }

    fn next_of_stream(&mut self) -> io::Result<Option<Message>> {
        let rest = &self.bytes[self.taken..];
        if rest.is_empty() && !self.handles.is_empty() {
            return Err(invalid(WITHOUT_MESSAGE));
        }
        let Some(prefix) = rest.first_chunk::<PREFIX>() else { return Ok(None) };
        let [l0, l1, l2, l3, h0, h1, h2, h3] = *prefix;
        let length = usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).unwrap_or(usize::MAX);
        let handles = usize::try_from(u32::from_le_bytes([h0, h1, h2, h3])).unwrap_or(usize::MAX);
        if length > MAX_MESSAGE_BYTES || handles > MAX_MESSAGE_HANDLES {
            return Err(invalid(ABOVE_LIMIT));
        }
        // They come with the first byte of their message.
        if self.handles.len() < handles {
            return Err(invalid("the message lacks handles"));
        }
        let Some(bytes) = rest.get(PREFIX..PREFIX + length) else {
            // A read ends at the message whose handles it brings: these are of no later message.
            return if self.handles.len() > handles { Err(invalid(WITHOUT_MESSAGE)) } else { Ok(None) };
        };
        let bytes = bytes.to_vec();
        self.taken += PREFIX + length;
        Ok(Some(Message { bytes, handles: self.handles.drain(..handles).collect() }))
    }
}

const ABOVE_LIMIT: &str = "the message is longer, or has more handles, than the limit";

const WITHOUT_MESSAGE: &str = "handles came without a message that announces them";

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
