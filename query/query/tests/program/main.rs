//! The program `esatto-query`: its arguments, its output, its errors.

mod damaged_traces;
mod documentation;
mod errors;
mod formats;
mod interactive;
mod many_traces;
mod statements;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TRACE: &str = "official-v56-track-events.pftrace";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn trace(name: &str) -> String {
    root().join("tests/traces").join(name).to_string_lossy().into_owned()
}

/// A folder of a test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("program-{name}"));
    let _may_be_missing = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder can be made");
    path
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esatto-query"));
    command.args(args);
    command
}

fn run(args: &[&str]) -> Output {
    command(args).output().expect("the program runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs the program, which must succeed, and returns its output.
fn rows(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{args:?}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

/// Asks the trace of track events, and returns CSV without the line of names.
fn csv(sql: &str) -> String {
    let text = rows(&[&trace(TRACE), sql, "--format", "csv"]);
    text.split_once('\n').map_or_else(String::new, |(_, rows)| rows.to_owned())
}

/// Runs the program, which must fail with an error of SQL, and returns its message.
fn error(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
    assert!(output.stdout.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    let message = stderr(&output);
    assert!(message.starts_with("esatto-query: ") && !message.contains("panicked"), "{message}");
    message
}
