//! `esatto completions` and `esatto man`.

use esatto_tests::{Harness, esatto_bin};
use std::process::Command;

fn script(shell: &str) -> String {
    let output = Command::new(esatto_bin()).args(["completions", shell]).output().expect("it runs");
    assert!(output.status.success() && output.stderr.is_empty());
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns what bash offers for the last of these words.
fn offered(harness: &Harness, words: &[&str]) -> Vec<String> {
    let path = harness.write("completions", script("bash"));
    let program = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _esatto \"$1\" \"${@: -1}\" \
                   \"${@: -2:1}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut command = Command::new("bash");
    let output = command.args(["--norc", "-c", program, "bash"]).arg(path).args(words).output().expect("bash runs");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_presets() {
    let harness = Harness::new();
    assert_eq!(offered(&harness, &["esatto", "doc"]), ["doctor"]);
    assert_eq!(offered(&harness, &["esatto", "config", "ex"]), ["explain"]);
    assert_eq!(offered(&harness, &["esatto", "config", "check", "--st"]), ["--strict"]);
    let presets = offered(&harness, &["esatto", "record", "--preset", ""]);
    assert!(presets.iter().any(|preset| preset == "sched"), "{presets:?}");
    let commands = offered(&harness, &["esatto", ""]);
    assert!(commands.iter().any(|command| command == "record"), "{commands:?}");
    assert!(!commands.iter().any(|command| command == "demo-stage"), "it is hidden: {commands:?}");
}

#[test]
fn scripts_of_all_shells_know_the_commands() {
    for (shell, begin) in [("zsh", "#compdef esatto\n"), ("fish", "# Print an optspec")] {
        let script = script(shell);
        assert!(script.starts_with(begin), "{shell}: {}", &script[..100]);
        assert!(script.contains("doctor") && script.contains("explain") && !script.contains("demo-stage"), "{shell}");
    }
    let output = Command::new(esatto_bin()).args(["completions", "tcsh"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn each_command_has_a_man_page() {
    let harness = Harness::new();
    let mut command = harness.command(esatto_bin());
    let output = command.args(["man", "share/man"]).output().expect("it runs");
    assert!(output.status.success() && output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut names: Vec<String> = std::fs::read_dir(harness.path("share/man"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    let programs = [
        "perfetto.1",
        "tracebox.1",
        "traced.1",
        "traced_probes.1",
        "traced_relay.1",
        "trigger_perfetto.1",
        "websocket_bridge.1",
    ];
    for name in ["esatto.1", "esatto-record.1", "esatto-config-new.1", "esatto-doctor.1"].into_iter().chain(programs) {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("demo-stage")), "{names:?}");
    let page = std::fs::read_to_string(harness.path("share/man/esatto-doctor.1")).expect("a page");
    assert!(page.contains(".TH esatto-doctor 1") && page.contains("1 something is missing"), "{page}");
    // A program that parses its own command line has its own options on its page.
    for (name, option) in [("traced", "--metrics-file"), ("esatto-traced", "--metrics-file"), ("perfetto", "--txt")] {
        let page = std::fs::read_to_string(harness.path(format!("share/man/{name}.1"))).expect("a page");
        assert!(page.contains(&option.replace('-', "\\-")), "{name}: {page}");
    }
    let mut command = harness.command(esatto_bin());
    harness.write("file", "no folder");
    let output = command.args(["man", "file/man"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.starts_with("esatto: cannot write the man pages into file/man: "), "{said}");
}
