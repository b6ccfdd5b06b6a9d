//! Times of events other than now (`docs/spec/track-event.md` §11).

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use esatto_schema::{BuiltinClock, ClockSnapshotWriter};

use crate::clock;
use crate::os::fork::StaticMutex;

/// The time of an event, for `at:` in a trace point.
///
/// ```
/// # esatto::categories! { static GPU = "gpu"; }
/// use esatto::{Timestamp, Track};
///
/// let began = Timestamp::now();
/// // … and when it is known what it was:
/// let queue = Track::with_name("queue", 0);
/// esatto::begin!(GPU, track: &queue, "draw", at: began);
/// esatto::end!(GPU, track: &queue);
/// ```
///
/// Made from an [`Instant`], a [`SystemTime`], nanoseconds of a system clock, or ticks of a
/// [`CustomClock`]. Events of one track need not be written in the order of their times. But each
/// thread must write them within the time that a session keeps data (within seconds, if the session
/// streams into a file).
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    value: u64,
    clock: Domain,
}

#[derive(Clone, Copy, Debug)]
enum Domain {
    /// Nanoseconds of the trace clock.
    Trace,
    /// A clock that the service knows.
    Known(u32),
    Custom(&'static CustomClock),
}

impl Timestamp {
    /// Returns the current time.
    #[must_use]
    pub fn now() -> Self {
        Self::trace_ns(clock::now_ns())
    }

    /// Makes a time from nanoseconds of the trace clock: `CLOCK_BOOTTIME`, unless
    /// [`Builder::clock`](crate::Builder::clock) says otherwise.
    #[must_use]
    pub const fn trace_ns(ns: u64) -> Self {
        Self { value: ns, clock: Domain::Trace }
    }

    /// Makes a time from nanoseconds of `CLOCK_BOOTTIME`.
    #[must_use]
    pub const fn boot_ns(ns: u64) -> Self {
        Self::known(BuiltinClock::BUILTIN_CLOCK_BOOTTIME, ns)
    }

    /// Makes a time from nanoseconds of `CLOCK_MONOTONIC`.
    #[must_use]
    pub const fn monotonic_ns(ns: u64) -> Self {
        Self::known(BuiltinClock::BUILTIN_CLOCK_MONOTONIC, ns)
    }

    /// Makes a time from nanoseconds of `CLOCK_REALTIME`, since 1970.
    #[must_use]
    pub const fn realtime_ns(ns: u64) -> Self {
        Self::known(BuiltinClock::BUILTIN_CLOCK_REALTIME, ns)
    }

    /// Makes a time of the clock with this number, which readers know.
    #[doc(hidden)]
    #[must_use]
    pub const fn of_clock(id: u32, value: u64) -> Self {
        Self { value, clock: Domain::Known(id) }
    }

    const fn known(clock: BuiltinClock, value: u64) -> Self {
        Self { value, clock: Domain::Known(clock.0 as u32) }
    }

    /// Returns the value, the number of its clock, and the clock if this process made it. If the
    /// clock was never anchored, its times have no meaning: the result is `now_ns` of the trace
    /// clock.
    pub(crate) fn resolve(self, now_ns: u64) -> (u64, u32, Option<(&'static CustomClock, Anchor)>) {
        match self.clock {
            Domain::Trace => (self.value, clock::trace_clock_id(), None),
            Domain::Known(id) => (self.value, id, None),
            Domain::Custom(custom) => match custom.last_anchor() {
                Some(anchor) => (self.value, custom.id, Some((custom, anchor))),
                None => (now_ns, clock::trace_clock_id(), None),
            },
        }
    }
}

impl From<Instant> for Timestamp {
    fn from(instant: Instant) -> Self {
        // The time between the two readings is the error.
        let (now, now_ns) = (Instant::now(), clock::now_ns());
        let ns = match now.checked_duration_since(instant) {
            Some(ago) => now_ns.saturating_sub(saturating_ns(ago)),
            None => now_ns.saturating_add(saturating_ns(instant.duration_since(now))),
        };
        Self::trace_ns(ns)
    }
}

/// Times before 1970 become 1970.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        Self::realtime_ns(time.duration_since(UNIX_EPOCH).map_or(0, saturating_ns))
    }
}

fn saturating_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A clock that only this program knows: of a device, of a simulation.
///
/// Its *anchors* tell readers of the trace how to convert a tick. Each anchor has the reading of
/// the clock at one moment of the trace clock. Ticks of a fixed length count from there until the
/// next anchor, so anchor a drifting clock from time to time. A time before the first anchor counts
/// back from it. Before the first anchor, events with a time of this clock are recorded as
/// happening now.
///
/// ```
/// # esatto::categories! { static GPU = "gpu"; }
/// use esatto::CustomClock;
///
/// static GPU_CLOCK: CustomClock = CustomClock::new(66, 52); // a tick takes 52 ns
/// # fn read_gpu_ticks() -> u64 { 1000 }
///
/// GPU_CLOCK.anchor(read_gpu_ticks());
/// esatto::instant!(GPU, "vsync", at: GPU_CLOCK.ticks(1017));
/// ```
#[derive(Debug)]
pub struct CustomClock {
    id: u32,
    tick_ns: u64,
    anchor: StaticMutex<Option<Anchor>>,
}

