//! The way of a message into the trace. This is a separate program, because a program has one
//! logger.

use std::fmt;
use std::sync::Mutex;

use esatto::{Backend, Session, SessionConfig, Tracing};
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

/// Returns the annotation `message` of each event.
fn messages(trace: &Trace) -> Vec<&str> {
    let annotations = trace.events.iter().map(|event| &event.annotations[0]);
    let texts = annotations.map(|annotation| match &annotation.value {
        AnnotationValue::String(text) if annotation.name == "message" => text.as_str(),
        other => panic!("{}: {other:?}", annotation.name),
    });
    texts.collect()
}

#[test]
fn messages_are_recorded_and_passed_on() {
    let _tracing = Tracing::builder().in_process().start().expect("connects");
    esatto_log::Logger::new().max_level(LevelFilter::Debug).and(Other).install().expect("is the first");
    log::info!("before");
    let session = Session::start(Backend::InProcess, SessionConfig::new()).expect("starts");
    log::debug!("not asked for");
    log::info!("asked for");
    let trace = Trace::read(&session.stop().expect("stops")[..]);
    assert_eq!(messages(&trace), ["asked for"], "the level debug has the tag debug");

    let session = Session::start(Backend::InProcess, SessionConfig::new().tags(["debug"])).expect("starts");
    let line = line!();
    let long = "ä".repeat(1000);
    log::error!(target: "a target", "lost {} things", 3);
    log::debug!("{}", Nosy);
    log::trace!("too verbose");
    log::info!("{long}");
    let trace = Trace::read(&session.stop().expect("stops")[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);

    assert_eq!(messages(&trace), ["lost 3 things", "formatting", "nosy", &long]);
    let name = |event: usize| trace.events[event].name.as_deref().unwrap_or_default();
    assert_eq!(name(0), format!("messages_are_recorded_and_passed_on:{}", line + 2), "the place of the call");
    assert_eq!(name(2), format!("messages_are_recorded_and_passed_on:{}", line + 3));
    let target = &trace.events[0].annotations[1];
    assert_eq!((target.name.as_str(), &target.value), ("target", &AnnotationValue::String("a target".into())));
    let seen = SEEN.lock().expect("is not poisoned");
    assert_eq!(seen[..4], ["before", "asked for", "lost 3 things", "formatting"]);
    assert_eq!(seen.last(), Some(&long));
}
