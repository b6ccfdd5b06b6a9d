//! A server on loopback for the one user who started it.

mod activity;
mod connection;
mod peer_user;
mod places;

pub use activity::Activity;

use core::time::Duration;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::peer_user::TrustedUsers;
use self::places::Places;
use crate::Error;
use crate::http::{Answer, Request};

/// Time between two looks at the activity.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Time for which the server waits after an error of the system, such as too many descriptors.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// The answers of a server.
pub trait Site: Send + Sync + 'static {
    /// Answers a request. It may come from any program of this user, and from any web page.
    fn answer(&self, request: &Request) -> Answer;
}

/// A server. It listens from its creation on.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    activity: Activity,
}

impl Server {
    /// Listens at an address of loopback. The port 0 stands for a free one.
    ///
    /// # Errors
    ///
    /// The address is not of loopback, or cannot be had.
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        let failed = |source| Error::Listen { address, source };
        if !address.ip().is_loopback() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not an address of loopback")));
        }
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let addresses = vec![listener.local_addr().map_err(failed)?];
        Ok(Self { listeners: vec![listener], addresses, activity: Activity::new() })
    }

    /// Listens at a port of 127.0.0.1, and at that of `::1` if this machine has it.
    ///
    /// # Errors
    ///
    /// The port of 127.0.0.1 cannot be had, or another program has that of `::1`.
    pub fn bind_both(port: u16) -> Result<Self, Error> {
        let mut server = Self::bind((Ipv4Addr::LOCALHOST, port).into())?;
        match Self::bind((Ipv6Addr::LOCALHOST, server.address().port()).into()) {
            Ok(other) => {
                server.listeners.extend(other.listeners);
                server.addresses.extend(other.addresses);
            }
            Err(error @ Error::Listen { .. }) if is_in_use(&error) => return Err(error),
            // There is no IPv6.
            Err(_) => {}
        }
        Ok(server)
    }

    /// The first address at which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The connections and deliveries so far.
    #[must_use]
    pub fn activity(&self) -> Activity {
        self.activity.clone()
    }

    /// Serves until `is_over` returns true, or `stop` becomes readable. Looks a few times in a
    /// second.
    ///
    /// # Errors
    ///
    /// The system cannot wait for connections.
    pub fn serve(
        self,
        site: impl Site,
        stop: BorrowedFd<'_>,
        mut is_over: impl FnMut(&Activity, Instant) -> bool,
    ) -> Result<(), Error> {
        let site: Arc<dyn Site> = Arc::new(site);
        let users = TrustedUsers::of_this_process();
        let places = Places::new();
        let timeout = Timespec::try_from(LOOK_EVERY).expect("it is short");
        loop {
            let mut fds = vec![PollFd::from_borrowed_fd(stop, PollFlags::IN)];
            fds.extend(self.listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)));
            match poll(&mut fds, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::Wait(error.into())),
            }
            if !fds[0].revents().is_empty() || is_over(&self.activity, Instant::now()) {
                return Ok(());
            }
            for listener in &self.listeners {
                match listener.accept() {
                    Ok((stream, peer)) => self.admit(&stream, peer, &site, &users, &places),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // The client is gone already, or descriptors are short.
                    Err(_) => thread::sleep(AFTER_ERROR),
                }
            }
        }
    }

    /// Serves a connection in a thread of its own, if its user may connect.
    fn admit(&self, stream: &TcpStream, peer: SocketAddr, site: &Arc<dyn Site>, users: &TrustedUsers, places: &Places) {
        let Ok(here) = stream.local_addr() else { return };
        if !users.owns(peer, here) {
            return;
        }
        let (Ok(stream), Some(place)) = (stream.try_clone(), places.enter(stream)) else { return };
        let (site, activity) = (Arc::clone(site), self.activity.clone());
        // Without a thread, the connection ends, and its place is free.
        let _ = thread::Builder::new()
            .name("connection".to_owned())
            .spawn(move || connection::serve(stream, place, &*site, &activity));
    }
}

fn is_in_use(error: &Error) -> bool {
    matches!(error, Error::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_served() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let error = Server::bind(address.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains("it is not an address of loopback"), "{error}");
        }
        assert!(Server::bind("127.3.4.5:0".parse().unwrap()).unwrap().address().ip().is_loopback());
    }

    #[test]
    fn a_port_that_is_in_use_is_named() {
        let first = Server::bind_both(0).unwrap();
        let error = Server::bind_both(first.address().port()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on {}: ", first.address())), "{error}");
    }
}
