//! Errors of the tracing service that runs in this process. It logs them, and a user who sees no
//! log would search for the reason in the recorded program.

use std::sync::OnceLock;

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::failure::{Failure, limit_advice};

/// The crates that are the service.
const TARGETS: [&str; 2] = ["esatto_daemon", "esatto_service"];

/// The first error. Later ones often follow from it.
static FIRST: OnceLock<String> = OnceLock::new();

struct Collector;

impl Log for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() == Level::Error && TARGETS.iter().any(|target| metadata.target().starts_with(target))
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            FIRST.get_or_init(|| record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Remembers errors from now on, unless they go to a log.
pub(crate) fn collect() {
    if log::set_logger(&Collector).is_ok() {
        log::set_max_level(LevelFilter::Error);
    }
}

/// Returns the first error, with advice if there is any.
pub(crate) fn first() -> Option<Failure> {
    let why = FIRST.get()?;
    let failure = Failure::new("the service of this command had an error", why);
    Some(match limit_advice(why) {
        Some(advice) => failure.hint(advice),
        None => failure,
    })
}
