//! [`Stream`]: a connected socket.

use core::mem::MaybeUninit;
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, RecvMsg, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sockopt,
};

use super::credentials::{Credentials, peer_credentials};
#[cfg(feature = "server")]
use super::poll::{PollFd, poll};
use super::socket::{SockAddr, adopt, configure, connect_retrying, family_of, open, retry};
use super::vsock;
use crate::address::{Address, Family};
use crate::error::Error;
use crate::foreign_fd::{Admission, Disposal, ForeignFd};
#[cfg(feature = "simulated")]
use crate::simulated::Link;

/// Largest number of descriptors in one message that a connection accepts: the first is kept, the
/// second closed (wire-protocol.md §6).
const MAX_DESCRIPTORS: usize = 2;
/// Largest number of descriptors that the kernel accepts in one message (`SCM_MAX_FD`).
///
/// The buffer has room for all of them. Without room, the kernel would close descriptors in the
/// receiving thread.
const MAX_DESCRIPTORS_OF_KERNEL: usize = 253;
/// Size of the buffer for ancillary data: one `SCM_RIGHTS` message.
const CONTROL_LEN: usize = rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS_OF_KERNEL));

#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; CONTROL_LEN]);

impl Control {
    const fn new() -> Self {
        Self([MaybeUninit::uninit(); CONTROL_LEN])
    }
}

/// Result of one [`Stream::recv`].
#[derive(Debug)]
pub struct Received {
    /// Number of bytes; 0 at the end of the stream.
    pub len: usize,
    /// Descriptor that came with the bytes, close-on-exec. Of two, the first.
    pub fd: Option<ForeignFd>,
}

/// Connected stream socket; non-blocking and close-on-exec.
#[derive(Debug)]
pub struct Stream {
    /// `None` only in `drop`, and if it is simulated.
    fd: Option<OwnedFd>,
    family: Family,
    /// Closes descriptors of the peer, and this socket. Without it, they are closed here.
    disposal: Option<Arc<dyn Disposal>>,
    /// In place of `fd`.
    #[cfg(feature = "simulated")]
    link: Option<Box<dyn Link>>,
}

impl Stream {
    /// Connects to a listening socket. Waits at most `timeout`.
    ///
    /// A unix socket answers at once unless the service's queue of new connections is full.
    ///
    /// # Errors
    ///
    /// [`Error::Socket`] with the reason, [`Error::Address`] if a host cannot be resolved.
    pub fn connect(address: &Address, timeout: Duration) -> Result<Self, Error> {
        let err = |e: Errno| Error::Socket { action: "connect to", address: address.clone(), source: e.into() };
        let target = SockAddr::new(address)?;
        // Blocking while connecting: the send timeout also limits `connect`, for unix sockets and
        // TCP.
        let fd = open(target.domain(), SocketFlags::CLOEXEC).map_err(err)?;
        let timeout = timeout.max(Duration::from_millis(1));
        sockopt::set_socket_timeout(&fd, sockopt::Timeout::Send, Some(timeout)).map_err(err)?;
        connect_retrying(&fd, &target).map_err(|e| match e {
            Errno::AGAIN | Errno::INPROGRESS => err(Errno::TIMEDOUT),
            e => err(e),
        })?;
        sockopt::set_socket_timeout(&fd, sockopt::Timeout::Send, None).map_err(err)?;
        rustix::io::ioctl_fionbio(&fd, true).map_err(err)?;
        let family = address.family();
        configure(&fd, family).map_err(err)?;
        Ok(Self::new(fd, family))
    }

