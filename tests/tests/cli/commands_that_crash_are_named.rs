//! `esatto record -- COMMAND` says that a signal has ended the command, as shells do, and does not
//! advise what it has done itself.

use esatto_tests::{Harness, esatto_bin};

esatto::categories! {
    static APP = "app";
}

/// Makes this test program the one that is recorded.
const CRASH: &str = "TEST_CRASH";

#[test]
fn before_their_first_event_and_after_it() {
    let test = concat!(module_path!(), "::before_their_first_event_and_after_it");
    let test = test.split_once("::").expect("a module of a crate").1;
    if let Some(events) = std::env::var_os(CRASH) {
        let tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start().expect("starts");
        if events == "1" {
            esatto::instant!(APP, "before the crash");
            assert!(tracing.flush(esatto_tests::DEADLINE), "the service is there");
        }
        std::process::abort();
    }
    let harness = Harness::new();
    let this = std::env::current_exe().expect("a program");
    for (events, status) in [("0", 134), ("1", 134)] {
        let mut command = harness.command(esatto_bin());
        command.env(CRASH, events).args(["record", "--force", "-o", "trace", "--"]).arg(&this);
        let output = command.args(["--exact", test]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains("The command was ended by signal 6 (SIGABRT)"), "{said}");
        assert!(!said.contains("ESATTO_WAIT_MS"), "{said}");
        let is_empty = said.contains("had no event: ") && said.contains("wait for the recording by themselves");
        assert_eq!(is_empty, events == "0", "{said}");
    }
}
