//! `CLOCK_BOOTTIME`, computed from the processor's counter.
//!
//! Time is a line over the counter: `base_ns + (ticks − base_ticks) × slope`. A line is valid for a
//! millisecond. The first thread that needs the time later draws the next line
//! ([`Calibration::advance`]): it asks the system for the time, and
//!
//! - begins the new line at the clock's time, or at the old line's time if that is ahead: so time
//!   never runs backwards, within a thread or between threads;
//! - takes the slope from the last tenth of a second, and in the second case a little less, so that
//!   the clock has caught up at the end of the line.
//!
//! How large can the error be? Two readings of the clock are uncertain by some 30 ns each, which is
//! 1 part in a million of a tenth of a second. The system itself slews its clock by no more than
//! 500 parts in a million (`adjtimex(2)`), which is half a microsecond in a millisecond. While the
//! machine is suspended, the counter may stop, jump or restart. Lines that do not fit are then
//! discarded, and every event asks the system until there is a new slope.
//!
//! Readers use a sequence lock: its version is odd while the line is being replaced.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{Mutex, TryLockError};

use crate::os::ClockId;

use super::read;
use crate::os::cpu_counter;

/// How long a line is valid, in nanoseconds.
const LINE_NS: u64 = 1_000_000;
/// The slope is taken from a window of this length …
const WINDOW_NS: u64 = 100_000_000;
/// … or at least of this length, at the beginning.
const FIRST_WINDOW_NS: u64 = 2_000_000;
/// Slopes that differ by more than 1 in this many do not belong to the same counter.
const TOLERANCE: u64 = 500;
/// Slopes are numbers of nanoseconds per tick with this many binary places.
const PLACES: u32 = 32;
/// The best of this many readings of the clock is used.
const ATTEMPTS: usize = 3;
/// After this many stops or jumps, the counter is no longer used.
const MAX_FAILURES: u32 = 16;

/// The states of the counter: usable, unusable, or not known yet.
const UNKNOWN: u8 = 0;
const USABLE: u8 = 1;
const UNUSABLE: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The line that readers use.
struct Line {
    version: AtomicU64,
    base_ticks: AtomicU64,
    base_ns: AtomicU64,
    slope: AtomicU64,
    /// The number of ticks for which it is valid.
    valid_ticks: AtomicU64,
}

static LINE: Line = Line {
    version: AtomicU64::new(0),
    base_ticks: AtomicU64::new(0),
    base_ns: AtomicU64::new(0),
    slope: AtomicU64::new(0),
    valid_ticks: AtomicU64::new(0),
};

static CALIBRATION: Mutex<Calibration> = Mutex::new(Calibration::new());

/// Returns the time.
#[inline(always)]
pub(super) fn now_ns() -> u64 {
    let version = LINE.version.load(Ordering::Acquire);
    let base_ticks = LINE.base_ticks.load(Ordering::Relaxed);
    let base_ns = LINE.base_ns.load(Ordering::Relaxed);
    let slope = LINE.slope.load(Ordering::Relaxed);
    let valid = LINE.valid_ticks.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    // An odd version, of a line that is being drawn, never equals that.
    let unchanged = LINE.version.load(Ordering::Relaxed) == version & !1;
    let ticks = cpu_counter::read().wrapping_sub(base_ticks);
    if unchanged && ticks < valid { base_ns + ((ticks * slope) >> PLACES) } else { renew() }
}

/// Returns the time when no line is valid.
#[cold]
#[inline(never)]
fn renew() -> u64 {
    match STATE.load(Ordering::Relaxed) {
        UNUSABLE => return read(ClockId::Boottime),
        USABLE => {}
        _ => {
            let state = if cpu_counter::is_reliable() { USABLE } else { UNUSABLE };
            STATE.store(state, Ordering::Relaxed);
        }
    }
    match CALIBRATION.try_lock() {
        Ok(mut calibration) => calibration.renew(),
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().renew(),
        // Another thread draws the line. The clock is ahead of the next line by at most the line's
        // error.
        Err(TryLockError::WouldBlock) => read(ClockId::Boottime),
    }
}

/// Locks the line while the process forks.
pub(crate) fn hold_for_fork() -> impl Sized {
    CALIBRATION.lock()
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    ticks: u64,
    ns: u64,
}

impl Moment {
    /// Reads both: the counter before and after the clock. The quickest of several attempts counts.
    fn now() -> Self {
        let mut best = (u64::MAX, Self { ticks: 0, ns: 0 });
        for _ in 0..ATTEMPTS {
            let before = cpu_counter::read();
            let ns = read(ClockId::Boottime);
            let took = cpu_counter::read().wrapping_sub(before);
            if took < best.0 {
                best = (took, Self { ticks: before.wrapping_add(took / 2), ns });
            }
        }
        best.1
    }
}

