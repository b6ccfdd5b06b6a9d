//! `esatto config explain`: a comment before each line, and the defaults that hold.

use esatto_tests::{Harness, Terminal, esatto_bin};

fn explained(harness: &Harness, file: &str) -> String {
    let mut command = harness.command(esatto_bin());
    let output = command.args(["config", "explain", file]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn run(harness: &Harness, args: &[&str]) -> Vec<u8> {
    let output = harness.command(esatto_bin()).arg("config").args(args).output().expect("it runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn each_field_of_a_preset_has_a_comment() {
    let harness = Harness::new();
    harness.write("my.cfg", run(&harness, &["show", "sched"]));
    let text = explained(&harness, "my.cfg");
    assert!(
        text.contains("      # An event of the kernel: a CPU goes from one thread to another.\n      ftrace_events: ")
    );
    assert!(text.contains("# duration_ms is not set: the recording goes on until it is stopped.\n"), "{text}");
    // It is still the same config, and without mistakes.
    harness.write("explained.cfg", &text);
    let encoded = |name: &str| run(&harness, &["convert", name, "--to", "binary"]);
    assert_eq!(encoded("explained.cfg"), encoded("my.cfg"));
}

#[test]
fn the_comments_of_the_user_stay() {
    let harness = Harness::new();
    harness.write("my.cfg", "# Mine.\nbuffers {\n  size_kb: 4096 # enough\n}\n");
    let text = explained(&harness, "my.cfg");
    assert!(text.starts_with("# Mine.\n# A buffer in the memory of the service."), "{text}");
    assert!(text.contains("\n  # Its size: 4 MiB.\n  size_kb: 4096 # enough\n}\n"), "{text}");
}

#[test]
fn other_forms_are_explained_as_text() {
    let harness = Harness::new();
    harness.write("my.json", r#"{ "buffers": [{ "sizeKb": 4096, "fillPolicy": "DISCARD" }] }"#);
    let text = explained(&harness, "my.json");
    let part = "  # What happens when it is full: DISCARD, data that come later are dropped. For the time after the\n  # \
                start.\n  fill_policy: DISCARD\n";
    assert!(text.contains(part), "{text}");
}

#[test]
fn each_lockdown_mode_has_its_own_comment() {
    let harness = Harness::new();
    for (mode, note) in [
        ("LOCKDOWN_UNCHANGED", "LOCKDOWN_UNCHANGED, as before"),
        ("LOCKDOWN_CLEAR", "LOCKDOWN_CLEAR, those of all users again"),
        ("LOCKDOWN_SET", "LOCKDOWN_SET, only those of the service's own user, until"),
        ("2", "LOCKDOWN_SET, only those"),
    ] {
        harness.write("my.cfg", format!("buffers {{ size_kb: 4096 }}\nlockdown_mode: {mode}\n"));
        let text = explained(&harness, "my.cfg").replace("\n# ", " ");
        let field = "Programs that the service records from now on, in all recordings: ";
        assert!(text.contains(&format!("{field}{note}")), "{text}");
    }
}

#[test]
fn mistakes_are_reported_instead() {
    let harness = Harness::new();
    harness.write("my.cfg", "buffers { size_mb: 1 }\n");
    let mut command = harness.command(esatto_bin());
    let output = command.args(["config", "explain", "my.cfg"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{said}");
    assert!(said.starts_with("esatto: the config my.cfg has 1 mistake:\nmy.cfg:1:11 error: "), "{said}");
}

#[test]
fn comments_fit_into_a_narrow_terminal() {
    let harness = Harness::new();
    harness.write("my.cfg", "duration_ms: 10000\n");
    let mut command = harness.command(esatto_bin());
    command.env("NO_COLOR", "1").env("LC_ALL", "C").args(["config", "explain", "my.cfg"]);
    let (status, shown) = Terminal::start(&mut command, 20).wait();
    assert!(status.success());
    assert!(shown.starts_with("# The recording ends\n# after this time:\n# 10 s.\nduration_ms: 10000\n"), "{shown}");
}

#[test]
fn nothing_in_a_config_acts_on_the_terminal() {
    let harness = Harness::new();
    harness.write("my.cfg", "unique_session_name: \"\u{9b}31m\u{202e}\" # \u{2066}\n");
    let text = explained(&harness, "my.cfg");
    assert!(!text.contains('\u{9b}') && !text.contains('\u{202e}') && !text.contains('\u{2066}'), "{text}");
}
