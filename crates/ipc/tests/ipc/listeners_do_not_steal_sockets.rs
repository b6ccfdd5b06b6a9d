//! wire-protocol.md §1: binding, connecting, and the treatment of a socket file that exists
//! already.

use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::time::Duration;

use esatto_ipc::{Address, Error, Family, Listener, Stream};

use crate::skip::{Skip, skip};

const SOON: Duration = Duration::from_secs(10);

/// Directory of one test, removed at its end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("esatto-ipc-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    pub(crate) fn address(&self, name: &str) -> Address {
        Address::Path(self.0.join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Accepts a connection that is or will be made.
pub(crate) fn accept(listener: &Listener) -> Stream {
    loop {
        if let Some(stream) = listener.accept().unwrap() {
            return stream;
        }
        let mut fds = [rustix::event::PollFd::new(listener, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, None).unwrap();
    }
}

fn talk(listener: &Listener, address: &Address) {
    let client = Stream::connect(address, SOON).unwrap();
    let server = accept(listener);
    assert_eq!((client.family(), server.family()), (address.family(), address.family()));
    assert_eq!(client.send(b"hello", None).unwrap(), 5);
    let mut buf = [0; 16];
    let received = loop {
        if let Some(received) = server.recv(&mut buf).unwrap() {
            break received;
        }
        let mut fds = [rustix::event::PollFd::new(&server, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, None).unwrap();
    };
    assert_eq!(&buf[..received.len], b"hello");
    for fd in [client.as_fd(), server.as_fd(), listener.as_fd()] {
        assert!(rustix::io::fcntl_getfd(fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        assert!(rustix::fs::fcntl_getfl(fd).unwrap().contains(rustix::fs::OFlags::NONBLOCK));
    }
}

#[test]
fn a_path_socket_works_and_is_removed_on_request() {
    let scratch = Scratch::new("path");
    let address = scratch.address("sock");
    let listener = Listener::bind(&address).unwrap();
    assert!(listener.accept().unwrap().is_none());
    talk(&listener, &address);
    listener.unlink();
    assert!(!address.as_path().unwrap().exists());
}

#[test]
fn a_stale_socket_is_replaced() {
    let scratch = Scratch::new("stale");
    let address = scratch.address("sock");
    drop(Listener::bind(&address).unwrap());
    assert!(std::fs::symlink_metadata(address.as_path().unwrap()).unwrap().file_type().is_socket());
    let listener = Listener::bind(&address).unwrap();
    talk(&listener, &address);
}

#[test]
fn a_live_socket_is_not_stolen() {
    let scratch = Scratch::new("live");
    let address = scratch.address("sock");
    let first = Listener::bind(&address).unwrap();
    let error = Listener::bind(&address).unwrap_err();
    assert!(matches!(&error, Error::AddressInUse(a) if *a == address), "{error}");
    assert!(error.to_string().contains("already listening"), "{error}");
    // The first listener has only the probe of the second one in its queue.
    drop(accept(&first));
    talk(&first, &address);
}

#[test]
fn another_kind_of_file_is_not_replaced() {
    let scratch = Scratch::new("file");
    let address = scratch.address("file");
    std::fs::write(address.as_path().unwrap(), "precious").unwrap();
    let error = Listener::bind(&address).unwrap_err();
    assert!(matches!(error, Error::NotASocket(_)), "{error}");
    assert_eq!(std::fs::read_to_string(address.as_path().unwrap()).unwrap(), "precious");
}

#[test]
fn unlink_keeps_the_socket_of_a_successor() {
    let scratch = Scratch::new("successor");
    let address = scratch.address("sock");
    let first = Listener::bind(&address).unwrap();
    std::fs::remove_file(address.as_path().unwrap()).unwrap();
    let second = Listener::bind(&address).unwrap();
    first.unlink();
    talk(&second, &address);
}

#[test]
fn abstract_sockets_work_and_are_not_stolen() {
    let address = Address::parse(format!("@esatto-ipc-test-{}", std::process::id())).unwrap();
    let listener = Listener::bind(&address).unwrap();
    talk(&listener, &address);
    assert!(matches!(Listener::bind(&address), Err(Error::AddressInUse(_))));
}

#[test]
fn tcp_sockets_work() {
    let any: Address = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(&any).unwrap();
    let address = Address::Inet { host: "127.0.0.1".into(), port: listener.port().unwrap() };
    talk(&listener, &address);
    let client = Stream::connect(&address, SOON).unwrap();
    assert_eq!(client.local_host().as_deref(), Some("127.0.0.1"));
    assert_eq!(client.peer_credentials(), None);
    assert!(rustix::net::sockopt::tcp_nodelay(&client).unwrap());
}

#[test]
fn tcp_sockets_work_over_ipv6() {
    skip(|| {
        let listener =
            Listener::bind(&"[::1]:0".parse().unwrap()).map_err(|error| Skip(format!("no IPv6: {error}")))?;
        assert_eq!(listener.family(), Family::Inet6);
        talk(&listener, &Address::Inet6 { host: "::1".into(), port: listener.port().unwrap() });
        Ok(())
    });
}

#[test]
fn a_missing_listener_is_an_error_with_the_address() {
    let scratch = Scratch::new("nobody");
    let address = scratch.address("sock");
    let error = Stream::connect(&address, SOON).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    drop(Listener::bind(&address).unwrap());
    assert!(Stream::connect(&address, SOON).is_err());
}

#[test]
fn a_full_queue_ends_in_a_timeout() {
    let scratch = Scratch::new("full");
    let address = scratch.address("sock");
    let path = address.as_path().unwrap();
    let fd = rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::bind(&fd, &rustix::net::SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::listen(&fd, 0).unwrap();
    let _waiting = Stream::connect(&address, SOON).unwrap();
    let error = Stream::connect(&address, Duration::from_millis(20)).unwrap_err();
    assert!(matches!(&error, Error::Socket { source, .. } if source.kind() == std::io::ErrorKind::TimedOut), "{error}");
    // A service that is only busy still owns its socket.
    assert!(matches!(Listener::bind(&address), Err(Error::AddressInUse(_))));
}

#[test]
fn an_inherited_socket_is_taken_over() {
    let scratch = Scratch::new("inherited");
    let address = scratch.address("sock");
    let std_listener = std::os::unix::net::UnixListener::bind(address.as_path().unwrap()).unwrap();
    let listener = Listener::from_fd(std_listener.into()).unwrap();
    assert_eq!(*listener.address(), address);
    talk(&listener, &address);
    listener.unlink();
    assert!(address.as_path().unwrap().exists(), "it is whoever made it who removes it");
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(Listener::from_fd(file.into()).is_err());
    let (_, unbound) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(Listener::from_fd(unbound.into()).is_err());
}

#[test]
fn the_addresses_of_inherited_sockets_are_known() {
    let abstract_name = format!("@esatto-ipc-inherited-{}", std::process::id());
    for text in [&abstract_name, "127.0.0.1:0", "[::1]:0"] {
        let Ok(first) = Listener::bind(&text.parse().unwrap()) else { continue }; // no IPv6 on this machine
        let second = Listener::from_fd(first.as_fd().try_clone_to_owned().unwrap()).unwrap();
        let want = text.replace(":0", &format!(":{}", first.port().unwrap_or_default()));
        assert_eq!(second.address().to_string(), want);
        talk(&second, second.address());
    }
}

#[test]
fn of_many_services_that_replace_a_stale_socket_one_gets_it() {
    let scratch = Scratch::new("race");
    let address = scratch.address("sock");
    for _ in 0..20 {
        drop(Listener::bind(&address).unwrap());
        let start = std::sync::Barrier::new(8);
        let results: Vec<_> = std::thread::scope(|scope| {
            let bind = || {
                start.wait();
                Listener::bind(&address)
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(bind)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (winners, losers): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        assert_eq!(winners.len(), 1);
        assert!(losers.iter().all(|lost| matches!(lost, Err(Error::AddressInUse(_)))), "{losers:?}");
        // Clients connect to that service.
        let winner = winners.into_iter().next().unwrap().unwrap();
        while let Some(_probe) = winner.accept().unwrap() {}
        talk(&winner, &address);
    }
}

#[test]
fn a_locked_folder_does_not_keep_a_service_from_starting() {
    let scratch = Scratch::new("locked");
    let address = scratch.address("sock");
    let folder = std::fs::File::open(address.as_path().unwrap().parent().unwrap()).unwrap();
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive).unwrap();
    talk(&Listener::bind(&address).unwrap(), &address);
}

#[test]
fn no_client_can_connect_before_the_file_is_prepared() {
    let scratch = Scratch::new("prepared");
    let address = scratch.address("sock");
    let listener = Listener::bind_with(&address, |path| {
        assert!(path.exists());
        assert!(Stream::connect(&address, SOON).is_err());
        Ok::<_, Error>(())
    });
    talk(&listener.unwrap(), &address);
    std::fs::remove_file(address.as_path().unwrap()).unwrap();
    let failed = Listener::bind_with(&address, |_| Err(Error::Timeout));
    assert!(matches!(failed, Err(Error::Timeout)));
    assert!(!address.as_path().unwrap().exists());
}

#[test]
fn vsock_sockets_work_where_the_kernel_has_a_loopback() {
    skip(|| {
        let port = 0x4000_0000 | std::process::id();
        // Context id -1 stands for every id of this machine. Its own id, 1, needs a loopback
        // module.
        let listener = Listener::bind(&Address::Vsock { cid: u32::MAX, port })
            .map_err(|error| Skip(format!("no vsock loopback: {error}")))?;
        assert_eq!(listener.family(), Family::Vsock);
        let copy = Listener::from_fd(listener.as_fd().try_clone_to_owned().unwrap()).unwrap();
        assert_eq!((copy.family(), copy.address()), (Family::Vsock, listener.address()), "the kernel agrees");
        let address = Address::Vsock { cid: 1, port };
        let _client = Stream::connect(&address, SOON).map_err(|error| Skip(format!("no vsock loopback: {error}")))?;
        assert_eq!(accept(&listener).local_host().as_deref(), Some("vsock://1"));
        talk(&listener, &address);
        Ok(())
    });
}
