//! `--set-socket-permissions` sets owner, group and mode of the socket files, with any umask.

use crate::harness::{Harness, Running, assert_serves, wait_until};
use crate::skip::{Skip, skip};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;

/// Returns a group to which this process may give files: another one for root, else its own.
fn group() -> u32 {
    if rustix::process::geteuid().is_root() { 12 } else { rustix::process::getegid().as_raw() }
}

#[test]
fn for_every_unix_socket_with_a_file() {
    let harness = Harness::new();
    let own = rustix::process::getegid().as_raw();
    let producers =
        format!("{},@esatto-t{},{}", harness.path("p").display(), std::process::id(), harness.path("q").display());
    let mut command = harness.command("sh");
    command.args(["-c", "umask 0777; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_traced")]);
    let permissions = format!("{}:0622:{own}:0600", group());
    command.args(["--set-socket-permissions", &permissions]).env("PERFETTO_PRODUCER_SOCK_NAME", producers);
    let mut traced = Running::start(&harness, &mut command);
    assert_serves(&harness.producer(), &harness.consumer());
    let owner = rustix::process::geteuid().as_raw();
    for (name, gid, mode) in [("p", group(), 0o622), ("q", group(), 0o622), ("c", own, 0o600)] {
        let meta = std::fs::symlink_metadata(harness.path(name)).unwrap();
        assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o7777), (owner, gid, mode), "{name}");
    }
    traced.stop();
    assert!(["p", "q", "c"].iter().all(|name| !harness.path(name).exists()));
}

#[test]
fn without_the_option_the_umask_decides() {
    let harness = Harness::new();
    let mut command = harness.command("sh");
    command.args(["-c", "umask 0027; exec \"$0\"", env!("CARGO_BIN_EXE_traced")]);
    let _traced = Running::start(&harness, &mut command);
    for name in ["p", "c"] {
        let meta = wait_until("the socket", || std::fs::symlink_metadata(harness.path(name)).ok());
        assert_eq!(meta.mode() & 0o7777, 0o750);
    }
}

/// The user `nobody` may not give files to other groups. Tests often run as root, which may.
const NOBODY: u32 = 65534;

#[test]
fn a_forbidden_group_is_an_error() {
    let harness = Harness::new();
    let mut command = harness.traced();
    command.args(["--set-socket-permissions", "0:0666:0:0660"]);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(harness.path(""), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    skip(|| {
        let output = command.output().map_err(|error| Skip(format!("not to be run by nobody: {error}")))?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("cannot set group and mode"), "{stderr}");
        assert!(!harness.path("p").exists());
        Ok(())
    });
}
