//! Faults of the disk end an export with their reason, and the next one goes on.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peer::skip;
use crate::{all_traces, check, command, csv, export, folder, run, stderr, trace};

/// A small file system in memory.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: PathBuf, bytes: u64) -> Result<Self, String> {
        std::fs::create_dir_all(&at).expect("a folder can be made");
        let output =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(&at).output();
        match output {
            Ok(output) if output.status.success() => Ok(Self(at)),
            Ok(output) => Err(format!("no mount: {}", stderr(&output).trim())),
            Err(error) => Err(format!("no mount: {error}")),
        }
    }

    fn resize(&self, bytes: u64) {
        let options = format!("remount,size={bytes}");
        let status = Command::new("mount").args(["-o", &options]).arg(&self.0).status();
        assert!(status.is_ok_and(|status| status.success()), "a disk can be made larger");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _the_test_has_failed_already = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_ends_an_export_and_the_next_goes_on() {
    skip(|| {
        let at = folder("full").join("disk");
        let disk = Disk::mount(at.clone(), 200 << 10)?;
        let lake = at.join("lake");
        let place = lake.to_string_lossy();
        let traces: Vec<&str> = all_traces().iter().map(String::as_str).collect();
        let mut args = vec!["export"];
        args.extend(&traces);
        args.extend(["--to", &place]);
        // The disk grows until there is room for all.
        let mut ends = 0;
        let mut most = 0;
        for kilobytes in (200..).step_by(200) {
            disk.resize(kilobytes << 10);
            let output = command(&args).output().expect("the program runs");
            if output.status.success() {
                break;
            }
            ends += 1;
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            let message = stderr(&output);
            assert!(message.starts_with("esatto-query: cannot "), "{message}");
            assert!(message.contains(&*at.to_string_lossy()), "{message}");
            assert!(message.contains("No space left on device"), "{message}");
            assert!(message.contains("; free space there, then run the command again: it goes on"), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
            if lake.join("lake.json").exists() {
                let report = check(&lake);
                let is_interrupted = |text: &str| text.starts_with("an export was interrupted");
                assert!(report.problems.iter().all(|problem| is_interrupted(&problem.text)), "{report:?}");
                assert!(report.traces >= most, "traces stay");
                most = report.traces;
            }
        }
        assert!(ends >= 3, "{ends}");
        let report = check(&lake);
        assert_eq!((report.traces, &report.problems[..]), (traces.len(), &[][..]));
        Ok(())
    });
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let folder = folder("rights");
    let blocked = folder.join("file");
    std::fs::write(&blocked, "").expect("a file can be written");
    let output = run(&["export", &trace(crate::TRACE), "--to", &blocked.join("lake").to_string_lossy()]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.starts_with("esatto-query: cannot create ") && message.contains("Not a directory"), "{message}");
}

#[test]
fn a_trace_that_cannot_be_read_is_left_out() {
    let folder = folder("unreadable");
    let lake = folder.join("lake");
    let missing = folder.join("missing.pftrace");
    let output = run(&[
        "export",
        &trace(crate::TRACE),
        &missing.to_string_lossy(),
        &folder.to_string_lossy(),
        "--to",
        &lake.to_string_lossy(),
    ]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let message = stderr(&output);
    assert!(message.contains("missing.pftrace: cannot read it: No such file"), "{message}");
    assert!(message.contains(": it is a folder; "), "{message}");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("; 2 traces left out\n"), "{output:?}");
}

/// All other uses are compared with those over traces: `tests/queries/lake.rs`.
#[test]
fn an_argument_of_an_outer_row_is_refused_over_a_lake() {
    let lake = folder("functions").join("lake");
    export(&[&trace(crate::TRACE)], &lake, &[]);
    let sql = "select id from slice s where exists (select 1 from args a
        where a.int_value = extract_arg(s.arg_set_id, 'debug.round'))";
    let output = run(&[&lake.to_string_lossy(), sql]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("must come from one table of the same SELECT; join the table 'args'"), "{message}");
}

#[test]
fn trees_of_a_lake_stay_within_the_memory_of_the_query() {
    let lake = folder("trees").join("lake");
    let traces: Vec<&str> = all_traces().iter().map(String::as_str).collect();
    export(&traces, &lake, &["--broken", "keep"]);
    let place = lake.to_string_lossy();
    let sql = "select count(*), count(distinct name) from ancestors() a";
    // One trace at a time is in memory.
    assert_eq!(csv(&[&place, "--memory-limit", "16M"], sql), csv(&[&place], sql));
    let output = run(&[&place, "--memory-limit", "1M", "select * from descendants() order by name"]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("'slice' of a trace"), "{message}");
}

/// Both at once is a mistake.
#[test]
fn a_lake_is_asked_alone() {
    let lake = folder("alone").join("lake");
    export(&[&trace(crate::TRACE)], &lake, &[]);
    let output = run(&[&lake.to_string_lossy(), &trace(crate::TRACE), "select 1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("a query can have one lake"), "{}", stderr(&output));
    assert!(Path::new(&lake).exists());
}
