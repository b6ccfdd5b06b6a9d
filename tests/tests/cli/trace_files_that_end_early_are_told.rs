//! `record` says why its file ends before the recording does: it has reached the size of the
//! config, or another program has removed it.

use esatto_tests::workload::{CONFIG, Workload};
use esatto_tests::{Harness, Implementation, Program, Signal, Skip, esatto_bin, wait_until};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// A program that emits events for longer than any recording here.
fn program(harness: &Harness) -> Program {
    let program = harness.application(Implementation::Ours, Workload { threads: 1, rounds: 200_000, pause_us: 200 });
    harness.wait_for_data_source("track_event");
    program
}

fn record(harness: &Harness, config: &str, args: &[&str]) -> Program {
    harness.write("my.cfg", format!("{CONFIG}{config}"));
    let mut command = harness.command(esatto_bin());
    harness.start("record", command.args(["record", "-c", "my.cfg"]).args(args))
}

/// Returns what `esatto check` says of a file.
fn check(harness: &Harness, name: &str) -> String {
    let output = harness.command(esatto_bin()).arg("check").arg(harness.path(name)).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_file_that_is_not_complete_yet() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _program = program(&harness);
    let mut record = record(&harness, "write_into_file: true file_write_period_ms: 100", &["-o", "trace"]);
    wait_until("the file grows", || fs::metadata(harness.path("trace")).ok().filter(|meta| meta.len() > 5000));
    let running = check(&harness, "trace");
    assert!(running.contains("  note: 1 end missing (trace). The recording still runs"), "{running}");
    record.signal(Signal::INT);
    record.wait_ok();
    let complete = check(&harness, "trace");
    assert!(!complete.contains("end missing"), "{complete}");
}

fn a_full_file(service: Implementation) -> Result<(), Skip> {
    let harness = Harness::new();
    let _service = harness.service(service);
    let _program = program(&harness);
    let limit = |bytes: u32| {
        format!("write_into_file: true file_write_period_ms: 100 max_file_size_bytes: {bytes} duration_ms: 60000")
    };
    let mut full = record(&harness, &limit(60_000), &["-o", "trace"]);
    full.wait_ok();
    let log = full.log();
    let (_, line) = log.split_once("The recording ended after ").expect(&log);
    assert!(line.contains(" s, because the file reached max_file_size_bytes (60000).\n"), "{log}");
    assert!(log.contains("Open it in") && !log.contains("The trace is complete"), "{log}");
    assert!(fs::metadata(harness.path("trace")).expect("a file").len() < 60_000);
    let checked = check(&harness, "trace");
    assert!(
        checked.contains("has reached its `max_file_size_bytes: 60000`") && !checked.contains("by force"),
        "{checked}"
    );
    let info = harness.command(esatto_bin()).args(["info", "trace"]).output().expect("it runs").stdout;
    let info = String::from_utf8_lossy(&info);
    assert!(info.contains("end_missing") && !info.contains("ring buffer"), "{info}");
    for (bytes, name) in [(10, "10"), (700, "700")] {
        let mut tiny = record(&harness, &limit(bytes), &["-o", name]);
        assert_eq!(tiny.wait().code(), Some(3), "{}", tiny.log());
        let reason = "No event was recorded: the file reached max_file_size_bytes before the first event";
        assert!(tiny.log().contains(reason), "{}", tiny.log());
    }
    Ok(())
}
esatto_tests::for_each_service!(a_full_file);

#[test]
fn a_file_below_its_largest_size_is_complete() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _program = program(&harness);
    let config = "write_into_file: true max_file_size_bytes: 100000000 duration_ms: 300";
    let mut record = record(&harness, config, &["-o", "trace"]);
    record.wait_ok();
    assert!(record.log().contains("Open it in") && !record.log().contains("max_file_size_bytes"), "{}", record.log());
}

