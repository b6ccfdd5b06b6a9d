//! Activations of triggers in the last 24 hours, for `max_per_24_h`.

use std::collections::VecDeque;

use esatto_map::LargeMap;

use crate::client_text::Name;

/// Activations of a trigger whose times are remembered exactly for `max_per_24_h`. Later ones are
/// remembered together, about ten minutes at a time.
const MAX_EXACT_ACTIVATIONS: usize = 128;

/// Triggers whose activations are counted. At this number `max_per_24_h` does not limit further
/// triggers, and the log says so.
pub(crate) const MAX_NAMES: usize = 4096;

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Activations this close together are remembered as one, if there are many.
const MERGED_NS: u64 = DAY_NS / MAX_EXACT_ACTIVATIONS as u64;

/// Time between two searches for names without recent activations.
const SWEEP_NS: u64 = 60 * 1_000_000_000;

/// Activations of each trigger in the last 24 hours. It holds only names that occurred in a config.
#[derive(Debug, Default)]
pub(crate) struct TriggerHistory {
    by_name: LargeMap<Name, Activations>,
    /// BOOTTIME from which on the next search through all names may run.
    next_sweep_ns: u64,
}

/// Activations of one trigger.
#[derive(Debug, Default)]
struct Activations {
    /// BOOTTIME and number of activations since then, oldest first.
    times: VecDeque<(u64, usize)>,
    count: usize,
}

impl Activations {
    fn forget_old(&mut self, now_ns: u64) {
        while let Some(&(at_ns, count)) = self.times.front() {
            if now_ns.saturating_sub(at_ns) < DAY_NS {
                break;
            }
            self.count -= count;
            self.times.pop_front();
        }
    }

    fn add(&mut self, now_ns: u64) {
        self.forget_old(now_ns);
        self.count += 1;
        match self.times.back_mut() {
            Some((at_ns, count)) if now_ns.saturating_sub(*at_ns) < MERGED_NS && self.count > MAX_EXACT_ACTIVATIONS => {
                *count += 1;
            }
            _ => self.times.push_back((now_ns, 1)),
        }
    }
}

impl TriggerHistory {
    pub(crate) fn count(&mut self, name: &[u8], now_ns: u64) -> usize {
        let Some(activations) = self.by_name.get_mut(name) else { return 0 };
        activations.forget_old(now_ns);
        activations.count
    }

    /// Counts an activation. Returns false if there are too many names.
    pub(crate) fn add(&mut self, name: &Name, now_ns: u64) -> bool {
        if let Some(activations) = self.by_name.get_mut(name) {
            activations.add(now_ns);
            return true;
        }
        if self.by_name.len() >= MAX_NAMES {
            if now_ns < self.next_sweep_ns {
                return false;
            }
            self.next_sweep_ns = now_ns.saturating_add(SWEEP_NS);
            self.by_name.retain(|_, activations| {
                activations.forget_old(now_ns);
                activations.count > 0
            });
            if self.by_name.len() >= MAX_NAMES {
                return false;
            }
        }
        self.by_name.get_or_default(Name::clone(name)).add(now_ns);
        true
    }
}
