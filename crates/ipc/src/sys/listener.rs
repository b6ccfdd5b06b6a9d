//! [`Listener`]: a listening socket, which is made without taking an address away from another
//! service, or inherited.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, sockopt};

use super::credentials::own_users;
use super::socket::{SockAddr, adopt, configure, family_of, open, retry};
use super::stream::Stream;
use super::vsock;
use crate::address::{Address, Family};
use crate::error::Error;

/// Length of the queue of connections that were not accepted yet. The kernel cuts it to its own
/// maximum.
const BACKLOG: i32 = 4096;

/// Longest wait for another service that makes its sockets in the same folder. A service takes
/// microseconds. A process that holds the lock for longer is no service.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Listening stream socket; non-blocking and close-on-exec.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    family: Family,
    address: Address,
    /// Device and inode of the socket file that was created, so that no other file is removed.
    inode: Option<(u64, u64)>,
}

impl Listener {
    /// Binds and listens.
    ///
    /// A socket file without a listener is replaced. A socket file with a listener is not. In
    /// upstream, the second service takes the address away from the first.
    ///
    /// # Errors
    ///
    /// [`Error::AddressInUse`] if another process accepts connections there, [`Error::NotASocket`]
    /// if the path is a file of another kind, [`Error::Socket`] with the reason otherwise.
    pub fn bind(address: &Address) -> Result<Self, Error> {
        Self::bind_with(address, |_| Ok(()))
    }

    /// As [`bind`](Self::bind). If the socket has a file, calls `prepare` with it before any client
    /// can connect.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind), and errors of `prepare`, after which the file is removed.
    pub fn bind_with<E: From<Error>>(
        address: &Address,
        prepare: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Self, E> {
        let err = |e: Errno| match e {
            Errno::ADDRINUSE => Error::AddressInUse(address.clone()),
            e => Error::Socket { action: "listen on", address: address.clone(), source: e.into() },
        };
        let target = SockAddr::new(address)?;
        // The lock is held until the end of this function. No other service may check for a stale
        // file until the new socket would answer that check.
        let _lock = address.as_path().and_then(lock_folder_of);
        if let Address::Path(path) = address {
            remove_stale(path, address, &target)?;
        }
        let family = address.family();
        let fd = open(target.domain(), SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).map_err(err)?;
        if family != Family::Unix {
            sockopt::set_socket_reuseaddr(&fd, true).map_err(err)?;
        }
        bind(&fd, &target).map_err(err)?;
        let inode = address.as_path().and_then(|path| inode_of(path).ok());
        let listener = Self { fd, family, address: address.clone(), inode };
        let prepared = address.as_path().map_or(Ok(()), prepare);
        let listens = prepared.and_then(|()| Ok(net::listen(&listener.fd, BACKLOG).map_err(err)?));
        if let Err(e) = listens {
            listener.unlink();
            return Err(e);
        }
        Ok(listener)
    }

    /// Takes over a socket that another process bound, such as a service manager. Its file is never
    /// removed.
    ///
    /// # Errors
    ///
    /// If it is not a stream socket of a known family that is bound to an address.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, Error> {
        let family = family_of(&fd)?;
        let address = bound_address(&fd, family)?;
        adopt(&fd)?;
        if !sockopt::socket_acceptconn(&fd)? {
            net::listen(&fd, BACKLOG)?;
        }
        Ok(Self { fd, family, address, inode: None })
    }

    /// Accepts the next connection. Returns `None` if none waits.
    ///
    /// # Errors
    ///
    /// Most likely the process has no descriptors left. The connection then keeps waiting, so do
    /// not spin.
    pub fn accept(&self) -> Result<Option<Stream>, Error> {
        loop {
            return match net::accept_with(&self.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(fd) => {
                    configure(&fd, self.family)?;
                    Ok(Some(Stream::new(fd, self.family)))
                }
                Err(Errno::AGAIN) => Ok(None),
                // The client gave up between `connect` and now.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => continue,
                Err(e) => Err(e.into()),
            };
        }
    }

