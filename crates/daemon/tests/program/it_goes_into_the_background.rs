//! `--background`: back at once, with the pid of a process that has left the terminal and serves.

use crate::lab::{Lab, assert_serves, output, wait_until};
use rustix::process::{Pid, Signal, getsid, kill_process, test_kill_process};
use std::path::Path;

#[test]
fn where_clients_can_connect_when_it_is_back() {
    let lab = Lab::new();
    let (status, stdout, stderr) = output(lab.traced().arg("--background"));
    assert!(status.success(), "{stderr}");
    let pid = stdout.strip_suffix('\n').expect("one line").parse().unwrap();
    let pid = Pid::from_raw(pid).unwrap();
    // Not waited for: it is there already.
    assert!(lab.path("p").exists() && lab.path("c").exists());
    assert_serves(&lab.producer(), &lab.consumer());

    let proc = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
    assert_eq!(getsid(Some(pid)).unwrap(), pid, "a session of its own");
    assert_eq!(std::fs::read_link(proc.join("cwd")).unwrap(), Path::new("/"));
    for stream in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(std::fs::read_link(proc.join(stream)).unwrap(), Path::new("/dev/null"), "{stream}");
    }
    kill_process(pid, Signal::TERM).unwrap();
    wait_until("its end", || {
        test_kill_process(pid).err().or_else(|| (!lab.path("c").exists()).then_some(rustix::io::Errno::SRCH))
    });
    assert!(!lab.path("p").exists());
}

#[test]
fn and_if_it_cannot_start_one_is_told() {
    let lab = Lab::new();
    std::fs::write(lab.path("c"), "not a socket").unwrap();
    let (status, stdout, stderr) = output(lab.traced().arg("--background"));
    assert_eq!((status.code(), stdout.as_str()), (Some(1), ""));
    assert!(stderr.lines().count() == 1 && stderr.contains("not a socket"), "{stderr}");
}
