//! Without a browser: which page is chosen, how it is opened, and mistakes.

use esatto_tests::{Harness, Program, Signal, Skip, esatto_bin, skip};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// `esatto view` in a session without a display and without a copy of the UI.
fn command(harness: &Harness) -> Command {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/official-v56-track-events.pftrace");
    let mut command = harness.command(esatto_bin());
    for name in ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "ESATTO_UI", "XDG_DATA_HOME", "SSH_CONNECTION"] {
        command.env_remove(name);
    }
    command.env("HOME", harness.folder()).arg("view").arg(trace);
    command
}

fn end(mut view: Program) -> String {
    view.wait_for_log("Ctrl-C ends it");
    view.signal(Signal::INT);
    view.wait_ok();
    view.log()
}

/// Makes a folder that looks like a copy of the UI.
fn make_ui(folder: &Path) {
    std::fs::create_dir_all(folder.join("v1.0-abc")).expect("a folder");
    std::fs::write(folder.join("index.html"), "<html>").expect("a file");
    std::fs::write(folder.join("v1.0-abc/frontend_bundle.js"), "").expect("a file");
}

#[test]
fn without_a_copy_of_the_ui_it_shows_the_report_and_says_so() {
    skip(|| {
        if ["/usr/local/share/esatto/ui", "/usr/share/esatto/ui"].iter().any(|path| Path::new(path).exists()) {
            return Err(Skip("this machine has a copy of the UI".into()));
        }
        let harness = Harness::new();
        let log = end(harness.start("view", &mut command(&harness)));
        assert!(log.contains("There is no copy of Perfetto's UI here, so this is our report"), "{log}");
        assert!(log.contains("Open the address yourself: "), "{log}");
        assert_eq!(log.matches("http://127.").count(), 1, "{log}");
        Ok(())
    });
}

#[test]
fn copies_are_found_in_their_order() {
    let harness = Harness::new();
    for folder in ["named", "variable", ".local/share/esatto/ui"] {
        make_ui(&harness.path(folder));
    }
    let log = end(harness.start("view", &mut command(&harness)));
    assert!(log.contains("/.local/share/esatto/ui"), "{log}");
    let log = end(harness.start("view-2", command(&harness).env("ESATTO_UI", "variable")));
    assert!(log.contains("Perfetto's UI v1.0-abc, from variable"), "{log}");
    let log = end(harness.start("view-3", command(&harness).env("ESATTO_UI", "variable").args(["--ui", "named"])));
    assert!(log.contains("Perfetto's UI v1.0-abc, from named"), "{log}");
    let log = end(harness.start("view-4", command(&harness).arg("--report")));
    assert!(!log.contains("Perfetto's UI"), "{log}");
}

#[test]
fn the_browser_of_the_variable_opens_the_address() {
    let harness = Harness::new();
    make_ui(&harness.path("ui"));
    let script = harness.write("browser", "#!/bin/sh\necho \"$@\" > opened.part && mv opened.part opened\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let browser = format!("{} --new-window %s:other", script.display());
    let view = harness.start("view", command(&harness).args(["--ui", "ui"]).env("BROWSER", browser));
    let opened =
        esatto_tests::wait_until("the browser has run", || std::fs::read_to_string(harness.path("opened")).ok());
    let log = end(view);
    let url = log.lines().find(|line| line.starts_with("http://")).expect("the address");
    assert_eq!(opened.trim(), format!("--new-window {url}"));
    assert!(!log.contains("yourself"), "{log}");
}

#[test]
fn mistakes_are_named() {
    let harness = Harness::new();
    harness.write("text", "no archive");
    let run = |args: &[&str]| {
        let output = command(&harness).args(args).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = run(&["--ui", "text"]);
    assert!(said.starts_with("esatto: text is not a copy of Perfetto's UI: it is no zip file"), "{said}");
    assert!(said.contains("`esatto view --help` tells how to get a copy"), "{said}");
    let said = run(&["--ui", "."]);
    assert!(said.starts_with("esatto: . is not a copy of Perfetto's UI: it has no frontend_bundle.js"), "{said}");
    let said = run(&["--ui", "nothing"]);
    assert!(said.starts_with("esatto: cannot read nothing: No such file"), "{said}");
    let mut missing = harness.command(esatto_bin());
    let output = missing.args(["view", "--online", "missing.pftrace"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("esatto: cannot read missing.pftrace: No such file"), "{said}");
}
