//! `esatto config new`: by questions on a terminal, and by options without one.

use esatto_protozero::Owned as _;
use esatto_schema::TraceConfig;
use esatto_tests::{Harness, Terminal, esatto_bin};
use std::process::{Command, Output};

fn new(harness: &Harness, args: &[&str]) -> Output {
    let mut command = harness.command(esatto_bin());
    command.args(["config", "new"]).args(args).output().expect("it runs")
}

/// Returns the config in a file, which must have no mistakes and no warnings.
fn config(harness: &Harness, file: &str) -> TraceConfig {
    let run = |args: &[&str]| harness.command(esatto_bin()).arg("config").args(args).output().expect("it runs");
    let checked = run(&["check", "--strict", file]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    TraceConfig::decode(&run(&["convert", file, "--to", "binary"]).stdout).expect("a config")
}

/// Starts the questions.
fn asked(harness: &Harness, columns: u16, args: &[&str]) -> Terminal {
    let mut command: Command = harness.command(esatto_bin());
    command.env("NO_COLOR", "1").env("LC_ALL", "C").args(["config", "new"]).args(args);
    Terminal::start(&mut command, columns)
}

/// Answers each question, when it is shown.
fn answer(terminal: &mut Terminal, answers: &[(&str, &str)]) {
    let mut seen = 0;
    for (question, answer) in answers {
        seen = terminal.wait_for(question, seen);
        terminal.type_line(answer);
    }
}

#[test]
fn questions_lead_to_a_config() {
    let harness = Harness::new();
    let mut terminal = asked(&harness, 80, &[]);
    let answers = [
        ("What do you want to record?", "6"),
        ("[all]:", "net, db.*"),
        ("Where do the data go", "1"),
        ("How much memory? [64M]:", "8M"),
        ("[none]:", ""),
        ("[until Ctrl-C]:", "5s"),
        ("[trace.cfg]:", "my.cfg"),
    ];
    answer(&mut terminal, &answers);
    let (status, shown) = terminal.wait();
    assert!(status.success(), "{shown}");
    let last =
        "Wrote my.cfg. Record with it: `esatto record -c my.cfg`. What it does: `esatto config explain my.cfg`.\n";
    assert!(shown.ends_with(last), "{shown}");
    let config = config(&harness, "my.cfg");
    assert_eq!((config.buffers[0].size_kb, config.duration_ms), (Some(8192), Some(5000)));
    let source = config.data_sources[0].config.as_ref().expect("a config");
    let events = source.track_event_config.as_ref().expect("events");
    assert_eq!(events.enabled_categories, ["net", "db.*"]);
    let mut record = harness.command(esatto_bin());
    let recorded = record.args(["record", "-c", "my.cfg", "-o", "trace", "--", "true"]).output().expect("it runs");
    assert_eq!(recorded.status.code(), Some(3), "{}", String::from_utf8_lossy(&recorded.stderr));
}

#[test]
fn a_wrong_answer_is_asked_again() {
    let harness = Harness::new();
    harness.write("trace.cfg", "mine");
    let mut terminal = asked(&harness, 80, &[]);
    let answers = [
        ("[1]:", "99"),
        ("it is no number from 1 to 6", "sched"),
        ("[all]:", ""),
        ("[1]:", "2"),
        ("[any size]:", "many"),
        ("expected a whole number and a unit: 512K, 64M or 2G", "100M"),
        ("[until Ctrl-C]:", "8 days"),
        ("expected a whole number and a unit", "2h"),
        ("[trace-2.cfg]:", "trace.cfg"),
        ("trace.cfg exists; name another file", ""),
    ];
    answer(&mut terminal, &answers);
    let (status, shown) = terminal.wait();
    assert!(status.success(), "{shown}");
    assert_eq!(std::fs::read(harness.path("trace.cfg")).expect("a file"), b"mine");
    let config = config(&harness, "trace-2.cfg");
    assert_eq!((config.write_into_file, config.max_file_size_bytes), (Some(true), Some(100 << 20)));
    assert_eq!(config.duration_ms, Some(7_200_000));
}

#[test]
fn the_end_of_the_answers_writes_nothing() {
    let harness = Harness::new();
    let mut terminal = asked(&harness, 80, &["-o", "my.cfg"]);
    answer(&mut terminal, &[("[1]:", "1")]);
    let _ = terminal.wait_for("[all]:", 0);
    terminal.type_end();
    let (status, shown) = terminal.wait();
    assert_eq!(status.code(), Some(1));
    let line =
        "esatto: no config was written: the answers have ended; give them as options: `esatto config new --help`\n";
    assert!(shown.ends_with(line), "{shown}");
    assert!(!harness.path("my.cfg").exists());
}

#[test]
fn questions_fit_into_a_narrow_terminal() {
    let harness = Harness::new();
    let mut terminal = asked(&harness, 20, &[]);
    let seen = terminal.wait_for("A number [1]:\n", 0);
    let shown = terminal.shown();
    assert!(shown[..seen].starts_with("What do you want to\n  record?\n  1 default:\n"), "{shown}");
    assert!(shown[..seen].lines().all(|line| line.len() <= 20) && shown.is_ascii(), "{shown}");
    terminal.type_end();
    assert_eq!(terminal.wait().0.code(), Some(1));
}

#[test]
fn without_a_terminal_options_are_the_answers() {
    let harness = Harness::new();
    let output = new(&harness, &["--preset", "sched", "--ring", "30M", "-t", "10s", "-o", "my.cfg"]);
    assert!(output.status.success() && output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let ring = config(&harness, "my.cfg");
    let total: u32 = ring.buffers.iter().filter_map(|buffer| buffer.size_kb).sum();
    assert!(total.abs_diff(30 << 10) < 8 && ring.duration_ms == Some(10_000), "{total}");
    let output = new(&harness, &["--trigger", "slow_frame", "--category", "net,db.*", "-t", "8h"]);
    harness.write("trigger.cfg", output.stdout);
    let trigger = config(&harness, "trigger.cfg").trigger_config.expect("a trigger");
    assert_eq!(trigger.triggers[0].name.as_deref(), Some(&b"slow_frame"[..]));
    assert_eq!(trigger.trigger_timeout_ms, Some(28_800_000));
    // Without any option it is the default preset, and nothing is asked.
    let output = new(&harness, &[]);
    assert!(output.status.success() && output.stderr.is_empty());
    harness.write("default.cfg", output.stdout);
    assert!(config(&harness, "default.cfg").data_sources.len() > 3);
}

#[test]
fn existing_files_stay_unless_that_is_wanted() {
    let harness = Harness::new();
    harness.write("my.cfg", "mine");
    let output = new(&harness, &["-o", "my.cfg"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    let line =
        "esatto: cannot write the config my.cfg: the file exists; name another one, or add --force to overwrite it\n";
    assert_eq!(said, line);
    assert_eq!(std::fs::read(harness.path("my.cfg")).expect("a file"), b"mine");
    assert!(new(&harness, &["--force", "-o", "my.cfg"]).status.success());
    config(&harness, "my.cfg");
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    let harness = Harness::new();
    for args in
        [&["--long", "--ring", "1M"][..], &["--long", "--trigger", "x"], &["--max-size", "1M"], &["--ring", "x"]]
    {
        assert_eq!(new(&harness, args).status.code(), Some(2), "{args:?}");
    }
}
