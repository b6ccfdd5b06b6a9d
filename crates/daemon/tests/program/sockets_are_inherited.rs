//! Socket activation: what systemd or Android's init has made is used, and left alone at the end.

use crate::lab::{Lab, Running, assert_serves, output};
use esatto_ipc::{Address, Listener};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

/// A listening socket that children inherit, with a number that is out of the way.
fn socket(address: &Address) -> OwnedFd {
    let fd = fcntl_dupfd_cloexec(Listener::bind(address).unwrap(), 100).unwrap();
    fcntl_setfd(&fd, FdFlags::empty()).unwrap();
    fd
}

/// `traced` with these descriptors as 3 and following, as systemd starts it.
fn activated(lab: &Lab, sockets: &[&OwnedFd]) -> Command {
    let moves = (3..).zip(sockets).map(|(to, from)| format!(" {to}<&{0} {0}<&-", from.as_raw_fd())).collect::<String>();
    let script = format!("exec{moves}; LISTEN_PID=$$ exec \"$0\"");
    let mut command = lab.command("bash");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_traced")]).env("LISTEN_FDS", sockets.len().to_string());
    command
}

/// Mode and inode.
fn file(address: &Address) -> (u32, u64) {
    let meta = std::fs::symlink_metadata(address.as_path().unwrap()).unwrap();
    (meta.mode(), meta.ino())
}

#[test]
fn by_name_and_left_where_they_are() {
    let lab = Lab::new();
    let (producer, consumer) = (Address::Path(lab.path("made-p")), Address::Path(lab.path("made-c")));
    let (first, second) = (socket(&consumer), socket(&producer));
    let before = (file(&producer), file(&consumer));
    let mut command = activated(&lab, &[&first, &second]);
    command.env("LISTEN_FDNAMES", "consumer:producer");
    command.env_remove("PERFETTO_PRODUCER_SOCK_NAME").env_remove("PERFETTO_CONSUMER_SOCK_NAME");
    let mut traced = Running::start(&lab, &mut command);
    assert_serves(&producer, &consumer);
    let line = format!("listening on {producer} {consumer}\n");
    assert!(traced.log().contains(&line), "nothing else: {}", traced.log());
    traced.stop();
    assert_eq!((file(&producer), file(&consumer)), before);

    // Whoever has made them starts the next one with the same sockets, and a client that came in between is served.
    let early = std::os::unix::net::UnixStream::connect(producer.as_path().unwrap()).unwrap();
    let mut command = activated(&lab, &[&second, &first]);
    let _traced = Running::start(
        &lab,
        command
            .env("LISTEN_FDNAMES", "traced-producer.socket:traced-consumer.socket")
            .env_remove("PERFETTO_PRODUCER_SOCK_NAME")
            .env_remove("PERFETTO_CONSUMER_SOCK_NAME"),
    );
    assert_serves(&producer, &consumer);
    drop(early);
}

#[test]
fn by_address_beside_those_that_the_environment_names() {
    let lab = Lab::new();
    let (producer, consumer) = (socket(&lab.producer()), socket(&lab.consumer()));
    let other = Address::Path(lab.path("q"));
    let mut command = activated(&lab, &[&consumer, &producer]);
    command.env("PERFETTO_PRODUCER_SOCK_NAME", format!("{},{other}", lab.producer()));
    let mut traced = Running::start(&lab, &mut command);
    assert_serves(&lab.producer(), &lab.consumer());
    assert_serves(&other, &lab.consumer());
    traced.stop();
    assert!(lab.path("p").exists() && lab.path("c").exists() && !lab.path("q").exists());
}

#[test]
fn from_init_by_their_variables() {
    let lab = Lab::new();
    let (producer, consumer) = (Address::Path(lab.path("made-p")), Address::Path(lab.path("made-c")));
    let (first, second) = (socket(&producer), socket(&consumer));
    let mut command = lab.traced();
    command.env_remove("PERFETTO_PRODUCER_SOCK_NAME").env_remove("PERFETTO_CONSUMER_SOCK_NAME");
    command.env("ANDROID_SOCKET_traced_producer", first.as_raw_fd().to_string());
    let (status, _, stderr) = output(&mut command);
    assert_eq!(status.code(), Some(1), "one of two: {stderr}");
    command.env("ANDROID_SOCKET_traced_consumer", second.as_raw_fd().to_string());
    let _traced = Running::start(&lab, &mut command);
    assert_serves(&producer, &consumer);
}

#[test]
fn unless_they_are_not_what_they_should_be() {
    let lab = Lab::new();
    let (producer, consumer) = (socket(&lab.producer()), socket(&lab.consumer()));
    let elsewhere = socket(&Address::Path(lab.path("elsewhere")));
    let no_socket = fcntl_dupfd_cloexec(std::fs::File::open("/dev/null").unwrap(), 100).unwrap();
    fcntl_setfd(&no_socket, FdFlags::empty()).unwrap();
    for (sockets, names, want) in [
        (&[&producer, &consumer, &elsewhere][..], "", "descriptor 5"),
        (&[&producer, &consumer, &elsewhere], "producer:consumer:consumer", "another consumer"),
        (&[&producer, &no_socket], "producer:consumer", "descriptor 4 (consumer)"),
        (&[&elsewhere], "consumer", "PERFETTO_CONSUMER_SOCK_NAME"),
    ] {
        let (status, _, stderr) = output(activated(&lab, sockets).env("LISTEN_FDNAMES", names));
        assert!(status.code() == Some(1) && stderr.contains(want) && stderr.lines().count() == 1, "{names}: {stderr}");
    }
    // Announced and not there.
    let (status, _, stderr) = output(activated(&lab, &[&producer]).env("LISTEN_FDS", "3"));
    assert!(status.code() == Some(1) && stderr.contains("descriptor 4"), "{stderr}");
}
