//! A program that exits while a session writes into a file: the file has all events.

use std::process::Command;
use std::time::Duration;

use esatto::{Backend, Session, SessionConfig, Tracing};
use esatto_trace::Trace;

esatto::categories! {
    static APP = "app";
}

/// Makes this test program the one that exits.
const FILE: &str = "TEST_FILE_OF_EXIT";

#[test]
fn of_sessions_inside_the_program() {
    if let Some(path) = std::env::var_os(FILE) {
        let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start().expect("connects");
        // The service writes at the start, and then not before the end.
        let config = SessionConfig::new().stall().file_write_period(Duration::from_secs(60)).write_into(path);
        let _session = Session::start(Backend::InProcess, config).expect("starts");
        for n in 0..100_u32 {
            esatto::instant!(APP, "before the exit", n = n);
        }
        std::process::exit(0);
    }
    let path = std::env::temp_dir().join(format!("esatto-exit-{}", std::process::id()));
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    let status = command.args(["--exact", "of_sessions_inside_the_program"]).env(FILE, &path).status();
    assert!(status.expect("it runs").success());
    let trace = Trace::read(std::fs::File::open(&path).expect("it is there"));
    std::fs::remove_file(&path).expect("it is there");
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    assert_eq!(trace.events.len(), 100);
}
