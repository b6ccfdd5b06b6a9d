//! `--background` returns at once with the pid of a process that serves without a terminal.

use crate::harness::{Harness, assert_serves, output, wait_until};
use rustix::process::{Pid, Signal, getsid, kill_process, test_kill_process};
use std::path::Path;

#[test]
fn clients_can_connect_when_the_command_returns() {
    let harness = Harness::new();
    let (status, stdout, stderr) = output(harness.traced().arg("--background"));
    assert!(status.success(), "{stderr}");
    let pid = stdout.strip_suffix('\n').expect("one line").parse().unwrap();
    let pid = Pid::from_raw(pid).unwrap();
    // No wait is needed: the service is ready.
    assert!(harness.path("p").exists() && harness.path("c").exists());
    assert_serves(&harness.producer(), &harness.consumer());

    let proc = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
    assert_eq!(getsid(Some(pid)).unwrap(), pid, "a session of its own");
    assert_eq!(std::fs::read_link(proc.join("cwd")).unwrap(), Path::new("/"));
    for stream in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(std::fs::read_link(proc.join(stream)).unwrap(), Path::new("/dev/null"), "{stream}");
    }
    kill_process(pid, Signal::TERM).unwrap();
    wait_until("its end", || {
        test_kill_process(pid).err().or_else(|| (!harness.path("c").exists()).then_some(rustix::io::Errno::SRCH))
    });
    assert!(!harness.path("p").exists());
}

#[test]
fn an_error_at_the_start_is_printed() {
    let harness = Harness::new();
    std::fs::write(harness.path("c"), "not a socket").unwrap();
    let (status, stdout, stderr) = output(harness.traced().arg("--background"));
    assert_eq!((status.code(), stdout.as_str()), (Some(1), ""));
    assert!(stderr.lines().count() == 1 && stderr.contains("not a socket"), "{stderr}");
}
