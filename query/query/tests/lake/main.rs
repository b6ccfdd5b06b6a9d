//! Lakes: exports, crashes, faults, checks, other readers.

mod checks;
mod documentation;
mod exports;
mod faults;
mod kills;
mod object_stores;
mod old_lakes;
#[path = "../queries/peer.rs"]
#[expect(dead_code, reason = "this test has another peer")]
mod peer;
mod readers;
mod s3_server;
#[path = "../queries/traces.rs"]
#[expect(dead_code, reason = "files tell traces apart here")]
mod traces;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use esatto_lake::{CheckOptions, CheckReport, Lake};

const TRACE: &str = "official-v56-track-events.pftrace";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn trace(name: &str) -> String {
    root().join("tests/traces").join(name).to_string_lossy().into_owned()
}

/// All traces, in a fixed order.
fn all_traces() -> &'static [String] {
    static TRACES: OnceLock<Vec<String>> = OnceLock::new();
    TRACES.get_or_init(|| traces::all().into_iter().map(|trace| trace.path.to_string_lossy().into_owned()).collect())
}

/// A folder of a test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lake-{name}"));
    let _may_be_missing = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder can be made");
    path
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esatto-query"));
    command.args(args);
    // No settings of this machine.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_")) {
        command.env_remove(name);
    }
    command
}

fn run(args: &[&str]) -> Output {
    command(args).output().expect("the program runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs the program, which must succeed without a message, and returns its output.
fn ok(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{args:?}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

/// Exports traces into a lake, which must succeed.
fn export(traces: &[&str], lake: &Path, more: &[&str]) -> String {
    let lake = lake.to_string_lossy();
    let mut args = vec!["export"];
    args.extend(traces);
    args.extend(["--to", &lake]);
    args.extend(more);
    ok(&args)
}

/// Asks a lake, or traces, and returns CSV without the line of names.
fn csv(sources: &[&str], sql: &str) -> String {
    let mut args = sources.to_vec();
    args.extend([sql, "--format", "csv"]);
    let text = ok(&args);
    text.split_once('\n').map_or_else(String::new, |(_, rows)| rows.to_owned())
}

/// Reads every file of a lake.
fn check(lake: &Path) -> CheckReport {
    Lake::check(&lake.to_string_lossy(), CheckOptions::default()).expect("there is a lake")
}

/// All files of a lake that are no remains of exports, with their contents.
fn contents(lake: &Path) -> Vec<(String, Vec<u8>)> {
    fn add(folder: &Path, root: &Path, files: &mut Vec<(String, Vec<u8>)>) {
        for entry in std::fs::read_dir(folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                add(&path, root, files);
            } else {
                let name = path.strip_prefix(root).expect("it is in the lake").to_string_lossy().into_owned();
                files.push((name, std::fs::read(&path).expect("a file can be read")));
            }
        }
    }
    let mut files = Vec::new();
    add(lake, lake, &mut files);
    files.sort();
    files
}
