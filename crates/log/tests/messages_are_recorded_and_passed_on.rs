//! The way of a message into the trace. This is a separate program, because a program has one
//! logger.

use std::fmt;
use std::sync::Mutex;

use esatto::{Backend, Session, Tracing};
use esatto_trace::{AnnotationValue, Trace};
use log::{Level, LevelFilter, Log, Metadata, Record};

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Other;

impl Log for Other {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Info
    }

    fn log(&self, record: &Record<'_>) {
        SEEN.lock().expect("is not poisoned").push(record.args().to_string());
    }

    fn flush(&self) {}
}

/// Logs while it is formatted for a log message.
struct Nosy;

impl fmt::Display for Nosy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        log::warn!("formatting");
        f.write_str("nosy")
    }
}

#[test]
fn messages_are_recorded_and_passed_on() {
    let _tracing = Tracing::builder().in_process().start().expect("connects");
    esatto_log::Logger::new().max_level(LevelFilter::Debug).and(Other).install().expect("is the first");
    log::info!("before");
    let session = Session::start(Backend::InProcess, esatto::track_events(1024)).expect("starts");
    let long = "ä".repeat(1000);
    log::error!(target: "a target", "lost {} things", 3);
    log::debug!("{}", Nosy);
    log::trace!("too verbose");
    log::info!("{long}");
    let trace = Trace::read(&session.stop().expect("stops")[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);

    let events: Vec<_> = trace.events.iter().map(|event| event.name.as_deref().unwrap_or_default()).collect();
    assert_eq!(events[..3], ["lost 3 things", "formatting", "nosy"]);
    assert_eq!((events[3], events.len()), (&long[..256], 4));
    let target = &trace.events[0].annotations[0];
    assert_eq!((target.name.as_str(), &target.value), ("target", &AnnotationValue::String("a target".into())));
    let seen = SEEN.lock().expect("is not poisoned");
    assert_eq!(seen[..3], ["before", "lost 3 things", "formatting"]);
    assert_eq!(seen.last(), Some(&long));
}
