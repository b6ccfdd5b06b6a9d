//! A plain logger to stderr for the daemons.

use std::io::Write as _;
use std::time::SystemTime;

use log::{Level, LevelFilter, Log, Metadata, Record};

struct StderrLog;

/// Sends log lines of `level` and worse to stderr; the first caller in a process decides.
///
/// A line is `12:34:56.789 W text`, in UTC, with the level's letter.
pub fn init(level: LevelFilter) {
    if log::set_logger(&StderrLog).is_ok() {
        log::set_max_level(level);
    }
}

impl Log for StderrLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (day_s, ms) = (since_epoch.as_secs() % 86_400, since_epoch.subsec_millis());
        let (hour, minute, second) = (day_s / 3600, day_s / 60 % 60, day_s % 60);
        let letter = match record.level() {
            Level::Error => 'E',
            Level::Warn => 'W',
            Level::Info => 'I',
            Level::Debug => 'D',
            Level::Trace => 'T',
        };
        // One write per line, so lines of several threads do not mix; nobody can be told of a closed stderr.
        let line = format!("{hour:02}:{minute:02}:{second:02}.{ms:03} {letter} {}\n", record.args());
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn flush(&self) {}
}
