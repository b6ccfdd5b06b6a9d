//! Progress of a recording: a live line on a terminal. A log has a line now and then, if the user
//! wants that.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console::{self, inform, say};
use crate::terminal::{Terminal, has_unicode};

/// Time over which a rate is measured.
const RATE_TIME: Duration = Duration::from_secs(3);
/// Time between two looks at the amounts for the rate.
const SAMPLE_PERIOD: Duration = Duration::from_millis(250);
/// Time between two lines in a log.
const LOG_PERIOD: Duration = Duration::from_secs(10);
/// Columns of the spinner and the space after it. The last column stays free, because some
/// terminals break the line there.
const SPINNER_COLUMNS: usize = 3;

/// Amounts recorded so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Bytes of trace data, in the buffers and in the file.
    pub(crate) bytes: u64,
    /// Packets in the file; `None` while nothing is read from the buffers.
    pub(crate) packets: Option<u64>,
    /// Chunks and packets that were lost.
    pub(crate) losses: u64,
}

/// The progress line. It disappears when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    limit: Option<Duration>,
    /// `None` if standard error is no terminal, or the user wants quiet.
    live: Option<ProgressBar>,
    has_unicode: bool,
    /// Bytes at earlier times, oldest first.
    samples: RefCell<VecDeque<(Instant, u64)>>,
    last_logged: Cell<Instant>,
}

impl Progress {
    /// Starts the clock. The recording ends by itself after `limit`.
    pub(crate) fn start(limit: Option<Duration>) -> Self {
        let has_unicode = has_unicode();
        let is_shown = std::io::stderr().is_terminal() && !console::is_quiet();
        let live = is_shown.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style =
                ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
            bar.set_style(if has_unicode { style } else { style.tick_chars("|/-\\ ") });
            bar
        });
        let now = Instant::now();
        Self { started: now, limit, live, has_unicode, samples: RefCell::default(), last_logged: Cell::new(now) }
    }

    /// Shows the progress.
    pub(crate) fn show(&self, counts: &Counts) {
        let now = Instant::now();
        if let Some(bar) = &self.live {
            let columns = Terminal::columns_of_stderr().saturating_sub(SPINNER_COLUMNS);
            bar.set_message(self.line(now, counts, columns));
            bar.tick();
        } else if console::is_verbose() && now - self.last_logged.get() >= LOG_PERIOD {
            self.last_logged.set(now);
            inform!("{}", self.line(now, counts, usize::MAX));
        }
    }

    /// Shows how long the recording does not begin yet.
    pub(crate) fn show_wait(&self, left: Duration) {
        if let Some(bar) = &self.live {
            bar.set_message(format!("starts in {}", seconds(left)));
            bar.tick();
        }
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the time for which the recording may go on; `None` if it has no limit.
    pub(crate) fn rest(&self) -> Option<Duration> {
        Some(self.limit?.saturating_sub(self.started.elapsed()))
    }

    /// Prints a line above the progress.
    pub(crate) fn note(&self, text: &dyn fmt::Display) {
        match &self.live {
            Some(bar) => bar.suspend(|| say!("{text}")),
            None => say!("{text}"),
        }
    }

    fn line(&self, now: Instant, counts: &Counts, columns: usize) -> String {
        let view = View {
            elapsed: now - self.started,
            left: self.limit.map(|limit| limit.saturating_sub(now - self.started)),
            counts: *counts,
            bytes_per_s: self.rate(now, counts.bytes),
        };
        view.fitted(columns, if self.has_unicode { " \u{b7} " } else { ", " })
    }

    /// Returns the bytes per second of the last seconds.
    fn rate(&self, now: Instant, bytes: u64) -> Option<u64> {
        let mut samples = self.samples.borrow_mut();
        if samples.back().is_none_or(|(at, _)| now - *at >= SAMPLE_PERIOD) {
            samples.push_back((now, bytes));
        }
        while samples.get(1).is_some_and(|(at, _)| now - *at >= RATE_TIME) {
            samples.pop_front();
        }
        let (at, before) = *samples.front()?;
        let ms = u64::try_from((now - at).as_millis()).unwrap_or(u64::MAX);
        (ms > 0).then(|| bytes.saturating_sub(before).saturating_mul(1000) / ms)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.live {
            bar.finish_and_clear();
        }
    }
}

/// Amounts of a recording at one time.
#[derive(Clone, Copy, Debug)]
struct View {
    elapsed: Duration,
    left: Option<Duration>,
    counts: Counts,
    bytes_per_s: Option<u64>,
}

