//! Missing rights on made-up machines.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::CapabilitySet;

use super::{Access, Machine, container, open};

/// Files below a folder that stands for `/`.
struct Files(PathBuf);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("esatto-privileges-{}-{number}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(root)
    }

    fn missing(&self, capabilities: CapabilitySet, open: fn(&Path, Access) -> io::Result<()>) -> Vec<String> {
        let machine = Machine { root: self.0.clone(), capabilities, open };
        machine.missing().iter().map(ToString::to_string).collect()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const WHOLE: &[(&str, &str)] = &[
    ("sys/kernel/tracing/trace", ""),
    ("sys/kernel/tracing/tracing_on", "1\n"),
    ("proc/1/status", ""),
    ("proc/sys/kernel/kptr_restrict", "1\n"),
    ("proc/sys/kernel/perf_event_paranoid", "2\n"),
    ("proc/slabinfo", ""),
    ("etc/machine-id", "abc\n"),
    ("var/log/journal/abc/system.journal", ""),
];

fn denied(path: &Path, access: Access) -> io::Result<()> {
    let is_private = access == Access::Writing || path.ends_with("slabinfo") || path.ends_with("system.journal");
    if is_private && path.exists() { Err(io::ErrorKind::PermissionDenied.into()) } else { open(path, access) }
}

#[test]
fn root_misses_nothing() {
    assert_eq!(Files::new(WHOLE).missing(CapabilitySet::all(), open), [""; 0]);
}

#[test]
fn a_user_is_told_what_is_missing_and_the_command_that_grants_it() {
    let missing = Files::new(WHOLE).missing(CapabilitySet::empty(), denied);
    let begins = [
        ("linux.ftrace cannot record scheduling", "sudo chown -R $USER /sys/kernel/tracing"),
        ("linux.process_stats cannot record file descriptors", "the service traced-probes"),
        ("linux.ftrace cannot record names of kernel functions", "kptr_restrict is 1"),
        ("linux.sys_stats cannot record slabs", "run as root"),
        ("linux.systemd_journald cannot record the journal", "usermod -aG systemd-journal"),
    ];
    assert_eq!(missing.len(), begins.len(), "{missing:#?}");
    for (line, (begin, part)) in missing.iter().zip(begins) {
        assert!(line.starts_with(begin) && line.contains(part) && !line.contains('\n'), "{line}");
    }
}

#[test]
fn a_machine_without_tracefs_is_told_how_to_mount_it() {
    let files = Files::new(&[("proc/1/status", "")]);
    let missing = files.missing(CapabilitySet::all(), open);
    assert_eq!(missing.len(), 1, "{missing:#?}");
    assert!(missing[0].contains("tracefs is not mounted; run `sudo mount -t tracefs"), "{missing:?}");
    fs::write(files.0.join(".dockerenv"), "").unwrap();
    let missing = files.missing(CapabilitySet::all(), open);
    assert!(missing[0].contains("not mounted in this container"), "{missing:?}");
}

#[test]
fn a_lockdown_is_named() {
    let files =
        Files::new(&[("proc/1/status", ""), ("sys/kernel/security/lockdown", "none integrity [confidentiality]\n")]);
    let missing = files.missing(CapabilitySet::all(), open);
    assert!(missing[0].contains("locked down for confidentiality"), "{missing:?}");
}

#[test]
fn hidepid_is_named() {
    let files = Files::new(&WHOLE[..2]);
    let missing = files.missing(CapabilitySet::all(), open);
    assert!(missing[0].contains("hidepid") && missing[0].contains("remount,hidepid=0"), "{missing:?}");
}

#[test]
fn a_container_says_what_it_hides() {
    let files = Files::new(&[("proc/self/status", "")]);
    let namespaces = files.0.join("proc/self/ns");
    fs::create_dir(&namespaces).unwrap();
    symlink("pid:[4026531836]", namespaces.join("pid")).unwrap();
    symlink("user:[4026531837]", namespaces.join("user")).unwrap();
    let offsets = namespaces.with_file_name("timens_offsets");
    fs::write(&offsets, "monotonic           0         0\nboottime            0         0\n").unwrap();
    assert!(container::hidden_below(&files.0).is_empty());
    fs::write(&offsets, "monotonic           0         0\nboottime            100000         0\n").unwrap();
    let hidden = container::hidden_below(&files.0);
    assert!(hidden.len() == 1 && hidden[0].starts_with("the clocks"), "{hidden:?}");
    fs::remove_file(offsets).unwrap();
    fs::remove_file(namespaces.join("pid")).unwrap();
    symlink("pid:[4026532000]", namespaces.join("pid")).unwrap();
    let hidden = container::hidden_below(&files.0);
    assert!(hidden.len() == 1 && hidden[0].contains("--pid=host"), "{hidden:?}");
    assert!(container::is_container(&files.0));
}
