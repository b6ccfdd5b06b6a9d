//! A result is whole or not there, belongs to its owner, and replaces nothing by mistake.

use crate::{esatto, run, said, trace};
use esatto_tests::tiny_disk::TinyDisk;
use esatto_tests::{Harness, skip};
use rustix::fs::{Mode, OFlags};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_file_that_is_there_stays() {
    let harness = Harness::new();
    let file = harness.write("t.folded", "precious");
    let convert = |more: &[&dyn AsRef<std::ffi::OsStr>]| {
        let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"convert", &"--to", &"folded", &"-o", &file];
        let trace = trace("track-events");
        args.push(&trace);
        args.extend(more);
        esatto(&args)
    };
    let output = convert(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("the file is there; --force replaces it"), "{}", said(&output));
    assert_eq!(std::fs::read(&file).expect("it is there"), b"precious");
    assert!(convert(&[&"--force"]).status.success());
    assert!(std::fs::read(&file).expect("it is there").len() > 100);
    let mode = std::fs::metadata(&file).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only its owner reads it");
    let left: Vec<_> = std::fs::read_dir(harness.folder()).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 1, "no temporary file is left: {left:?}");
}

#[test]
fn standard_output_is_a_file_too() {
    let output = esatto(&[&"convert", &trace("track-events"), &"--to", &"folded", &"-o", &"-"]);
    assert!(output.status.success() && output.stdout.len() > 100);
}

#[test]
fn a_full_disk_leaves_no_half_file() {
    skip(|| {
        let harness = Harness::new();
        let disk = TinyDisk::mount(harness.path("disk"))?;
        let file = disk.path().join("t.json");
        let output = esatto(&[&"convert", &trace("long-two-buffers"), &"--to", &"chrome-json", &"-o", &file]);
        assert!(!output.status.success() && said(&output).contains("No space left"), "{}", said(&output));
        assert_eq!(std::fs::read_dir(disk.path()).expect("a folder").flatten().count(), 0);
        Ok(())
    });
}

#[test]
fn an_existing_trace_is_not_touched_by_its_own_result() {
    let harness = Harness::new();
    let file = harness.path("t.pftrace");
    std::fs::copy(trace("deflate"), &file).expect("a copy");
    run(&[&"convert", &file, &"--to", &"perfetto", &"-o", &file, &"--force"]);
    let output = esatto(&[&"check", &file]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_killed_command_leaves_no_file() {
    let harness = Harness::new();
    let folder = harness.path("folder");
    std::fs::create_dir(&folder).expect("a folder");
    let flags = OFlags::TMPFILE | OFlags::RDWR;
    if rustix::fs::open(&folder, flags, Mode::RUSR | Mode::WUSR).is_err() {
        // The file system has no files without names, so the name of the file stays.
        return;
    }
    // The command waits for the rest of its input.
    let mut command = std::process::Command::new(esatto_tests::esatto_bin());
    command.args(["cut", "--from", "0", "-", "-o"]).arg(folder.join("t.pftrace"));
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    // More than a pipe holds: once it is written, the command has read most of it.
    for _ in 0..40 {
        input.write_all(&std::fs::read(trace("track-events")).expect("a trace")).expect("it is read");
    }
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    let left: Vec<_> = std::fs::read_dir(&folder).expect("a folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
