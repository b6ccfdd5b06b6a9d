//! A trace that cannot be sorted for want of room, or of descriptors, is not called damaged.

use crate::trace;
use esatto_tests::{Harness, esatto_bin};
use std::path::PathBuf;
use std::process::{Command, Output};

/// Copies of a trace whose records take several times the memory in which they are sorted.
const COPIES: usize = 200;

/// Writes a trace that cannot be sorted in memory.
fn large(harness: &Harness) -> PathBuf {
    harness.write("large.pftrace", std::fs::read(trace("track-events")).expect("a trace").repeat(COPIES))
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command that finds no folder for temporary files.
fn without_folder(harness: &Harness, arguments: &[&str]) -> Output {
    let mut command = Command::new(esatto_bin());
    command.env("TMPDIR", harness.path("none")).current_dir(harness.folder());
    command.args(arguments).output().expect("it runs")
}

#[test]
fn but_the_reason_and_a_remedy_are_told() {
    let harness = Harness::new();
    large(&harness);
    let reason = format!("because the temporary file in {} could not be written: ", harness.path("none").display());
    for arguments in [
        &["check", "large.pftrace"][..],
        &["info", "large.pftrace"],
        &["report", "large.pftrace"],
        &["report", "large.pftrace", "-o", "-"],
        &["convert", "large.pftrace", "--to", "chrome-json", "-o", "large.json"],
    ] {
        let output = without_folder(&harness, arguments);
        let said = if arguments[0] == "check" { &output.stdout } else { &output.stderr };
        let text = String::from_utf8_lossy(said);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
        assert!(text.contains(&reason), "{arguments:?}: {text}");
        assert!(text.contains("he trace itself may be sound: set TMPDIR to a folder with room"), "{text}");
        assert!(!text.contains("damaged") && !text.contains(".tmp"), "{arguments:?}: {text}");
    }
    assert!(!harness.path("large.json").exists());
    let page = std::fs::read_to_string(harness.path("large.html")).expect("a page");
    assert!(page.contains("The trace itself may be sound"));

    let output = without_folder(&harness, &["check", "--json", "large.pftrace"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((output.status.code(), &json[0]["is_sound"]), (Some(1), &false.into()));
    assert_eq!(json[0]["verdict"], "cannot be read wholly");
    assert_eq!(json[0]["findings"][0]["level"], "unread");
}

#[test]
fn and_damages_are_told_beside_it() {
    let harness = Harness::new();
    let mut bytes = std::fs::read(large(&harness)).expect("a trace");
    bytes.truncate(bytes.len() - 7);
    harness.write("large.pftrace", &bytes);
    let output = without_folder(&harness, &["check", "large.pftrace"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("large.pftrace: damaged. ") && text.contains("  unread: the trace could not"), "{text}");
    let text = said(&without_folder(&harness, &["info", "large.pftrace"]));
    assert!(text.contains("large.pftrace is damaged ") && !text.contains("at byte 0:"), "{text}");
}

#[test]
fn it_needs_few_descriptors() {
    let harness = Harness::new();
    let file = large(&harness);
    let check = |limit: &str| {
        let mut command = Command::new("sh");
        // Inherited descriptors would count.
        let closed = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-;";
        command.args(["-c", &format!("{closed} {limit} exec \"$0\" check \"$1\"")]).arg(esatto_bin()).arg(&file);
        command.output().expect("it runs")
    };
    let (all, few) = (check(""), check("ulimit -n 7;"));
    assert!(said(&all).contains(" slices, "), "{}", said(&all));
    assert_eq!((said(&few), few.status), (said(&all), all.status));
}
