//! The progress of `record` on terminals of every width, and `--quiet`, `--verbose`, `--json`.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Program, Signal, Terminal, esatto_bin, wait_until};
use serde_json::Value;
use std::process::Command;

const ENDLESS: Workload = Workload { threads: 1, rounds: 1 << 40, pause_us: 500 };

/// A service, and a program that emits events for longer than any recording here.
fn programs(harness: &Harness) -> [Program; 2] {
    let service = harness.service(Implementation::Ours);
    let program = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_data_source("track_event");
    [service, program]
}

fn record(harness: &Harness, args: &[&str]) -> Command {
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-o", "trace"]).args(args).env("LC_ALL", "C").env_remove("NO_COLOR");
    command
}

/// Returns the states of the progress line, without the sequences that paint it.
fn lines(shown: &str) -> Vec<String> {
    let mut text = String::new();
    let mut rest = shown.chars();
    while let Some(c) = rest.next() {
        if c == '\u{1b}' {
            // A control sequence ends in a letter.
            rest.by_ref().take(1).for_each(drop);
            rest.by_ref().find(char::is_ascii_alphabetic);
        } else {
            text.push(c);
        }
    }
    text.split(['\r', '\n']).map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_wide_terminal_shows_rate_size_time_and_losses() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let mut terminal = Terminal::start(&mut record(&harness, &["-t", "3s"]), 100);
    let (status, shown) = terminal.wait();
    assert!(status.success(), "{shown}");
    let whole = lines(&shown).into_iter().find(|line| line.contains("KiB/s"));
    let line = whole.unwrap_or_else(|| panic!("no rate:\n{shown}"));
    for part in ["recording ", " s left, ", " packets, ", "0 lost"] {
        assert!(line.contains(part), "{line}");
    }
    assert!(shown.is_ascii() && !shown.contains("\u{1b}[3"), "no colours in {shown:?}");
    assert!(shown.contains("`esatto info trace`"), "{shown}");
}

#[test]
fn a_terminal_of_20_columns_shows_what_fits() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let mut terminal = Terminal::start(&mut record(&harness, &["-t", "2s"]), 20);
    let (status, shown) = terminal.wait();
    assert!(status.success(), "{shown}");
    // The last lines, below the progress, are for reading, and the terminal breaks them.
    let progress: Vec<String> =
        lines(&shown).into_iter().filter(|line| line.starts_with(['|', '/', '-', '\\'])).collect();
    assert!(progress.len() > 3 && progress.iter().all(|line| line.len() < 20), "{progress:#?}");
    assert!(progress.iter().any(|line| line.contains("KiB")), "{progress:#?}");
}

#[test]
fn the_progress_has_other_characters_if_the_locale_has_them() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let mut command = record(&harness, &["-t", "1s"]);
    let mut terminal = Terminal::start(command.env("LC_ALL", "C.UTF-8"), 100);
    let (status, shown) = terminal.wait();
    assert!(status.success() && shown.contains(" \u{b7} "), "{shown}");
}

#[test]
fn quiet_leaves_only_errors_and_losses() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let mut quiet = harness.start("record", &mut record(&harness, &["--quiet", "-t", "300ms"]));
    quiet.wait_ok();
    assert_eq!(quiet.log(), "");
    let mut terminal = Terminal::start(&mut record(&harness, &["--quiet", "-t", "300ms"]), 80);
    assert_eq!(terminal.wait().1, "");
    let mut failed = harness.start("record", &mut record(&harness, &["--quiet", "-c", "missing.cfg"]));
    assert_eq!(failed.wait().code(), Some(1));
    assert!(failed.log().starts_with("esatto: cannot read the config missing.cfg"), "{}", failed.log());
    let mut empty = harness.start("record", &mut record(&harness, &["--quiet", "--category", "none", "-t", "300ms"]));
    assert_eq!(empty.wait().code(), Some(3));
    assert!(empty.log().contains("no category matches \"none\""), "{}", empty.log());
}

#[test]
fn verbose_tells_what_is_recorded() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let mut verbose = harness.start("record", &mut record(&harness, &["--verbose", "-t", "300ms"]));
    verbose.wait_ok();
    let log = verbose.log();
    assert!(log.contains(" records track_event into a buffer of 64.0 MiB.\n"), "{log}");
    assert!(log.contains("Programs that were connected: ") && log.contains("esatto-producer"), "{log}");
    let mut both = harness.start("record", &mut record(&harness, &["--verbose", "--quiet"]));
    assert_eq!(both.wait().code(), Some(2));
}

fn json(command: &mut Command) -> (Option<i32>, Value) {
    let output = command.output().expect("it runs");
    let value = serde_json::from_slice(&output.stdout);
    let value = value.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)));
    (output.status.code(), value)
}

#[test]
fn scripts_get_a_summary_as_json() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let (status, summary) = json(&mut record(&harness, &["--json", "-t", "500ms"]));
    assert_eq!(status, Some(0));
    let bytes = std::fs::metadata(harness.path("trace")).expect("a trace").len();
    assert_eq!((&summary["status"], &summary["error"], &summary["file"]), (&0.into(), &Value::Null, &"trace".into()));
    assert_eq!((&summary["bytes"], &summary["has_events"]), (&bytes.into(), &true.into()));
    assert_eq!(
        (&summary["losses"]["chunks_and_packets"], &summary["losses"]["is_end_missing"]),
        (&0.into(), &false.into())
    );
    assert!(summary["seconds"].as_f64().expect("a time") > 0.4, "{summary}");
    assert!(summary["service"].as_str().expect("a version").starts_with("Esatto"), "{summary}");
    assert!(summary["messages"][0].as_str().expect("a line").starts_with("Wrote "), "{summary}");
}

#[test]
fn the_summary_tells_failures_and_the_status_of_the_command() {
    let harness = Harness::new();
    let (status, summary) = json(&mut record(&harness, &["--json", "--", "sh", "-c", "echo out; exit 7"]));
    assert_eq!((status, &summary["status"], &summary["command_status"]), (Some(7), &7.into(), &7.into()));
    assert_eq!(summary["has_events"], false);
    let (status, summary) = json(&mut record(&harness, &["--json"]));
    assert_eq!((status, &summary["status"], &summary["file"]), (Some(1), &1.into(), &Value::Null));
    let error = summary["error"].as_str().expect("a reason");
    assert!(error.starts_with("cannot reach a tracing service at "), "{error}");
}

#[test]
fn a_summary_tells_each_snapshot() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let mut command = record(&harness, &["--json", "--trigger", "slow", "--on-trigger", "snapshot"]);
    let mut program = harness.start("record", &mut command);
    program.wait_for_log("Waiting for the trigger");
    let triggered = harness.command(esatto_bin()).args(["trigger", "slow"]).status().expect("it runs");
    assert!(triggered.success());
    wait_until("the snapshot is told", || program.log().contains("trace.0: trigger").then_some(()));
    program.signal(Signal::INT);
    program.wait_ok();
    let log = program.log();
    let summary: Value = serde_json::from_str(&log[log.find("\n{\n").expect("JSON")..]).expect("JSON");
    assert_eq!((&summary["snapshots"][0]["file"], &summary["file"]), (&"trace.0".into(), &Value::Null));
}
