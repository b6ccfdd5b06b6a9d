//! `esatto check` says whether traces are sound, what they lost, and what would have prevented it.

use esatto_tests::{Harness, esatto_bin};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("traces/official-v56-{name}.pftrace"))
}

fn check(files: &[&Path], options: &[&str]) -> Output {
    Command::new(esatto_bin()).arg("check").args(options).args(files).output().expect("it runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_sound_one() {
    let output = check(&[&trace("track-events")], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("track-events.pftrace: sound. "), "{}", said(&output));
}

#[test]
fn one_that_lost_data() {
    let output = check(&[&trace("track-events"), &trace("ring-buffer-wrapped")], &[]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("ring-buffer-wrapped.pftrace: data is missing") && text.contains("  lost: "), "{text}");
    assert!(text.contains("size_kb"), "it names the line of the config that helps: {text}");
}

#[test]
fn a_damaged_one() {
    let harness = Harness::new();
    let mut bytes = std::fs::read(trace("track-events")).expect("a trace");
    bytes.truncate(bytes.len() - 7);
    harness.write("t.pftrace", &bytes);
    let output = check(&[&harness.path("t.pftrace")], &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json[0]["is_sound"], false);
    assert_eq!(json[0]["findings"][0]["level"], "damaged");
}

#[test]
fn one_that_is_not_there() {
    let output = check(&[Path::new("/nonexistent"), &trace("track-events")], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("cannot read the trace /nonexistent"), "{}", said(&output));
    assert!(said(&output).contains("track-events.pftrace: sound. "), "the others are checked: {}", said(&output));
}
