use std::sync::LazyLock;
use std::time::Duration;

use esatto::{Backend, Session, SessionConfig};
use esatto_trace::Trace;

use super::TRACING;

esatto::categories! { static EARLY = "early"; }

/// As in a function that returns early.
#[test]
fn without_a_stop() {
    LazyLock::force(&TRACING);
    let path = std::env::temp_dir().join(format!("esatto-dropped-session-{}", std::process::id()));
    // The service writes at the start, and then not before the end.
    let config = SessionConfig::new().categories(["early"]).stall().file_write_period(Duration::from_secs(60));
    let session = Session::start(Backend::InProcess, config.write_into(&path)).expect("starts");
    assert!(TRACING.wait_until_enabled(&EARLY, Duration::from_secs(10)));
    for n in 0..100_u32 {
        esatto::instant!(EARLY, "before the drop", n = n);
    }
    drop(session);
    let trace = Trace::read(std::fs::File::open(&path).expect("it is there"));
    std::fs::remove_file(&path).expect("it is there");
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    assert_eq!(trace.events.len(), 100);
}
