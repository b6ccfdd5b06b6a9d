//! The end of a daemon: connections closed, socket files removed, threads ended.

use crate::lab::{DEADLINE, Lab, barrier, config, enable};
use esatto_daemon::{Daemon, Options};
use esatto_ipc::{Address, Error};

#[test]
fn neither_sockets_nor_connections() {
    let lab = Lab::start();
    let mut consumer = lab.consumer();
    consumer.send("EnableTracing", &enable(config()), None).unwrap();
    barrier(&mut consumer);
    let _producer = lab.producer();
    let Lab { daemon, folder } = lab;
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
fn nor_does_a_start_that_fails() {
    let lab = Lab::start();
    let producer = lab.folder.path("other");
    let options = Options::new(Address::Path(producer.clone()), lab.daemon.consumer().clone());
    let error = Daemon::bind(options).unwrap_err().to_string();
    assert!(error.contains("already listening") && error.contains("/c"), "{error}");
    assert!(!producer.exists());
}
