//! The page has the slices that the trace processor finds, and files are never replaced by mistake.

use esatto_tests::tiny_disk::{DISK_BYTES, TinyDisk};
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Peer, esatto_bin, skip, tp};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns a trace that Perfetto's programs have written.
pub(crate) fn trace(name: &str) -> Vec<u8> {
    std::fs::read(path_of(name)).expect("it is in the tree")
}

fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("traces/official-v56-{name}.pftrace"))
}

/// Returns a trace that ends within a packet.
pub(crate) fn torn() -> Vec<u8> {
    let mut trace = trace("track-events");
    trace.truncate(trace.len() - 7);
    trace
}

fn report(harness: &Harness, args: &[&str]) -> Output {
    let mut command = Command::new(esatto_bin());
    command.arg("report").args(args).current_dir(harness.path(""));
    command.output().expect("it runs")
}

/// Writes the page of a trace with this title.
pub(crate) fn page_of(harness: &Harness, trace: &[u8], title: &str) -> PathBuf {
    // A title may not be the name of a file.
    let report = esatto_report::Report::read(trace, title);
    let page = harness.path("page.html");
    let mut file = std::fs::File::create(&page).expect("a file");
    report.write(&mut file).expect("a page");
    page
}

/// Plays a scenario of `browser.mjs` on a page.
pub(crate) fn play(harness: &Harness, page: &Path, scenario: &str) {
    play_with(harness, page, scenario, &serde_json::Value::Null);
}

/// Plays a scenario that knows some facts of the trace.
pub(crate) fn play_with(harness: &Harness, page: &Path, scenario: &str, facts: &serde_json::Value) {
    let picture = match std::env::var_os("ESATTO_SCREENSHOTS") {
        Some(folder) => Path::new(&folder).join(format!("report-{scenario}.png")),
        None => harness.path("picture.png"),
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/browser.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(esatto_tests::node_modules()).arg(page).arg(picture).arg(scenario).arg(facts.to_string());
    let output = esatto_tests::ui::in_turn(|| command.output().expect("Node.js"));
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success() && out.trim() == "fine", "{out}{err}");
}

#[test]
fn as_many_slices_as_the_trace_processor_finds() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        for name in ["track-events", "ring-buffer-wrapped", "long-two-buffers", "deflate"] {
            let trace = path_of(name);
            let output = report(&harness, &[trace.to_str().expect("a path"), "-o", &format!("{name}.html")]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{said}");
            let rows = tp::rows(&trace, "select count(*) as slices from slice");
            assert!(said.contains(&format!("{} slices", rows[0].int("slices"))), "{name}: {said}");
        }
        Ok(())
    });
}

#[test]
fn a_page_is_beside_its_trace_and_replaced_by_the_next_one() {
    let harness = Harness::new();
    harness.write("t.pftrace", trace("track-events"));
    for _ in 0..2 {
        let output = report(&harness, &["t.pftrace"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let page = std::fs::read_to_string(harness.path("t.html")).expect("the page");
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(!page.contains("http://") && !page.contains("https://"), "the page names no address");
}

#[test]
fn record_writes_the_page_beside_the_trace() {
    let harness = Harness::new();
    let application =
        harness.application_command(Implementation::Ours, Workload { threads: 1, rounds: 20, pause_us: 0 });
    let mut command = harness.command(esatto_bin());
    command.args(["record", "--report", "-o", "t.pftrace", "--"]).arg(application.get_program());
    let mut record = harness.start("esatto-record", command.args(application.get_args()));
    record.wait_ok();
    assert!(record.log().contains("Wrote the report t.html"), "{}", record.log());
    let page = std::fs::read_to_string(harness.path("t.html")).expect("the page");
    assert!(page.starts_with("<!doctype html>"));
}

#[test]
fn other_files_are_not_replaced() {
    let harness = Harness::new();
    harness.write("t.pftrace", trace("track-events"));
    harness.write("t.html", "<p>mine");
    let output = report(&harness, &["t.pftrace"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the file is there, and it is no report") && said.contains("--force"), "{said}");
    assert_eq!(std::fs::read(harness.path("t.html")).expect("it is there"), b"<p>mine");
    assert!(report(&harness, &["t.pftrace", "--force"]).status.success());
}

#[test]
fn a_torn_trace_is_shown_as_far_as_it_goes() {
    let harness = Harness::new();
    harness.write("t.pftrace", torn());
    let output = report(&harness, &["t.pftrace"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("1 errors of the file"), "{said}");
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let harness = Harness::new();
    harness.write("t.pftrace", "#!/bin/sh\n");
    let output = report(&harness, &["t.pftrace"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("t.pftrace is not a Perfetto trace"), "{said}");
    assert!(!harness.path("t.html").exists());
}

#[test]
fn a_full_disk_leaves_no_half_page() {
    skip(|| {
        let harness = Harness::new();
        let disk = TinyDisk::mount(harness.path("disk"))?;
        harness.write("t.pftrace", trace("track-events"));
        std::fs::write(disk.path().join("rest"), vec![1; DISK_BYTES as usize - (64 << 10)]).expect("room");
        let page = disk.path().join("t.html");
        let output = report(&harness, &["t.pftrace", "-o", page.to_str().expect("a path")]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("cannot write the report") && said.contains("No space left"), "{said}");
        let left: Vec<_> =
            std::fs::read_dir(disk.path()).expect("a folder").map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["rest"]);
        Ok(())
    });
}

#[test]
fn a_device_is_written_to_and_its_failure_is_told() {
    let harness = Harness::new();
    harness.write("t.pftrace", trace("track-events"));
    let output = report(&harness, &["t.pftrace", "-o", "/dev/full"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write the report /dev/full") && said.contains("No space left"), "{said}");
}

#[test]
fn only_its_owner_can_read_the_page() {
    let harness = Harness::new();
    harness.write("t.pftrace", trace("track-events"));
    assert!(report(&harness, &["t.pftrace"]).status.success());
    let mode = std::fs::metadata(harness.path("t.html")).expect("the page").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