impl View {
    /// Returns as many of the amounts as fit into so many columns. Losses come before all others.
    fn fitted(&self, columns: usize, separator: &str) -> String {
        let Counts { bytes, packets, losses } = self.counts;
        let is_over = self.left.is_some_and(|left| left.is_zero());
        let verb = if is_over { "finishing" } else { "recording" };
        let lost = format!("{losses} lost");
        // In the order of the line, each with its rank: the lowest ones stay longest.
        let parts = [
            (0, Some(seconds(self.elapsed))),
            (3, self.left.filter(|_| !is_over).map(|left| format!("{} left", seconds(left)))),
            (2, Some(Size(bytes).to_string())),
            (4, self.bytes_per_s.map(|rate| format!("{}/s", Size(rate)))),
            (5, packets.map(|packets| format!("{packets} packets"))),
            (if losses > 0 { 1 } else { 6 }, Some(lost)),
        ];
        let shown = |highest: usize| {
            let parts = parts.iter().filter(|(rank, _)| *rank <= highest).filter_map(|(_, part)| part.as_deref());
            parts.collect::<Vec<_>>().join(separator)
        };
        let whole = format!("{verb} {}", shown(6));
        if whole.chars().count() <= columns {
            return whole;
        }
        let fits = |line: &String| line.chars().count() <= columns;
        let with_verb = (3..6).rev().map(|highest| format!("{verb} {}", shown(highest)));
        let without = (0..6).rev().map(shown);
        with_verb.chain(without).find(fits).unwrap_or_else(|| shown(0).chars().take(columns).collect())
    }
}

/// Formats a time in seconds, or longer ones in minutes and hours.
fn seconds(time: Duration) -> String {
    let whole = time.as_secs();
    match whole {
        0..600 => format!("{:.1} s", time.as_secs_f64()),
        600..86_400 => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
        _ => format!("{} d {}:{:02}", whole / 86_400, whole / 3600 % 24, whole / 60 % 60),
    }
}

/// A number of bytes, displayed with a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        if self.0 < 1024 {
            return write!(f, "{} bytes", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let shown = [0, 1023, 1024, 1536, 5 << 20, 3 << 50].map(|bytes| Size(bytes).to_string());
        assert_eq!(shown, ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "5.0 MiB", "3072.0 TiB"]);
    }

    #[test]
    fn times_have_few_characters() {
        let shown = [0, 599, 600, 86_399, 90_000].map(|s| seconds(Duration::from_secs(s)));
        assert_eq!(shown, ["0.0 s", "599.0 s", "0:10:00", "23:59:59", "1 d 1:00"]);
    }

    #[test]
    fn a_narrow_line_drops_what_matters_least() {
        let counts = Counts { bytes: 5 << 20, packets: Some(300), losses: 0 };
        let of = |losses: u64, columns: usize| {
            let view = View {
                elapsed: Duration::from_secs(12),
                left: Some(Duration::from_secs(48)),
                counts: Counts { losses, ..counts },
                bytes_per_s: Some(1 << 20),
            };
            let line = view.fitted(columns, ", ");
            assert!(line.len() <= columns, "{line}");
            line
        };
        assert_eq!(of(0, 100), "recording 12.0 s, 48.0 s left, 5.0 MiB, 1.0 MiB/s, 300 packets, 0 lost");
        assert_eq!(of(0, 60), "recording 12.0 s, 48.0 s left, 5.0 MiB, 1.0 MiB/s");
        assert_eq!(of(0, 45), "recording 12.0 s, 48.0 s left, 5.0 MiB");
        assert_eq!((of(0, 17), of(7, 17)), ("12.0 s, 5.0 MiB".to_owned(), "12.0 s, 7 lost".to_owned()));
        assert_eq!((of(7, 60).contains("7 lost"), of(7, 3)), (true, "12.".to_owned()));
    }

    #[test]
    fn the_end_is_no_longer_recording() {
        let view = View {
            elapsed: Duration::from_secs(61),
            left: Some(Duration::ZERO),
            counts: Counts::default(),
            bytes_per_s: None,
        };
        assert_eq!(view.fitted(100, ", "), "finishing 61.0 s, 0 bytes, 0 lost");
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let progress = Progress::start(None);
        let at = |ms: u64| progress.started + Duration::from_millis(ms);
        assert_eq!(progress.rate(at(0), 0), None);
        assert_eq!(progress.rate(at(1000), 1000), Some(1000));
        for second in 2..10 {
            progress.rate(at(second * 1000), 1000 + second * 5000);
        }
        assert_eq!(progress.rate(at(10_000), 1000 + 10 * 5000), Some(5000));
    }
}
