//! The trace clock: nanoseconds of `CLOCK_BOOTTIME`, or of another clock that the program has
//! chosen.

mod calibration;

use core::sync::atomic::{AtomicU8, Ordering};

use esatto_schema::BuiltinClock;

use crate::os::ClockId;

pub(crate) use calibration::hold_for_fork;

/// The clock for the timestamps of events; see [`Builder::clock`](crate::Builder::clock).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// `CLOCK_BOOTTIME`, computed from the processor's counter: about half the cost of asking the
    /// system. Timestamps are within a microsecond of the clock and never run backwards. The
    /// counter is compared with the clock every millisecond.
    ///
    /// If the counter is not reliable (the kernel does not use it itself), this is
    /// [`BootTime`](Self::BootTime).
    #[default]
    Counter,
    /// `CLOCK_BOOTTIME`, read from the system for each event.
    BootTime,
    /// `CLOCK_MONOTONIC`, which stands still while the machine is suspended.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`, whose speed is not corrected.
    MonotonicRaw,
}

/// The clock in use, as a number.
static CLOCK: AtomicU8 = AtomicU8::new(Clock::Counter as u8);

impl Clock {
    /// Sets the clock of the process.
    pub(crate) fn choose(self) {
        CLOCK.store(self as u8, Ordering::Relaxed);
    }

    fn chosen() -> Self {
        match CLOCK.load(Ordering::Relaxed) {
            1 => Self::BootTime,
            2 => Self::Monotonic,
            3 => Self::MonotonicRaw,
            _ => Self::Counter,
        }
    }
}

/// Returns the `BuiltinClock` of [`now_ns`] (`docs/spec/track-event.md` §11).
pub(crate) fn trace_clock_id() -> u32 {
    let clock = match Clock::chosen() {
        Clock::Counter | Clock::BootTime => BuiltinClock::BUILTIN_CLOCK_BOOTTIME,
        Clock::Monotonic => BuiltinClock::BUILTIN_CLOCK_MONOTONIC,
        Clock::MonotonicRaw => BuiltinClock::BUILTIN_CLOCK_MONOTONIC_RAW,
    };
    clock.0 as u32
}

/// Returns the current time as in the timestamps of events: nanoseconds of `CLOCK_BOOTTIME`, or of
/// the clock that [`Builder::clock`](crate::Builder::clock) has chosen.
#[doc(alias = "timestamp", alias = "clock")]
#[must_use]
#[inline(always)]
pub fn now_ns() -> u64 {
    if CLOCK.load(Ordering::Relaxed) == Clock::Counter as u8 { calibration::now_ns() } else { ask() }
}

/// Reads the chosen clock from the system; no system call where the kernel offers a vDSO.
#[inline(never)]
fn ask() -> u64 {
    read(match Clock::chosen() {
        Clock::Counter | Clock::BootTime => ClockId::Boottime,
        Clock::Monotonic => ClockId::Monotonic,
        Clock::MonotonicRaw => ClockId::MonotonicRaw,
    })
}

/// Returns nanoseconds of a system clock.
pub(crate) use crate::os::read_clock as read;
