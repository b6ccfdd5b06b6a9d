//! Descriptors that make trouble for the program that handles them.

use std::io::{ErrorKind, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

/// TCP sockets with unsent data and `SO_LINGER`: closing one blocks until the other end, which is
/// kept here, reads or goes away.
pub(crate) struct Lingering {
    listener: TcpListener,
    other_ends: Vec<TcpStream>,
}

impl Lingering {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        Self { listener, other_ends: Vec::new() }
    }

    /// A socket whose last `close` blocks for an hour.
    pub(crate) fn socket(&mut self) -> OwnedFd {
        let address = self.listener.local_addr().expect("an address");
        let mut socket = TcpStream::connect(address).expect("somebody listens");
        self.other_ends.push(self.listener.accept().expect("somebody connects").0);
        rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::from_secs(3600))).expect("an option");
        socket.set_nonblocking(true).expect("a flag");
        loop {
            match socket.write(&[0; 65536]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        socket.into()
    }

    pub(crate) fn sockets(&mut self, count: usize) -> Vec<OwnedFd> {
        (0..count).map(|_| self.socket()).collect()
    }
}

/// All of them, to be sent.
pub(crate) fn borrowed(fds: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    fds.iter().map(|fd| fd.as_fd()).collect()
}
