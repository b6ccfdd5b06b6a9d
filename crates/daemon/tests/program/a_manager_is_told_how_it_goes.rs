//! sd_notify(3): ready when clients can connect, a status, signs of life if they are asked for, and the end.

use crate::lab::{DEADLINE, Lab, Running, assert_serves};
use std::io::ErrorKind;
use std::os::unix::net::{UnixDatagram, UnixStream};

struct Manager(UnixDatagram);

impl Manager {
    fn new(lab: &Lab) -> Self {
        let socket = UnixDatagram::bind(lab.path("notify")).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        Self(socket)
    }

    fn next(&self) -> String {
        let mut message = [0; 4096];
        let len = loop {
            match self.0.recv(&mut message) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                received => break received.expect("it says something"),
            }
        };
        String::from_utf8(message[..len].to_vec()).unwrap()
    }
}

#[test]
fn in_the_order_of_events() {
    let lab = Lab::new();
    let manager = Manager::new(&lab);
    let mut traced = Running::start(&lab, lab.traced().env("NOTIFY_SOCKET", lab.path("notify")));
    let ready = manager.next();
    assert_eq!(ready, format!("READY=1\nSTATUS=Listening on {} {}", lab.producer(), lab.consumer()));
    let connected = UnixStream::connect(lab.path("p"));
    assert!(connected.is_ok(), "ready means ready");
    assert_eq!(manager.next(), "STATUS=1 producers and 0 consumers are connected");
    drop(connected);
    assert_eq!(manager.next(), "STATUS=0 producers and 0 consumers are connected");
    traced.stop();
    assert!(manager.next().starts_with("STOPPING=1\n"));
}

#[test]
fn and_twice_as_often_as_the_watchdog_bites() {
    let lab = Lab::new();
    let manager = Manager::new(&lab);
    let mut command = lab.traced();
    command.env("NOTIFY_SOCKET", lab.path("notify")).env("WATCHDOG_USEC", "100000").env_remove("WATCHDOG_PID");
    let mut traced = Running::start(&lab, &mut command);
    assert!(manager.next().starts_with("READY=1\n"));
    for _ in 0..5 {
        assert_eq!(manager.next(), "WATCHDOG=1");
    }
    traced.stop();
}

#[test]
fn and_one_that_has_gone_does_not_matter() {
    let lab = Lab::new();
    let mut traced = Running::start(&lab, lab.traced().env("NOTIFY_SOCKET", lab.path("nobody")));
    assert_serves(&lab.producer(), &lab.consumer());
    assert!(traced.log().contains("cannot reach the service manager"));
    traced.stop();
}
