//! Sockets and their addresses, as the kernel sees them.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::vsock;
use crate::address::{Address, Family};
use crate::error::Error;

/// Resolved address, ready for `bind` and `connect`.
pub(super) enum SockAddr {
    Unix(SocketAddrUnix),
    Ip(SocketAddr),
    Vsock(vsock::SockAddrVm),
}

impl SockAddr {
    pub(super) fn new(address: &Address) -> Result<Self, Error> {
        let err = |e: Errno| Error::Socket { action: "use", address: address.clone(), source: e.into() };
        Ok(match address {
            Address::Path(p) => Self::Unix(SocketAddrUnix::new(p.as_path()).map_err(err)?),
            Address::Abstract(name) => Self::Unix(SocketAddrUnix::new_abstract_name(name).map_err(err)?),
            Address::Vsock { cid, port } => Self::Vsock(vsock::SockAddrVm::new(*cid, *port)),
            Address::Inet { .. } | Address::Inet6 { .. } => Self::Ip(address.resolve()?),
        })
    }

    pub(super) fn domain(&self) -> AddressFamily {
        match self {
            Self::Unix(_) => AddressFamily::UNIX,
            Self::Ip(SocketAddr::V4(_)) => AddressFamily::INET,
            Self::Ip(SocketAddr::V6(_)) => AddressFamily::INET6,
            Self::Vsock(_) => AddressFamily::VSOCK,
        }
    }

    pub(super) fn apply_connect(&self, fd: &OwnedFd) -> rustix::io::Result<()> {
        match self {
            Self::Unix(a) => net::connect(fd, a),
            Self::Ip(a) => net::connect(fd, a),
            Self::Vsock(a) => net::connect(fd, a),
        }
    }
}

/// Connects, and repeats the call after signals. An interrupted attempt continues in the
/// background, and another call returns its result.
pub(super) fn connect_retrying(fd: &OwnedFd, target: &SockAddr) -> rustix::io::Result<()> {
    loop {
        match target.apply_connect(fd) {
            Err(Errno::INTR | Errno::ALREADY) => {}
            Err(Errno::ISCONN) => return Ok(()),
            other => return other,
        }
    }
}

pub(super) fn open(domain: AddressFamily, flags: SocketFlags) -> rustix::io::Result<OwnedFd> {
    net::socket_with(domain, SocketType::STREAM, flags, None)
}

pub(super) fn configure(fd: &OwnedFd, family: Family) -> rustix::io::Result<()> {
    match family {
        Family::Inet | Family::Inet6 => sockopt::set_tcp_nodelay(fd, true),
        // An urgent byte is received like any other. Otherwise the kernel skips it, and closes the
        // descriptors that came with it in the receiving thread, which can block.
        Family::Unix => sockopt::set_socket_oobinline(fd, true),
        Family::Vsock => Ok(()),
    }
}

/// Sets the flags of a descriptor that other code made.
pub(super) fn adopt(fd: &OwnedFd) -> rustix::io::Result<()> {
    rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(fd, true)
}

pub(super) fn family_of(fd: &OwnedFd) -> Result<Family, Error> {
    if sockopt::socket_type(fd)? != SocketType::STREAM {
        return Err(Errno::PROTOTYPE.into());
    }
    match sockopt::socket_domain(fd)? {
        AddressFamily::UNIX => Ok(Family::Unix),
        AddressFamily::INET => Ok(Family::Inet),
        AddressFamily::INET6 => Ok(Family::Inet6),
        AddressFamily::VSOCK => Ok(Family::Vsock),
        _ => Err(Errno::AFNOSUPPORT.into()),
    }
}

pub(super) fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}