/// The value of a clock at a time of the trace clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    trace_ns: u64,
    ticks: u64,
}

impl CustomClock {
    /// Makes a clock of this process, with the length of its ticks and a number from 66 to 127 that
    /// no other clock of the process has.
    ///
    /// Numbers from 128 on are the same clock in all processes of a trace, which have to agree on
    /// its anchor. So this clock has one anchor and keeps it.
    ///
    /// # Panics
    ///
    /// If the number is smaller, or a tick takes no time; a `static` then does not compile.
    #[must_use]
    pub const fn new(id: u32, tick_ns: u64) -> Self {
        assert!(id >= 66, "numbers below 66 are taken");
        assert!(tick_ns > 0, "a tick takes time");
        Self { id, tick_ns, anchor: StaticMutex::new(None) }
    }

    /// Sets the current reading of the clock.
    ///
    /// Returns false if the anchor is ignored, because the clock ran backwards since the last one,
    /// or because a signal handler has interrupted a thread that is anchoring.
    pub fn anchor(&'static self, ticks: u64) -> bool {
        self.anchor_at(clock::now_ns(), ticks)
    }

    /// As [`anchor`](Self::anchor), for another moment, in nanoseconds of the trace clock. Both
    /// values must be at or after the last anchor's.
    pub fn anchor_at(&'static self, trace_ns: u64, ticks: u64) -> bool {
        let Some(mut anchor) = self.anchor.lock_unless_interrupting() else { return false };
        let fits = match *anchor {
            None => true,
            Some(last) => !self.is_shared() && last.trace_ns <= trace_ns && last.ticks <= ticks,
        };
        if fits {
            *anchor = Some(Anchor { trace_ns, ticks });
        }
        fits
    }

    /// Makes a time of this clock.
    #[must_use]
    pub const fn ticks(&'static self, ticks: u64) -> Timestamp {
        Timestamp { value: ticks, clock: Domain::Custom(self) }
    }

    const fn is_shared(&self) -> bool {
        self.id >= 128
    }

    fn last_anchor(&'static self) -> Option<Anchor> {
        *self.anchor.lock()
    }

    pub(crate) const fn id(&self) -> u32 {
        self.id
    }

    /// Writes an anchor: always the same two clocks in the same order, because readers require it.
    pub(crate) fn write(&self, anchor: Anchor, snapshot: &mut ClockSnapshotWriter<'_>) {
        snapshot.clocks().clock_id(clock::trace_clock_id()).timestamp(anchor.trace_ns);
        snapshot.clocks().clock_id(self.id).timestamp(anchor.ticks).unit_multiplier_ns(self.tick_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static DEVICE: CustomClock = CustomClock::new(66, 3);
    static SHARED: CustomClock = CustomClock::new(128, 1);

    #[test]
    fn a_clock_does_not_run_backwards() {
        let (value, id, custom) = DEVICE.ticks(5).resolve(77);
        assert_eq!((value, id), (77, clock::trace_clock_id()), "without an anchor it is now");
        assert!(custom.is_none());
        assert!(DEVICE.anchor_at(1000, 500));
        assert!(DEVICE.anchor_at(2000, 800));
        assert!(!DEVICE.anchor_at(3000, 700) && !DEVICE.anchor_at(1500, 900));
        let (value, id, custom) = DEVICE.ticks(5).resolve(77);
        assert_eq!((value, id), (5, 66));
        assert_eq!(custom.map(|(_, anchor)| anchor), Some(Anchor { trace_ns: 2000, ticks: 800 }));
    }

    #[test]
    fn a_shared_clock_keeps_its_anchor() {
        assert!(SHARED.anchor_at(1000, 500));
        assert!(!SHARED.anchor_at(2000, 800));
        assert_eq!(SHARED.last_anchor(), Some(Anchor { trace_ns: 1000, ticks: 500 }));
    }

    #[test]
    fn an_instant_keeps_its_time() {
        let (instant, before) = (Instant::now(), clock::now_ns());
        let (past, future) = (Timestamp::from(instant), Timestamp::from(instant + Duration::from_secs(1000)));
        assert!(past.value.abs_diff(before) < 1_000_000_000);
        assert!(future.value.abs_diff(before + 1_000_000_000_000) < 1_000_000_000);
        assert_eq!(Timestamp::from(UNIX_EPOCH + Duration::from_secs(2)).value, 2_000_000_000);
    }
}
