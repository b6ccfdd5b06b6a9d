//! A plain logger to stderr for the daemons.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use log::{Level, LevelFilter, Log, Metadata, Record};

/// Lines per second that are written; what a hostile peer does should not fill a disk. Debugging is not limited.
const LINES_PER_SECOND: u32 = 100;

struct StderrLog {
    budget: Mutex<Budget>,
}

static LOG: StderrLog = StderrLog { budget: Mutex::new(Budget { second: 0, lines: 0 }) };

/// Lines that wanted to be written in this second.
struct Budget {
    second: u64,
    lines: u32,
}

impl Budget {
    /// Whether a line may be written, and how many were left out in the second before.
    fn spend(&mut self, second: u64) -> (bool, u32) {
        let mut left_out = 0;
        if second != self.second {
            left_out = self.lines.saturating_sub(LINES_PER_SECOND);
            *self = Self { second, lines: 0 };
        }
        self.lines = self.lines.saturating_add(1);
        (self.lines <= LINES_PER_SECOND, left_out)
    }
}

/// Sends log lines of `level` and worse to stderr; the first caller in a process decides.
///
/// A line is `12:34:56.789 W text`, in UTC, with the level's letter.
pub fn init(level: LevelFilter) {
    if log::set_logger(&LOG).is_ok() {
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
        if record.level() <= Level::Info {
            let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
            let (allowed, left_out) = budget.spend(since_epoch.as_secs());
            drop(budget);
            if left_out > 0 {
                let _ = std::io::stderr().write_all(format!("({left_out} lines were left out)\n").as_bytes());
            }
            if !allowed {
                return;
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_cut_and_counted() {
        let mut budget = Budget { second: 0, lines: 0 };
        let written = (0..1000).filter(|_| budget.spend(7).0).count();
        assert_eq!(written, LINES_PER_SECOND as usize);
        assert_eq!(budget.spend(8), (true, 900));
        assert_eq!(budget.spend(8), (true, 0));
    }
}
