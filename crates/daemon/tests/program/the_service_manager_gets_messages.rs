//! Messages of sd_notify(3): readiness when clients can connect, a status, signs of life if they
//! are configured, and the end.

use crate::harness::{DEADLINE, Harness, Running, assert_serves};
use std::io::ErrorKind;
use std::os::unix::net::{UnixDatagram, UnixStream};

struct Manager(UnixDatagram);

impl Manager {
    fn new(harness: &Harness) -> Self {
        let socket = UnixDatagram::bind(harness.path("notify")).unwrap();
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
fn for_readiness_status_and_stop() {
    let harness = Harness::new();
    let manager = Manager::new(&harness);
    let mut traced = Running::start(&harness, harness.traced().env("NOTIFY_SOCKET", harness.path("notify")));
    let ready = manager.next();
    assert_eq!(ready, format!("READY=1\nSTATUS=Listening on {} {}", harness.producer(), harness.consumer()));
    let connected = UnixStream::connect(harness.path("p"));
    assert!(connected.is_ok(), "ready means ready");
    assert_eq!(manager.next(), "STATUS=1 producers and 0 consumers are connected");
    drop(connected);
    assert_eq!(manager.next(), "STATUS=0 producers and 0 consumers are connected");
    traced.stop();
    assert!(manager.next().starts_with("STOPPING=1\n"));
}

#[test]
fn twice_per_watchdog_interval() {
    let harness = Harness::new();
    let manager = Manager::new(&harness);
    let mut command = harness.traced();
    command.env("NOTIFY_SOCKET", harness.path("notify")).env("WATCHDOG_USEC", "100000").env_remove("WATCHDOG_PID");
    let mut traced = Running::start(&harness, &mut command);
    assert!(manager.next().starts_with("READY=1\n"));
    for _ in 0..5 {
        assert_eq!(manager.next(), "WATCHDOG=1");
    }
    traced.stop();
}

#[test]
fn a_missing_manager_is_ignored() {
    let harness = Harness::new();
    let mut traced = Running::start(&harness, harness.traced().env("NOTIFY_SOCKET", harness.path("nobody")));
    assert_serves(&harness.producer(), &harness.consumer());
    assert!(traced.log().contains("cannot reach the service manager"));
    traced.stop();
}