/// The next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NextLine {
    base: Moment,
    slope: u64,
    valid_ticks: u64,
}

/// The data from which lines are drawn.
#[derive(Debug)]
struct Calibration {
    /// The begin of the window, and the begin of the next one.
    window: Option<(Moment, Moment)>,
    /// Nanoseconds per tick, if it is known.
    slope: Option<u64>,
    line: Option<NextLine>,
    failures: u32,
}

impl Calibration {
    const fn new() -> Self {
        Self { window: None, slope: None, line: None, failures: 0 }
    }

    /// Publishes a new line if it can be drawn. Returns the time.
    fn renew(&mut self) -> u64 {
        let now = Moment::now();
        match self.advance(now) {
            Some(line) => {
                publish(line);
                line.base.ns
            }
            None => {
                publish(NextLine { base: now, slope: 0, valid_ticks: 0 });
                if self.failures >= MAX_FAILURES {
                    STATE.store(UNUSABLE, Ordering::Relaxed);
                }
                now.ns
            }
        }
    }

    /// Draws the line from `now` on; `None` as long as the slope is not known.
    fn advance(&mut self, now: Moment) -> Option<NextLine> {
        let Some((begin, next)) = self.window else {
            self.window = Some((now, now));
            return None;
        };
        let Some(slope) = slope_between(begin, now) else { return self.start_over(now) };
        if let Some(before) = self.slope {
            if slope.abs_diff(before) > before / TOLERANCE {
                return self.start_over(now);
            }
        } else if now.ns - begin.ns < FIRST_WINDOW_NS {
            return None;
        }
        self.slope = Some(slope);
        if now.ns.saturating_sub(next.ns) > WINDOW_NS {
            self.window = Some((next, now));
        }
        let valid_ticks = ((u128::from(LINE_NS) << PLACES) / u128::from(slope)) as u64;
        let line = match self.line.map_or(0, |line| line.latest(now.ticks)) {
            reached if reached <= now.ns => NextLine { base: now, slope, valid_ticks },
            // Ahead by this much: the next millisecond is shorter by as much, but not by more than
            // half.
            reached => {
                let ahead = (reached - now.ns).min(LINE_NS / 2);
                let slope = slope - ((u128::from(slope) * u128::from(ahead)) / u128::from(LINE_NS)) as u64;
                NextLine { base: Moment { ticks: now.ticks, ns: reached }, slope, valid_ticks }
            }
        };
        self.line = Some(line);
        Some(line)
    }

    /// Starts again, because the counter has changed. The last line is remembered, because a thread
    /// may have read the time from it.
    #[cold]
    fn start_over(&mut self, now: Moment) -> Option<NextLine> {
        self.window = Some((now, now));
        self.slope = None;
        self.failures += 1;
        None
    }
}

impl NextLine {
    /// Returns the latest time that any thread may have read from this line, up to now.
    fn latest(&self, ticks: u64) -> u64 {
        let ticks = ticks.wrapping_sub(self.base.ticks).min(self.valid_ticks);
        self.base.ns + ((ticks * self.slope) >> PLACES)
    }
}

/// Returns the nanoseconds per tick between two moments; `None` if one of the clocks stopped, or if
/// the counter's speed is impossible.
fn slope_between(begin: Moment, end: Moment) -> Option<u64> {
    let ticks = end.ticks.checked_sub(begin.ticks).filter(|&ticks| ticks > 0)?;
    let ns = end.ns.checked_sub(begin.ns).filter(|&ns| ns > 0)?;
    // A tick takes from a tenth of a nanosecond to a microsecond, and a line then has less than
    // 2^32 of them.
    let slope = u64::try_from((u128::from(ns) << PLACES) / u128::from(ticks)).ok()?;
    ((1 << PLACES) / 10..=1000 << PLACES).contains(&slope).then_some(slope)
}

