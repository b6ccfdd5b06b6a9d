//! Socket activation: `traced` uses the sockets that systemd or Android's init has created, and
//! does not remove their files.

use crate::harness::{Harness, Running, assert_serves, output};
use esatto_ipc::{Address, Listener};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

/// Returns a listening socket that children inherit, with a number that collides with no other.
fn socket(address: &Address) -> OwnedFd {
    let fd = fcntl_dupfd_cloexec(Listener::bind(address).unwrap(), 100).unwrap();
    fcntl_setfd(&fd, FdFlags::empty()).unwrap();
    fd
}

/// Returns a command that starts `traced` with these descriptors from 3 on, as systemd does.
fn activated(harness: &Harness, sockets: &[&OwnedFd]) -> Command {
    let moves = (3..).zip(sockets).map(|(to, from)| format!(" {to}<&{0} {0}<&-", from.as_raw_fd())).collect::<String>();
    let script = format!("exec{moves}; LISTEN_PID=$$ exec \"$0\" \"$@\"");
    let mut command = harness.command("bash");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_traced")]).env("LISTEN_FDS", sockets.len().to_string());
    command
}

/// Returns mode and inode.
fn file(address: &Address) -> (u32, u64) {
    let meta = std::fs::symlink_metadata(address.as_path().unwrap()).unwrap();
    (meta.mode(), meta.ino())
}

#[test]
fn by_name_and_their_files_stay() {
    let harness = Harness::new();
    let (producer, consumer) = (Address::Path(harness.path("made-p")), Address::Path(harness.path("made-c")));
    let (first, second) = (socket(&consumer), socket(&producer));
    let before = (file(&producer), file(&consumer));
    let mut command = activated(&harness, &[&first, &second]);
    command.env("LISTEN_FDNAMES", "consumer:producer");
    command.env_remove("PERFETTO_PRODUCER_SOCK_NAME").env_remove("PERFETTO_CONSUMER_SOCK_NAME");
    let mut traced = Running::start(&harness, &mut command);
    assert_serves(&producer, &consumer);
    let line = format!("listening on {producer} {consumer}\n");
    assert!(traced.log().contains(&line), "nothing else: {}", traced.log());
    traced.stop();
    assert_eq!((file(&producer), file(&consumer)), before);

    // The manager starts the next `traced` with the same sockets. A client that connected in
    // between is served.
    let early = std::os::unix::net::UnixStream::connect(producer.as_path().unwrap()).unwrap();
    let mut command = activated(&harness, &[&second, &first]);
    let _traced = Running::start(
        &harness,
        command
            .env("LISTEN_FDNAMES", "traced-producer.socket:traced-consumer.socket")
            .env_remove("PERFETTO_PRODUCER_SOCK_NAME")
            .env_remove("PERFETTO_CONSUMER_SOCK_NAME"),
    );
    assert_serves(&producer, &consumer);
    drop(early);
}

#[test]
fn by_address_beside_configured_ones() {
    let harness = Harness::new();
    let (producer, consumer) = (socket(&harness.producer()), socket(&harness.consumer()));
    let other = Address::Path(harness.path("q"));
    let mut command = activated(&harness, &[&consumer, &producer]);
    command.env("PERFETTO_PRODUCER_SOCK_NAME", format!("{},{other}", harness.producer()));
    let mut traced = Running::start(&harness, &mut command);
    assert_serves(&harness.producer(), &harness.consumer());
    assert_serves(&other, &harness.consumer());
    traced.stop();
    assert!(harness.path("p").exists() && harness.path("c").exists() && !harness.path("q").exists());
}

#[test]
fn but_not_in_the_background() {
    let harness = Harness::new();
    let (producer, consumer) = (socket(&harness.producer()), socket(&harness.consumer()));
    let (status, _, stderr) = output(activated(&harness, &[&producer, &consumer]).arg("--background"));
    assert!(status.code() == Some(1) && stderr.contains("leave out --background"), "{stderr}");
}

#[test]
fn from_android_init() {
    let harness = Harness::new();
    let (producer, consumer) = (Address::Path(harness.path("made-p")), Address::Path(harness.path("made-c")));
    let (first, second) = (socket(&producer), socket(&consumer));
    let mut command = harness.traced();
    command.env_remove("PERFETTO_PRODUCER_SOCK_NAME").env_remove("PERFETTO_CONSUMER_SOCK_NAME");
    command.env("ANDROID_SOCKET_traced_producer", first.as_raw_fd().to_string());
    let (status, _, stderr) = output(&mut command);
    assert_eq!(status.code(), Some(1), "one of two: {stderr}");
    command.env("ANDROID_SOCKET_traced_consumer", second.as_raw_fd().to_string());
    let _traced = Running::start(&harness, &mut command);
    assert_serves(&producer, &consumer);
}

#[test]
fn unsuitable_sockets_are_errors() {
    let harness = Harness::new();
    let (producer, consumer) = (socket(&harness.producer()), socket(&harness.consumer()));
    let elsewhere = socket(&Address::Path(harness.path("elsewhere")));
    let no_socket = fcntl_dupfd_cloexec(std::fs::File::open("/dev/null").unwrap(), 100).unwrap();
    fcntl_setfd(&no_socket, FdFlags::empty()).unwrap();
    for (sockets, names, want) in [
        (&[&producer, &consumer, &elsewhere][..], "", "descriptor 5"),
        (&[&producer, &consumer, &elsewhere], "producer:consumer:consumer", "another consumer"),
        (&[&producer, &no_socket], "producer:consumer", "descriptor 4 (consumer)"),
        (&[&elsewhere], "consumer", "PERFETTO_CONSUMER_SOCK_NAME"),
    ] {
        let (status, _, stderr) = output(activated(&harness, sockets).env("LISTEN_FDNAMES", names));
        assert!(status.code() == Some(1) && stderr.contains(want) && stderr.lines().count() == 1, "{names}: {stderr}");
    }
    // The environment announces descriptors that are missing.
    let (status, _, stderr) = output(activated(&harness, &[&producer]).env("LISTEN_FDS", "3"));
    assert!(status.code() == Some(1) && stderr.contains("descriptor 4"), "{stderr}");
}
