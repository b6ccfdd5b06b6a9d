//! `esatto record -- COMMAND` says that a signal has ended the command, as shells do, and does not
//! advise what it has done itself.

use esatto_tests::Harness;

esatto::categories! {
    static APP = "app";
}

#[test]
fn before_their_first_event_and_after_it() {
    let again = esatto_tests::again!(before_their_first_event_and_after_it);
    if let Some(events) = again.role() {
        let tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start().expect("starts");
        if events == "1" {
            esatto::instant!(APP, "before the crash");
            assert!(tracing.flush(esatto_tests::DEADLINE), "the service is there");
        }
        std::process::abort();
    }
    let harness = Harness::new();
    for events in ["0", "1"] {
        let mut command = again.recorded(&harness, events, &["--force", "-o", "trace"]);
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(134), "{said}");
        assert!(said.contains("The command was ended by signal 6 (SIGABRT)"), "{said}");
        assert!(!said.contains("ESATTO_WAIT_MS"), "{said}");
        let is_empty = said.contains("had no event: ") && said.contains("wait for the recording by themselves");
        assert_eq!(is_empty, events == "0", "{said}");
    }
}