#[track_caller]
fn assert_lost(record: &mut Program, name: &str) {
    record.signal(Signal::INT);
    assert_eq!(record.wait().code(), Some(1), "{}", record.log());
    let log = record.log();
    let reason = "another program has removed or replaced it during the recording";
    assert!(log.contains(&format!("lost the trace file {name}: {reason}")) && !log.contains("Wrote"), "{log}");
}

#[test]
fn a_removed_file() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _program = program(&harness);
    let by_service = "write_into_file: true file_write_period_ms: 100";
    let has_bytes = |name: &str| {
        let path = harness.path(name);
        wait_until("the file grows", || fs::metadata(&path).ok().filter(|meta| meta.len() > 5000));
        path
    };
    // Read by `record`, written by the service, created by the service.
    let mut command = harness.command(esatto_bin());
    let mut drain = harness.start("drain", command.args(["record", "-o", "drain"]));
    fs::remove_file(has_bytes("drain")).expect("it is there");
    assert_lost(&mut drain, "drain");

    let mut lent = record(&harness, by_service, &["-o", "lent"]);
    fs::remove_file(has_bytes("lent")).expect("it is there");
    harness.write("lent", "another file");
    assert_lost(&mut lent, "lent");
    assert_eq!(fs::read(harness.path("lent")).expect("a file"), b"another file");

    let path = harness.path("named");
    let mut named = record(&harness, &format!("{by_service} output_path: \"{}\"", path.display()), &[]);
    // `record` has seen it by then.
    has_bytes("named");
    fs::remove_file(&path).expect("it is there");
    assert_lost(&mut named, path.to_str().expect("text"));
}

#[test]
fn a_file_with_another_name_now() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _program = program(&harness);
    let folder = harness.path("folder");
    fs::create_dir(&folder).expect("a folder");
    let (old, new, far) = (harness.path("old"), harness.path("new"), folder.join("far"));
    let renamed = |mut record: Program, to: &PathBuf| {
        let meta = wait_until("the file grows", || fs::metadata(&old).ok().filter(|meta| meta.len() > 5000));
        fs::rename(&old, to).expect("a folder to write to");
        record.signal(Signal::INT);
        assert_eq!(record.wait().code(), Some(1));
        (record.log(), format!("find -inum {}", meta.ino()))
    };
    let is_in = |path: &PathBuf| format!("; the trace is in {}\n", path.display());
    for to in [&new, &far] {
        let mut command = harness.command(esatto_bin());
        let (log, _) = renamed(harness.start("record", command.args(["record", "-o", "old"])), to);
        assert!(log.ends_with(&is_in(to)), "{log}");
    }
    // Here the kernel does not know the new name.
    let lent = || record(&harness, "write_into_file: true file_write_period_ms: 100", &["-o", "old"]);
    let (log, _) = renamed(lent(), &new);
    assert!(log.ends_with(&is_in(&new)), "{log}");
    let (log, search) = renamed(lent(), &far);
    assert!(log.contains(&is_in(&far)) || log.contains(&search), "{log}");
    assert!(!log.contains("(deleted)"), "{log}");
}

#[test]
fn an_empty_file_that_the_service_writes_keeps_its_bytes() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _program = program(&harness);
    for is_renamed in [false, true] {
        let (path, new) = (harness.write("old", ""), harness.path("new"));
        let config = "write_into_file: true file_write_period_ms: 100";
        let mut record = record(&harness, config, &["-o", "old"]);
        let bytes = wait_until("the file grows", || {
            let bytes = fs::metadata(&path).expect("a file").len();
            (bytes > 5000).then_some(bytes)
        });
        let path =
            if is_renamed { fs::rename(&path, &new).map(|()| new) } else { Ok(path) }.expect("a folder to write to");
        record.signal(Signal::INT);
        assert_eq!(record.wait().code(), Some(i32::from(is_renamed)), "{}", record.log());
        assert!(fs::metadata(&path).expect("a file").len() >= bytes, "{}", record.log());
        let hint = format!("the trace is in {}", path.display());
        assert_eq!(record.log().contains(&hint), is_renamed, "{}", record.log());
    }
}
