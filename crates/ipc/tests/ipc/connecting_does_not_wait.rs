//! Connections for event loops. They begin at once, and finish when the socket is writable.

use esatto_ipc::{Address, ConnectAttempt, Error, Listener};
use rustix::event::{PollFd, PollFlags, poll};

use crate::listeners_do_not_steal_sockets::{Scratch, accept};

fn await_writable(connecting: &ConnectAttempt) {
    poll(&mut [PollFd::new(connecting, PollFlags::OUT)], None).unwrap();
}

#[test]
fn an_attempt_with_a_listener_gives_a_stream() {
    let scratch = Scratch::new("connecting");
    let tcp = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let unix = Listener::bind(&scratch.address("s")).unwrap();
    let tcp_address: Address = format!("127.0.0.1:{}", tcp.port().unwrap()).parse().unwrap();
    for (listener, address) in [(tcp, tcp_address), (unix, scratch.address("s"))] {
        let connecting = ConnectAttempt::begin(&address).unwrap();
        await_writable(&connecting);
        let stream = connecting.finish().unwrap();
        assert_eq!(stream.family(), address.family());
        assert_eq!(stream.send(b"x", None).unwrap(), 1);
        let mut byte = [0; 2];
        let accepted = accept(&listener);
        poll(&mut [PollFd::new(&accepted, PollFlags::IN)], None).unwrap();
        assert_eq!(accepted.recv(&mut byte).unwrap().unwrap().len, 1);
    }
}

#[test]
fn an_attempt_without_a_listener_gives_an_error_with_the_address() {
    let scratch = Scratch::new("connecting-nobody");
    assert!(matches!(ConnectAttempt::begin(&scratch.address("none")), Err(Error::Socket { .. })));
    // A port that was free just before.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address: Address = format!("127.0.0.1:{port}").parse().unwrap();
    let refused = ConnectAttempt::begin(&address).and_then(|connecting| {
        await_writable(&connecting);
        connecting.finish()
    });
    let text = refused.unwrap_err().to_string();
    assert!(text.contains(&address.to_string()) && text.contains("refused"), "{text}");
}
