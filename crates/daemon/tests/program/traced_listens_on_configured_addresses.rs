//! Addresses come from the environment, and the starting process learns when the daemon listens.

use crate::harness::{Harness, Running, assert_serves, output, read_all};
use esatto_ipc::Address;
use std::os::fd::AsRawFd as _;

#[test]
fn on_paths_abstract_names_and_both_versions_of_ip() {
    let harness = Harness::new();
    let port = |host: &str| std::net::TcpListener::bind((host, 0)).map(|free| free.local_addr().unwrap().port());
    let mut producers = vec![harness.producer().to_string(), format!("@esatto-tl{}", std::process::id())];
    producers.push(format!("127.0.0.1:{}", port("127.0.0.1").unwrap()));
    // Only if this machine supports them.
    producers.extend(port("::1").ok().map(|port| format!("[::1]:{port}")));
    let vsock = Address::Vsock { cid: u32::MAX, port: 0x2000_0000 | std::process::id() };
    producers.extend(esatto_ipc::Listener::bind(&vsock).is_ok().then(|| vsock.to_string()));
    let mut traced = Running::start(&harness, harness.traced().env("PERFETTO_PRODUCER_SOCK_NAME", producers.join(",")));
    for producer in producers.iter().filter(|address| !address.starts_with("vsock")) {
        assert_serves(&producer.parse().unwrap(), &harness.consumer());
    }
    let line = format!("Started traced, listening on {} {}\n", producers.join(" "), harness.consumer());
    assert!(traced.log().contains(&line), "{line}");
    traced.stop();
}

#[test]
fn readiness_is_written_to_the_notify_descriptor() {
    let harness = Harness::new();
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::empty()).unwrap();
    let _traced = Running::start(&harness, harness.traced().env("TRACED_NOTIFY_FD", theirs.as_raw_fd().to_string()));
    drop(theirs);
    // Reads to the end, so the daemon has also closed the descriptor.
    assert_eq!(read_all(ours), "1");
    assert!(std::os::unix::net::UnixStream::connect(harness.path("c")).is_ok());
}

#[test]
fn version_and_help_are_printed() {
    let harness = Harness::new();
    let (status, stdout, _) = output(harness.traced().arg("--version"));
    assert!(status.success());
    assert_eq!(stdout, concat!("Esatto v", env!("CARGO_PKG_VERSION"), "\n"));
    let (status, stdout, _) = output(harness.traced().arg("--help"));
    assert!(status.success() && stdout.contains("--set-socket-permissions"));
}
