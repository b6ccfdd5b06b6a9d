//! Logger of the daemons, which writes to stderr.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use log::{Level, LevelFilter, Log, Metadata, Record};

/// Lines of one level that may come at once, and lines per second after that. Any client can cause
/// log lines, and a hostile one must not fill a disk. So each level has a budget; debug levels have
/// no limit.
const BURST_LINES: f64 = 200.0;
const LINES_PER_SECOND: f64 = 5.0;
/// Longer lines are cut: names in them come from peers.
const MAX_LINE_BYTES: usize = 1000;

/// Target of lines that machines without the shared secret cause. They have a budget of their own,
/// so that these machines cannot make the service leave out other warnings.
pub const STRANGERS: &str = "esatto_daemon::strangers";

#[derive(Debug)]
struct StderrLog {
    /// Budgets of errors, of warnings, of the rest, and of lines about strangers.
    budgets: Mutex<[Budget; 4]>,
}

static LOG: StderrLog = StderrLog { budgets: Mutex::new([Budget::FULL; 4]) };

/// The systemd journal reads stderr: it knows the time of each line, and expects a priority.
static TO_JOURNAL: OnceLock<bool> = OnceLock::new();

/// Number of lines that may still be written.
#[derive(Clone, Copy, Debug)]
struct Budget {
    lines: f64,
    at: Option<Duration>,
    left_out: u32,
}

impl Budget {
    const FULL: Self = Self { lines: BURST_LINES, at: None, left_out: 0 };

    /// Decides whether a line may be written now. If so, returns how many lines were left out
    /// before it.
    fn spend(&mut self, now: Duration) -> Option<u32> {
        let passed = now.saturating_sub(self.at.replace(now).unwrap_or(now));
        self.lines = (self.lines + passed.as_secs_f64() * LINES_PER_SECOND).min(BURST_LINES);
        if self.lines < 1.0 {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        self.lines -= 1.0;
        Some(core::mem::take(&mut self.left_out))
    }
}

/// Sends log lines of `level` and more severe ones to stderr. The first caller in a process
/// decides.
///
/// A line is `12:34:56.789 W text`, in UTC, with the first letter of the level. If the systemd
/// journal reads stderr, it is `<4>text`. Control characters are escaped. In a flood, some lines
/// are left out, and the next line gives their number.
pub fn init(level: LevelFilter) {
    TO_JOURNAL.get_or_init(|| std::env::var("JOURNAL_STREAM").is_ok_and(|stream| is_stderr(&stream)));
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
        let level = record.level();
        if let Some(index) = budget_of(level, record.target()) {
            let spent = self.budgets.lock().unwrap_or_else(PoisonError::into_inner)[index].spend(since_epoch);
            match spent {
                None => return,
                Some(0) => {}
                Some(left_out) => write(level, since_epoch, &format!("({left_out} lines like the next were left out)")),
            }
        }
        write(level, since_epoch, &record.args().to_string());
    }

    fn flush(&self) {}
}

/// Returns the index of the budget for such lines.
fn budget_of(level: Level, target: &str) -> Option<usize> {
    match level {
        Level::Error | Level::Warn | Level::Info if target == STRANGERS => Some(3),
        Level::Error => Some(0),
        Level::Warn => Some(1),
        Level::Info => Some(2),
        Level::Debug | Level::Trace => None,
    }
}

/// Writes each line in one call, so that lines of several threads do not mix. A closed stderr is
/// ignored.
fn write(level: Level, since_epoch: Duration, text: &str) {
    let to_journal = TO_JOURNAL.get().is_some_and(|&to_journal| to_journal);
    let _ = std::io::stderr().write_all(line(level, since_epoch, text, to_journal).as_bytes());
}

fn line(level: Level, since_epoch: Duration, text: &str, to_journal: bool) -> String {
    let mut line = if to_journal {
        // The priorities of sd-daemon(3).
        let priority = match level {
            Level::Error => 3,
            Level::Warn => 4,
            Level::Info => 6,
            Level::Debug | Level::Trace => 7,
        };
        format!("<{priority}>")
    } else {
        let (day_s, ms) = (since_epoch.as_secs() % 86_400, since_epoch.subsec_millis());
        let (hour, minute, second) = (day_s / 3600, day_s / 60 % 60, day_s % 60);
        let letter = level.as_str().chars().next().unwrap_or(' ');
        format!("{hour:02}:{minute:02}:{second:02}.{ms:03} {letter} ")
    };
    for c in text.chars() {
        if line.len() >= MAX_LINE_BYTES {
            line.push('…');
            break;
        }
        if acts_on_a_terminal(c) {
            // Writing to a string cannot fail.
            let _ = write!(line, "{}", c.escape_default());
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    line
}

/// Returns whether a character is a control character, or changes the order in which a terminal
/// shows others. The reader of traces has the same list (`esatto_trace::escape`).
fn acts_on_a_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Returns whether stderr is the stream `DEVICE:INODE`.
fn is_stderr(stream: &str) -> bool {
    let stderr = std::fs::metadata("/proc/self/fd/2");
    stderr.is_ok_and(|meta| stream == format!("{}:{}", meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_cut_and_counted() {
        let mut budget = Budget::FULL;
        let at = |ms: u64| Duration::from_millis(1_000_000 + ms);
        let written = (0..1000).filter(|_| budget.spend(at(0)).is_some()).count();
        assert_eq!(written, 200);
        assert_eq!(budget.spend(at(100)), None);
        assert_eq!(budget.spend(at(201)), Some(801));
        assert_eq!(budget.spend(at(300)), None);
        // The clock may be set back.
        assert_eq!(budget.spend(at(0)), None);
        // After a rest the budget is full again, and not larger.
        let written = (0..1000).filter(|_| budget.spend(at(10_000_000)).is_some()).count();
        assert_eq!(written, 200);
    }

    #[test]
    fn strangers_cannot_use_up_the_budget_of_other_lines() {
        let budgets = [Level::Error, Level::Warn, Level::Info].map(|level| budget_of(level, "esatto_daemon"));
        assert!(!budgets.contains(&budget_of(Level::Warn, STRANGERS)));
        assert_eq!(budget_of(Level::Debug, STRANGERS), None);
    }

    #[test]
    fn a_text_cannot_look_like_two_lines() {
        let since_epoch = Duration::from_millis(86_400_000 + 45_296_789);
        assert_eq!(line(Level::Warn, since_epoch, "a\nb\u{1b}[2J", false), "12:34:56.789 W a\\nb\\u{1b}[2J\n");
        assert_eq!(line(Level::Warn, since_epoch, "grün", true), "<4>grün\n");
        let acting = "\u{9b}2J\u{7f}\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}";
        let shown = "<4>\\u{9b}2J\\u{7f}\\u{202e}\\u{2066}\\u{200f}\\u{61c}\\u{2028}\n";
        assert_eq!(line(Level::Warn, since_epoch, acting, true), shown);
        let long = line(Level::Info, since_epoch, &"ü".repeat(100_000), true);
        assert!(long.ends_with("…\n") && long.len() < 1010, "{}", long.len());
    }

    #[test]
    fn the_journal_is_known_by_its_stream() {
        let meta = std::fs::metadata("/proc/self/fd/2").unwrap();
        assert!(is_stderr(&format!("{}:{}", meta.dev(), meta.ino())));
        assert!(!is_stderr("1:1") && !is_stderr(""));
    }
}
