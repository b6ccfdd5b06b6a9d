//! A mistake in the command line or an address leads to one line that names it.

use crate::harness::{Harness, Running, assert_serves, output};
use crate::skip::{Skip, skip};
use std::process::Command;

fn complaint(command: &mut Command) -> String {
    let (status, stdout, stderr) = output(command);
    assert_eq!((status.code(), stdout.as_str()), (Some(1), ""), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

#[test]
fn on_the_command_line() {
    let harness = Harness::new();
    for (args, want) in [
        (&["--nothing"][..], "--nothing"),
        (&["--ver"], "--verbose or --version"),
        (&["file"], "file"),
        (&["--set-socket-permissions"], "needs a value"),
        (&["--set-socket-permissions", "0:0666:0"], "\"0:0666:0\""),
        (&["--set-socket-permissions", "0:0666:0:"], "\"0:0666:0:\""),
        (&["--set-socket-permissions", "0:666:0:0660"], "\"666\""),
        (&["--set-socket-permissions", "0:0666:0:0690"], "\"0690\""),
        (&["--set-socket-permissions", "no-such-group:0666:0:0660"], "\"no-such-group\""),
    ] {
        let line = complaint(harness.traced().args(args));
        assert!(line.contains(want), "{args:?}: {line}");
    }
    assert!(!harness.path("p").exists() && !harness.path("c").exists());
}

#[test]
fn in_the_environment() {
    let harness = Harness::new();
    let long = format!("/tmp/{}", "x".repeat(200));
    for (variable, value, want) in [
        ("PERFETTO_PRODUCER_SOCK_NAME", "a:b:1", "a:b:1"),
        ("PERFETTO_PRODUCER_SOCK_NAME", ",", "empty"),
        ("PERFETTO_CONSUMER_SOCK_NAME", "vsock://x:1", "vsock://x:1"),
        ("PERFETTO_CONSUMER_SOCK_NAME", &long, "106"),
        ("PERFETTO_CONSUMER_SOCK_NAME", "/nowhere/at/all", "/nowhere/at/all"),
    ] {
        let line = complaint(harness.traced().env(variable, value));
        assert!(line.contains(want), "{variable}={value}: {line}");
        assert!(!harness.path("p").exists(), "nothing is left behind");
    }
}

/// The process in the background works in `/`.
#[test]
fn relative_paths_in_the_background() {
    let harness = Harness::new();
    for (variable, other) in [("PERFETTO_PRODUCER_SOCK_NAME", "c"), ("PERFETTO_CONSUMER_SOCK_NAME", "p")] {
        let mut command = harness.traced();
        let line = complaint(command.arg("--background").env(variable, "here/x"));
        assert!(line.contains(&format!("{variable} names here/x")) && line.contains("absolute path"), "{line}");
        assert!(!harness.path(other).exists(), "nothing is left behind");
    }
    let line = complaint(harness.traced().args(["--background", "--metrics-file", "m.prom"]));
    assert!(line.contains("--metrics-file names m.prom"), "{line}");
}

#[test]
fn if_another_service_has_one_of_the_sockets() {
    let harness = Harness::new();
    let mut first = Running::start(&harness, &mut harness.traced());
    assert_serves(&harness.producer(), &harness.consumer());
    for (variable, taken) in [("PERFETTO_CONSUMER_SOCK_NAME", "p"), ("PERFETTO_PRODUCER_SOCK_NAME", "c")] {
        let line = complaint(harness.traced().env(variable, harness.path("other")));
        assert!(line.contains("already listening") && line.contains(harness.path(taken).to_str().unwrap()), "{line}");
        assert!(!harness.path("other").exists());
    }
    assert_serves(&harness.producer(), &harness.consumer());
    first.stop();
}

#[test]
fn if_a_socket_belongs_to_another_user() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    skip(|| {
        if !rustix::process::geteuid().is_root() {
            return Err(Skip("only root can be two users".to_owned()));
        }
        let harness = Harness::new();
        std::fs::set_permissions(harness.path(""), std::fs::Permissions::from_mode(0o1777)).unwrap();
        // A service of root is running, and then one has left its socket.
        let listener = std::os::unix::net::UnixListener::bind(harness.path("p")).unwrap();
        std::fs::set_permissions(harness.path("p"), std::fs::Permissions::from_mode(0o600)).unwrap();
        let want = format!("traced: cannot use {}: this socket belongs to another user, uid 0;", harness.producer());
        let line = complaint(harness.traced().uid(NOBODY).gid(NOBODY));
        assert!(line.starts_with(&want), "{line}");
        drop(listener);
        std::fs::set_permissions(harness.path("p"), std::fs::Permissions::from_mode(0o666)).unwrap();
        let line = complaint(harness.traced().uid(NOBODY).gid(NOBODY));
        assert!(line.starts_with(&want), "{line}");
        Ok(())
    });
}