/// Replaces the line. The caller holds the lock of the calibration.
fn publish(line: NextLine) {
    let version = LINE.version.load(Ordering::Relaxed);
    LINE.version.store(version.wrapping_add(1), Ordering::Relaxed);
    // A thread that sees one of the values below sees that the version is odd, or later.
    fence(Ordering::Release);
    LINE.base_ticks.store(line.base.ticks, Ordering::Relaxed);
    LINE.base_ns.store(line.base.ns, Ordering::Relaxed);
    LINE.slope.store(line.slope, Ordering::Relaxed);
    LINE.valid_ticks.store(line.valid_ticks, Ordering::Relaxed);
    LINE.version.store(version.wrapping_add(2), Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nanoseconds per tick of a counter of 2.7 GHz.
    const TICK_NS: f64 = 1.0 / 2.7;

    /// A machine whose clock runs at another speed than the counter.
    struct Machine {
        ticks: u64,
        ns: f64,
        /// The difference from the nominal speed of the counter.
        ppm: f64,
        calibration: Calibration,
        /// The latest time that was read.
        latest: u64,
        worst_ns: f64,
    }

    impl Machine {
        fn new(ppm: f64) -> Self {
            let calibration = Calibration::new();
            Self { ticks: 1 << 40, ns: 1e15, ppm, calibration, latest: 0, worst_ns: 0.0 }
        }

        fn pass(&mut self, ns: f64) {
            self.ns += ns;
            self.ticks += (ns / (1.0 + self.ppm * 1e-6) / TICK_NS) as u64;
        }

        /// Reads the time for an event: from the line, or from a new one. The clock may be misread
        /// by up to `error_ns`.
        fn read(&mut self, error_ns: f64) {
            let line = self.calibration.line.filter(|line| {
                self.calibration.slope.is_some() && self.ticks.wrapping_sub(line.base.ticks) < line.valid_ticks
            });
            let told = match line {
                Some(line) => line.latest(self.ticks),
                None => {
                    let now = Moment { ticks: self.ticks, ns: (self.ns + error_ns) as u64 };
                    // As sequences do.
                    self.calibration.advance(now).map_or(now.ns, |line| line.base.ns).max(self.latest)
                }
            };
            assert!(told >= self.latest, "time went back by {} ns", self.latest - told);
            self.latest = told;
            self.worst_ns = self.worst_ns.max((told as f64 - self.ns).abs());
        }

        fn run(&mut self, for_ns: f64, step_ns: f64, mut error_ns: impl FnMut() -> f64) {
            let end = self.ns + for_ns;
            while self.ns < end {
                self.read(error_ns());
                self.pass(step_ns);
            }
        }
    }

    /// Makes errors of up to 40 ns in both directions.
    fn errors() -> impl FnMut() -> f64 {
        let mut random = 7_u64;
        move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) % 80) as f64 - 40.0
        }
    }

    #[test]
    fn a_steady_clock_is_followed_to_a_tenth_of_a_microsecond() {
        for ppm in [0.0, 80.0, -80.0] {
            let mut machine = Machine::new(ppm);
            machine.run(3e9, 700.0, errors());
            assert!(machine.worst_ns < 150.0, "{ppm} ppm: {} ns", machine.worst_ns);
            assert_eq!(machine.calibration.failures, 0);
        }
    }

    #[test]
    fn a_clock_that_is_slewed_is_followed_within_a_microsecond() {
        let mut machine = Machine::new(0.0);
        machine.run(1e9, 5000.0, errors());
        for ppm in [500.0, -500.0, 30.0, -500.0, 500.0] {
            machine.ppm = ppm;
            machine.run(1e9, 5000.0, errors());
            assert!(machine.worst_ns < 1000.0, "{ppm} ppm: {} ns", machine.worst_ns);
        }
        assert_eq!(machine.calibration.failures, 0);
    }

    #[test]
    fn a_rare_reader_gets_the_right_time() {
        let mut machine = Machine::new(-45.0);
        for pause_ns in [2e6, 3e8, 1e10, 3.6e12] {
            machine.run(pause_ns * 20.0, pause_ns, errors());
        }
        assert!(machine.worst_ns < 100.0, "{} ns", machine.worst_ns);
    }

    #[test]
    fn after_a_suspension_the_clock_is_read_again() {
        for jump in [0_i64, -(1 << 39), 1 << 39, -(1_i64 << 40)] {
            let mut machine = Machine::new(10.0);
            machine.run(1e9, 5000.0, errors());
            // Ten minutes in which the counter stopped, jumped, or restarted.
            machine.ns += 6e11;
            machine.ticks = machine.ticks.wrapping_add_signed(jump);
            // The rest of the line that was in use. Events of this millisecond have times before
            // the suspension.
            machine.pass(2e6);
            machine.worst_ns = 0.0;
            machine.run(1e9, 5000.0, errors());
            assert!(machine.worst_ns < 200.0, "{jump}: {} ns", machine.worst_ns);
        }
    }

    #[test]
    fn absurd_counters_have_no_slope() {
        let at = |ticks, ns| Moment { ticks, ns };
        assert_eq!(slope_between(at(5, 5), at(5, 9)), None, "it stands still");
        assert_eq!(slope_between(at(5, 5), at(4, 9)), None, "it runs backwards");
        assert_eq!(slope_between(at(5, 5), at(9, 5)), None, "the clock stands still");
        assert_eq!(slope_between(at(0, 0), at(1, 2000)), None);
        assert_eq!(slope_between(at(0, 0), at(1_000_000, 1)), None);
        assert_eq!(slope_between(at(0, 0), at(10, 10)), Some(1 << PLACES));
    }
}