    /// Makes two unix stream sockets that are connected to each other.
    ///
    /// # Errors
    ///
    /// If the process has no descriptors left.
    pub fn pair() -> Result<(Self, Self), Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (a, b) = net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        configure(&a, Family::Unix)?;
        configure(&b, Family::Unix)?;
        Ok((Self::new(a, Family::Unix), Self::new(b, Family::Unix)))
    }

    /// Takes over a connected stream socket. Sets it non-blocking and close-on-exec.
    ///
    /// # Errors
    ///
    /// If it is not a stream socket of a known family.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, Error> {
        let family = family_of(&fd)?;
        adopt(&fd)?;
        configure(&fd, family)?;
        Ok(Self::new(fd, family))
    }

    pub(super) fn new(fd: OwnedFd, family: Family) -> Self {
        Self {
            fd: Some(fd),
            family,
            disposal: None,
            #[cfg(feature = "simulated")]
            link: None,
        }
    }

    /// Makes a stream of one end of a made-up connection. It has no descriptor: whatever waits for
    /// one panics.
    #[cfg(feature = "simulated")]
    #[doc(hidden)]
    #[must_use]
    pub fn simulated(link: Box<dyn Link>) -> Self {
        Self { fd: None, family: Family::Unix, disposal: None, link: Some(link) }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("it is a socket, and taken once, by value").as_fd()
    }

    /// Sets the disposal that closes descriptors of the peer, and this socket when it is dropped.
    ///
    /// Delete a socket from its epoll set before dropping it: it stays open for some time after its
    /// drop.
    pub fn set_disposal(&mut self, disposal: Arc<dyn Disposal>) {
        self.disposal = Some(disposal);
    }

    /// Returns the kind of socket.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Writes as many of `bytes` as the socket accepts, with `fd` attached to the first byte.
    ///
    /// If any byte was written, the descriptor was sent with it. Never raises `SIGPIPE`.
    ///
    /// # Errors
    ///
    /// [`Error::Disconnected`] if the peer closed; [`Error::DescriptorsUnsupported`] if there is an
    /// `fd` and this is not a unix socket. `Ok(0)` means that the socket accepts nothing now.
    pub fn send(&self, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> Result<usize, Error> {
        if bytes.is_empty() {
            return Ok(0);
        }
        #[cfg(feature = "simulated")]
        if let Some(link) = &self.link {
            return link.send(bytes, fd);
        }
        if fd.is_some() && self.family != Family::Unix {
            return Err(Error::DescriptorsUnsupported);
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let result = match fd {
            None => retry(|| net::send(self.fd(), bytes, flags)),
            Some(fd) => {
                let mut control = Control::new();
                let fds = [fd];
                retry(|| {
                    let mut ancillary = SendAncillaryBuffer::new(&mut control.0);
                    let pushed = ancillary.push(SendAncillaryMessage::ScmRights(&fds));
                    debug_assert!(pushed, "the control buffer has room for one descriptor");
                    net::sendmsg(self.fd(), &[IoSlice::new(bytes)], &mut ancillary, flags)
                })
            }
        };
        match result {
            Ok(n) => Ok(n),
            Err(Errno::AGAIN) => Ok(0),
            Err(Errno::PIPE | Errno::CONNRESET) => Err(Error::Disconnected),
            Err(e) => Err(e.into()),
        }
    }

    /// Reads the bytes that have arrived, up to the size of `buf`, and at most one descriptor.
    ///
    /// Of two descriptors the first is kept and the second closed.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyDescriptors`] for three or more, all of which are closed.
    /// [`Error::DescriptorRefused`] if the peer may pass none; the descriptor stays in the kernel.
    /// Else the error of the system call. A reset is reported as the end of the stream. `Ok(None)`
    /// means that nothing has arrived, or a descriptor that must wait.
    pub fn recv(&self, buf: &mut [u8]) -> Result<Option<Received>, Error> {
        #[cfg(feature = "simulated")]
        if let Some(link) = &self.link {
            let received = |(len, fd): (_, Option<_>)| Received { len, fd: fd.map(ForeignFd::from) };
            return Ok(link.recv(buf).map(received));
        }
        let admission = self.disposal.as_ref().map_or(Admission::Granted, |disposal| disposal.admission());
        let len = match admission {
            Admission::Granted => buf.len(),
            Admission::Later | Admission::Denied => match self.peek(buf) {
                Ok(Some(len)) => len,
                Ok(None) => return Ok(None),
                Err(Error::DescriptorRefused) if admission == Admission::Later => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        let mut control = Control::new();
        let mut ancillary = RecvAncillaryBuffer::new(&mut control.0);
        let Some(message) = self.receive(&mut buf[..len], &mut ancillary, RecvFlags::CMSG_CLOEXEC)? else {
            return Ok(None);
        };
        let (mut first, mut count) = (None, 0);
        for part in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = part {
                for fd in fds {
                    let fd = ForeignFd::new(fd, self.disposal.clone());
                    count += 1;
                    // The second and later ones are dropped here.
                    first.get_or_insert(fd);
                }
            }
        }
        // Truncated although there is room for all: this process has no descriptors left.
        if count > MAX_DESCRIPTORS || message.flags.contains(ReturnFlags::CTRUNC) {
            return Err(Error::TooManyDescriptors);
        }
        Ok(Some(Received { len: message.bytes, fd: first }))
    }

    /// Returns true if the next descriptor must wait ([`Admission::Later`]). The socket is readable
    /// during that time, so a loop must not wait for it.
    pub fn is_held_up(&self) -> bool {
        let admission = self.disposal.as_ref().map(|disposal| disposal.admission());
        admission == Some(Admission::Later) && matches!(self.peek(&mut [0]), Err(Error::DescriptorRefused))
    }

    /// Returns how many bytes can be received without a descriptor.
    fn peek(&self, buf: &mut [u8]) -> Result<Option<usize>, Error> {
        let message = self.receive(buf, &mut RecvAncillaryBuffer::default(), RecvFlags::PEEK)?;
        match message {
            Some(message) if message.flags.contains(ReturnFlags::CTRUNC) => Err(Error::DescriptorRefused),
            message => Ok(message.map(|message| message.bytes)),
        }
    }

    /// Returns true if the peer has closed the connection. A peer that can still read has not.
    #[cfg(feature = "server")]
    pub(crate) fn is_hung_up(&self) -> bool {
        #[cfg(feature = "simulated")]
        if self.link.is_some() {
            return false;
        }
        let mut socket = [PollFd::new(self.fd(), false)];
        poll(&mut socket, Some(Duration::ZERO)).is_ok() && socket[0].is_hung_up()
    }

    /// Calls `recvmsg`. The end of the stream and a reset give 0 bytes.
    fn receive(
        &self,
        buf: &mut [u8],
        ancillary: &mut RecvAncillaryBuffer<'_>,
        flags: RecvFlags,
    ) -> Result<Option<RecvMsg>, Error> {
        let flags = flags | RecvFlags::DONTWAIT;
        match retry(|| net::recvmsg(self.fd(), &mut [IoSliceMut::new(buf)], ancillary, flags)) {
            Ok(message) => Ok(Some(message)),
            Err(Errno::AGAIN) => Ok(None),
            Err(Errno::CONNRESET) => Ok(Some(RecvMsg { bytes: 0, flags: ReturnFlags::empty(), address: None })),
            Err(e) => Err(e.into()),
        }
    }

    /// Returns the credentials of the peer of a unix socket; `None` for other kinds.
    pub fn peer_credentials(&self) -> Option<Credentials> {
        #[cfg(feature = "simulated")]
        if self.link.is_some() {
            return None;
        }
        (self.family == Family::Unix).then(|| peer_credentials(self.fd())).flatten()
    }

    /// Returns the local address without its port, which replaces an empty machine id hint
    /// (wire-protocol.md §7).
    ///
    /// Returns `None` for unix sockets.
    pub fn local_host(&self) -> Option<String> {
        let any = net::getsockname(self.fd()).ok()?;
        match self.family {
            Family::Unix => None,
            Family::Inet | Family::Inet6 => match SocketAddr::try_from(any).ok()? {
                SocketAddr::V4(a) => Some(a.ip().to_string()),
                SocketAddr::V6(a) => Some(format!("[{}]", a.ip())),
            },
            Family::Vsock => vsock::cid_and_port(&any).map(|(cid, _)| format!("vsock://{cid}")),
        }
    }

    /// Returns the address of the peer with its port, for log lines.
    ///
    /// Returns `None` for unix sockets, and if the peer has closed the connection.
    pub fn peer_address(&self) -> Option<String> {
        let any = net::getpeername(self.fd()).ok()??;
        match self.family {
            Family::Unix => None,
            Family::Inet | Family::Inet6 => Some(SocketAddr::try_from(any).ok()?.to_string()),
            Family::Vsock => vsock::cid_and_port(&any).map(|(cid, port)| format!("vsock://{cid}:{port}")),
        }
    }

    /// Closes the direction to the peer, which sees the end of the stream after everything that was
    /// sent before.
    pub fn shutdown_write(&self) {
        // The only failure is that the connection is gone already.
        let _ = net::shutdown(self.fd(), net::Shutdown::Write);
    }

    /// Closes the direction from the peer. Bytes that have arrived can still be read, and then the
    /// end of the stream. The peer of a unix socket can send nothing more.
    pub fn shutdown_read(&self) {
        // The only failure is that the connection is gone already.
        let _ = net::shutdown(self.fd(), net::Shutdown::Read);
    }

    /// Closes both directions. The peer sees the end of the stream, and both sides are woken up.
    pub fn shutdown(&self) {
        #[cfg(feature = "simulated")]
        if let Some(link) = &self.link {
            return link.shutdown();
        }
        // The only failure is that the connection is gone already.
        let _ = net::shutdown(self.fd(), net::Shutdown::Both);
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}

impl From<Stream> for OwnedFd {
    fn from(mut stream: Stream) -> Self {
        stream.fd.take().expect("it is taken once, by value")
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let (Some(fd), Some(disposal)) = (self.fd.take(), &self.disposal) {
            // The peer sees the end now, even if closing the socket takes long.
            let _ = net::shutdown(&fd, net::Shutdown::Both);
            disposal.close_connection(fd);
        }
    }
}
