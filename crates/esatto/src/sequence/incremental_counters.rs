//! Counters whose values are written as differences, and the run time of threads
//! (`docs/spec/track-event.md` §16).

use core::hash::BuildHasherDefault;
use std::collections::HashMap;

use crate::os::ClockId;

use super::{IdentityHasher, Options};
use crate::event::CounterValue;
use crate::hash::fnv;
use crate::{clock, track_uuid};

/// The counter of the run time of a thread, below the thread's track.
pub(super) const THREAD_TIME_NAME: &str = "thread_time";
pub(super) const THREAD_TIME: u64 = fnv(THREAD_TIME_NAME.as_bytes()) ^ track_uuid::COUNTER_MAGIC;

/// The values that a reader of the sequence has for its incremental counters. 0 at the beginning
/// and after a clear.
#[derive(Debug, Default)]
pub(super) struct Counters {
    values: HashMap<u64, Value, BuildHasherDefault<IdentityHasher>>,
    thread_time_ns: u64,
    /// When the run time of the thread was last read.
    sampled_ns: Option<u64>,
}

/// Integers and floats of one counter add up to one number. Kept apart, they stay exact.
#[derive(Clone, Copy, Debug, Default)]
struct Value {
    int: i64,
    double: f64,
}

impl Counters {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Begins to follow an incremental counter. Returns false if it is followed already.
    pub(super) fn begin(&mut self, uuid: u64) -> bool {
        let mut is_new = false;
        self.values.entry(uuid).or_insert_with(|| {
            is_new = true;
            Value::default()
        });
        is_new
    }

    /// Returns what to write for the new value of a counter: the difference, if it is followed.
    pub(super) fn written(&mut self, uuid: u64, value: CounterValue) -> CounterValue {
        let Some(last) = self.values.get_mut(&uuid) else { return value };
        match value {
            CounterValue::Int(new) if last.double == 0.0 => {
                let difference = new.wrapping_sub(last.int);
                last.int = new;
                CounterValue::Int(difference)
            }
            CounterValue::Int(new) => Self::double(last, new as f64),
            CounterValue::Double(new) => Self::double(last, new),
        }
    }

    fn double(last: &mut Value, new: f64) -> CounterValue {
        let difference = new - (last.int as f64 + last.double);
        // The value that the reader computes, so that errors do not add up.
        last.double += difference;
        CounterValue::Double(difference)
    }

    /// Returns how long the thread has run since the last event, in units of the timestamps. 0 if
    /// it is too early to read again.
    pub(super) fn thread_time(&mut self, now: u64, options: Options) -> i64 {
        let subsampling_ns = options.thread_time_subsampling_ns;
        let is_early = |at: u64| subsampling_ns > 0 && now.saturating_sub(at) < subsampling_ns;
        if self.sampled_ns.is_some_and(is_early) {
            return 0;
        }
        self.sampled_ns = Some(now);
        let units = clock::read(ClockId::ThreadCPUTime).saturating_sub(self.thread_time_ns) / options.unit_ns;
        // The remainder below a unit counts next time.
        self.thread_time_ns += units * options.unit_ns;
        i64::try_from(units).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CounterValue::{Double, Int};

    #[test]
    fn differences_add_up_to_the_values() {
        let mut counters = Counters::default();
        assert_eq!(counters.written(7, Int(5)), Int(5), "not followed");
        assert!(counters.begin(7) && !counters.begin(7));
        let values = [Int(100), Int(40), Double(40.5), Int(41), Double(-0.1), Double(1e9)];
        let mut sum = 0.0;
        for value in values {
            sum += match counters.written(7, value) {
                Int(v) => v as f64,
                Double(v) => v,
            };
            let expected = match value {
                Int(v) => v as f64,
                Double(v) => v,
            };
            assert!((sum - expected).abs() < 1e-6, "{sum} {expected}");
        }
        counters.clear();
        assert!(counters.begin(7));
        assert_eq!(counters.written(7, Int(5)), Int(5), "the base is 0 again");
        assert_eq!(counters.written(7, Int(i64::MIN)), Int(i64::MAX - 4), "and wraps");
    }
}
