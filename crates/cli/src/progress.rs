//! Progress of a recording: a live line on a terminal. In a log there is none.

use core::fmt;
use core::time::Duration;
use std::io::IsTerminal as _;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console::say;

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

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Size(self.bytes).fmt(f)?;
        if let Some(packets) = self.packets {
            write!(f, " · {packets} packets")?;
        }
        write!(f, " · {} lost", self.losses)
    }
}

/// The progress line. It disappears when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    limit: Option<Duration>,
    /// `None` if standard error is no terminal.
    live: Option<ProgressBar>,
}

impl Progress {
    /// Starts the clock. The recording ends by itself after `limit`.
    pub(crate) fn start(limit: Option<Duration>) -> Self {
        let live = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar
        });
        Self { started: Instant::now(), limit, live }
    }

    /// Shows the progress.
    pub(crate) fn show(&self, counts: &Counts) {
        if let Some(bar) = &self.live {
            bar.set_message(self.line(counts));
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

    fn line(&self, counts: &Counts) -> String {
        let elapsed_s = self.started.elapsed().as_secs_f64();
        match self.limit.map(|limit| limit.as_secs_f64()) {
            Some(limit_s) if elapsed_s > limit_s => format!("finishing {elapsed_s:.1} s · {counts}"),
            Some(limit_s) => format!("recording {elapsed_s:.1} of {limit_s:.1} s · {counts}"),
            None => format!("recording {elapsed_s:.1} s · {counts}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.live {
            bar.finish_and_clear();
        }
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
    fn the_counts_name_the_losses() {
        let counts = Counts { bytes: 2048, packets: Some(3), losses: 1 };
        assert_eq!(counts.to_string(), "2.0 KiB · 3 packets · 1 lost");
    }
}
