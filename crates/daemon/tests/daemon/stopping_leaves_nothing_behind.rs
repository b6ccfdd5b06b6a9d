//! When a daemon ends, it closes connections, removes socket files and ends its threads.

use crate::harness::{DEADLINE, Harness, barrier, config, enable};
use esatto_daemon::{Daemon, Options};
use esatto_ipc::{Address, Error};

#[test]
fn sockets_are_removed_and_connections_closed() {
    let harness = Harness::start();
    let mut consumer = harness.consumer();
    consumer.send("EnableTracing", &enable(config()), None).unwrap();
    barrier(&mut consumer);
    let _producer = harness.producer();
    let Harness { daemon, folder } = harness;
    assert!(folder.path("p").exists() && folder.path("c").exists());
    daemon.stop();
    assert!(!folder.path("p").exists() && !folder.path("c").exists());
    let end = loop {
        match consumer.next_reply(Some(DEADLINE)) {
            Ok(_) => {}
            Err(e) => break e,
        }
    };
    assert!(matches!(end, Error::Disconnected), "{end}");
}

#[test]
fn a_failed_start_leaves_no_socket() {
    let harness = Harness::start();
    let producer = harness.folder.path("other");
    let options = Options::new(Address::Path(producer.clone()), harness.daemon.consumer().clone());
    let error = Daemon::bind(options).unwrap_err().to_string();
    assert!(error.contains("already listening") && error.contains("/c"), "{error}");
    assert!(!producer.exists());
}