    /// Returns the address to which it was bound. For TCP with port 0, see [`Listener::port`].
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the kind of socket, which decides if shared memory can be used.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the TCP port.
    pub fn port(&self) -> Option<u16> {
        SocketAddr::try_from(net::getsockname(&self.fd).ok()?).ok().map(|a| a.port())
    }

    /// Removes the socket file, if it is still the one that this listener created.
    pub fn unlink(&self) {
        if let (Some(path), Some(inode)) = (self.address.as_path(), self.inode) {
            if inode_of(path).is_ok_and(|now| now == inode) {
                // Best effort at the end of a service: the next service replaces a stale file
                // anyway.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> Self {
        listener.fd
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn bind(fd: &OwnedFd, target: &SockAddr) -> rustix::io::Result<()> {
    match target {
        SockAddr::Unix(address) => net::bind(fd, address),
        SockAddr::Ip(address) => net::bind(fd, address),
        SockAddr::Vsock(address) => net::bind(fd, address),
    }
}

/// Returns the address of a socket that another process has bound.
fn bound_address(fd: &OwnedFd, family: Family) -> Result<Address, Error> {
    let any = net::getsockname(fd)?;
    let ip = || SocketAddr::try_from(any.clone()).ok();
    let address = match family {
        Family::Unix => SocketAddrUnix::try_from(any.clone()).ok().and_then(|unix| match unix.path_bytes() {
            Some(path) => Some(Address::Path(PathBuf::from(std::ffi::OsStr::from_bytes(path)))),
            None => unix.abstract_name().map(|name| Address::Abstract(name.to_vec())),
        }),
        Family::Inet => ip().map(|ip| Address::Inet { host: ip.ip().to_string(), port: ip.port() }),
        Family::Inet6 => ip().map(|ip| Address::Inet6 { host: ip.ip().to_string(), port: ip.port() }),
        Family::Vsock => vsock::cid_and_port(&any).map(|(cid, port)| Address::Vsock { cid, port }),
    };
    // A unix socket that was not bound has no name.
    address.ok_or_else(|| Errno::ADDRNOTAVAIL.into())
}

/// Keeps other services from making sockets in the folder of `path` until it is dropped.
///
/// Returns `None` if the folder cannot be opened, or the lock is not free soon. A lock of another
/// program must not keep a service from starting. Without the lock, of two services that start at
/// the same moment both might start.
fn lock_folder_of(path: &Path) -> Option<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let folder = File::open(folder).ok()?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(folder),
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            Err(_) => return None,
        }
    }
}

/// Removes a socket file without a listener. Returns an error for all other files.
fn remove_stale(path: &Path, address: &Address, target: &SockAddr) -> Result<(), Error> {
    let err = |action, source| Error::Socket { action, address: address.clone(), source };
    let owner = match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(err("examine", e)),
        Ok(meta) if meta.file_type().is_socket() => meta.uid(),
        // A link to a socket: the check of its listener decides. Any other file must not be
        // deleted.
        Ok(meta)
            if meta.file_type().is_symlink() && std::fs::metadata(path).map_or(true, |m| m.file_type().is_socket()) =>
        {
            meta.uid()
        }
        Ok(_) => return Err(Error::NotASocket(address.clone())),
    };
    let of_others = || Error::SocketOfOthers { address: address.clone(), uid: owner };
    let is_forbidden = |e: &io::Error| e.kind() == io::ErrorKind::PermissionDenied;
    let is_own = own_users().contains(&owner);
    let probe =
        open(AddressFamily::UNIX, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).map_err(|e| err("probe", e.into()))?;
    match retry(|| target.apply_connect(&probe)) {
        // EAGAIN: a process listens and is too busy to accept.
        Ok(()) | Err(Errno::AGAIN) => Err(Error::AddressInUse(address.clone())),
        Err(Errno::CONNREFUSED | Errno::NOENT) => match std::fs::remove_file(path) {
            Err(e) if is_forbidden(&e) && !is_own => Err(of_others()),
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(err("replace", e)),
            _ => Ok(()),
        },
        Err(Errno::ACCESS | Errno::PERM) if !is_own => Err(of_others()),
        // A socket of another type, or one that may not be opened: it may have a listener.
        Err(e) => Err(err("probe", e.into())),
    }
}

fn inode_of(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|m| (m.dev(), m.ino()))
}
