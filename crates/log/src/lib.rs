//! Records messages of the `log` facade in Perfetto traces.
//!
//! Each message becomes an instant on the track of its thread. Its name is the place of the call:
//! the last part of the module and the line, such as `server:42`. The text is the argument
//! `message`. A message is also a row of the trace's log, with level, file and line.
//!
//! ```
//! let _tracing = esatto::Tracing::builder().in_process().start()?;
//! esatto_log::Logger::new().install()?;
//!
//! let session = esatto::Session::start(esatto::Backend::InProcess, esatto::track_events(1024))?;
//! log::info!("hello");
//! let trace = session.stop()?;
//! # assert!(trace.windows(5).any(|bytes| bytes == b"hello"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! If the program uses `tracing_subscriber` with its default feature `tracing-log`, it has a logger
//! already. That logger turns messages into events of `tracing`, and `esatto-tracing` records
//! these.
//!
//! A program has one logger. To also give the messages to another logger, pass it to
//! [`and`](Logger::and):
//!
//! ```
//! # struct Stderr;
//! # impl log::Log for Stderr {
//! #     fn enabled(&self, _: &log::Metadata<'_>) -> bool { true }
//! #     fn log(&self, _: &log::Record<'_>) {}
//! #     fn flush(&self) {}
//! # }
//! esatto_log::Logger::new().and(Stderr).install()?;
//! # Ok::<(), log::SetLoggerError>(())
//! ```
//!
//! Messages are in the category `log`. Their target is an argument, not a category: sessions cannot
//! choose messages by their target. Their key-value pairs are left
//! out. While no session records the category, a message costs one load, and is not formatted.
//!
//! Messages of the levels `Debug` and `Trace` are in a second category with the name `log`, which
//! has the tag `debug`. Sessions leave it out, unless they ask for the tag
//! ([`SessionConfig::tags`](esatto::SessionConfig::tags)) or name `log` in full.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

use core::fmt;

use esatto::{Arg, Kind, Location, LogPriority, Name, Site};
use log::{Level, LevelFilter, Log, Metadata, Record, SetLoggerError};

esatto::categories! {
    /// Messages of the `log` facade.
    pub static LOG = "log", "Messages of the program's log";
    /// Messages of the levels `Debug` and `Trace`.
    pub static LOG_DEBUG = "log", "Messages of the program's log", tags: ["debug"];
}

/// A logger that records messages while a session wants them.
pub struct Logger {
    max_level: LevelFilter,
    next: Option<Box<dyn Log>>,
}

impl Logger {
    /// Creates a logger for messages of all levels.
    #[must_use]
    pub const fn new() -> Self {
        Self { max_level: LevelFilter::Trace, next: None }
    }

    /// Leaves more verbose messages out of traces.
    #[must_use]
    pub const fn max_level(mut self, level: LevelFilter) -> Self {
        self.max_level = level;
        self
    }

    /// Passes all messages on to another logger.
    #[must_use]
    pub fn and(mut self, next: impl Log + 'static) -> Self {
        self.next = Some(Box::new(next));
        self
    }

    /// Makes this the logger of the program, and sets the maximum level of the `log` facade to that
    /// of this logger.
    ///
    /// With another logger ([`and`](Self::and)), messages of all levels arrive. The other logger
    /// must then leave out messages that it does not want, as loggers do that check
    /// [`Log::enabled`].
    ///
    /// # Errors
    ///
    /// The program has a logger already.
    pub fn install(self) -> Result<(), SetLoggerError> {
        let level = if self.next.is_some() { LevelFilter::Trace } else { self.max_level };
        log::set_boxed_logger(Box::new(self))?;
        log::set_max_level(level);
        Ok(())
    }

    fn records(&self, metadata: &Metadata<'_>) -> bool {
        let category = if is_debug(metadata.level()) { &LOG_DEBUG } else { &LOG };
        metadata.level() <= self.max_level && category.is_enabled()
    }
}

impl Default for Logger {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").field("max_level", &self.max_level).finish_non_exhaustive()
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.records(metadata) || self.next.as_ref().is_some_and(|next| next.enabled(metadata))
    }

    fn log(&self, record: &Record<'_>) {
        if self.records(record.metadata()) {
            write(record);
        }
        if let Some(next) = self.next.as_ref().filter(|next| next.enabled(record.metadata())) {
            next.log(record);
        }
    }

    fn flush(&self) {
        if let Some(next) = &self.next {
            next.flush();
        }
    }
}

fn is_debug(level: Level) -> bool {
    level > Level::Info
}

/// Returns the name of a message's instant: its place, the same for all messages of one call.
fn name(record: &Record<'_>) -> String {
    let module = record.module_path().unwrap_or_else(|| record.target());
    let last = module.rsplit("::").next().unwrap_or(module);
    record.line().map_or_else(|| last.to_owned(), |line| format!("{last}:{line}"))
}

fn write(record: &Record<'_>) {
    static NAMES: [Name; 2] = [Name::new("message"), Name::new("target")];
    static SITE: Site = Site::new(&LOG, Kind::Instant, None, &NAMES);
    static DEBUG_SITE: Site = Site::new(&LOG_DEBUG, Kind::Instant, None, &NAMES);
    // Format the message before the event is open: its arguments are formatted by code of the
    // program, which may log.
    let text = std::fmt::format(*record.args());
    let name = name(record);
    let priority = match record.level() {
        Level::Error => LogPriority::Error,
        Level::Warn => LogPriority::Warn,
        Level::Info => LogPriority::Info,
        Level::Debug => LogPriority::Debug,
        Level::Trace => LogPriority::Verbose,
    };
    let location = record.file().map(|file| {
        let function = record.module_path().unwrap_or_default();
        Location::new(file, record.line().unwrap_or(0)).in_function(function)
    });
    let mut log = |event: &mut esatto::Event<'_>| event.log(priority, &text, location);
    let site = if is_debug(record.level()) { &DEBUG_SITE } else { &SITE };
    let args = &mut [Arg::Name(&name), Arg::Str(&text), Arg::Str(record.target()), Arg::With(&mut log)];
    esatto::record(site, args);
}
