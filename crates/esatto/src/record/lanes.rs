//! Tracks for overlapping things of one kind.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::VecDeque;

use crate::event::track::Track;
use crate::os::fork::StaticMutex;

/// Tracks of one name for things that overlap in time. Each thing has a track for itself, from
/// [`take`](Self::take) until the track is dropped.
///
/// Slices of one track must be nested, but requests that are served at the same time are not.
/// Tracks are used again, so there are only as many as things at the same time. Viewers show them
/// as one.
///
/// ```
/// # esatto::categories! { static NET = "net"; }
/// use esatto::Lanes;
///
/// static REQUESTS: Lanes = Lanes::new("request");
///
/// let (one, other) = (REQUESTS.take(), REQUESTS.take());
/// esatto::begin!(NET, track: one.track(), "GET /");
/// esatto::begin!(NET, track: other.track(), "GET /style.css");
/// esatto::end!(NET, track: one.track());
/// esatto::end!(NET, track: other.track());
/// ```
#[doc(alias = "overlap", alias = "request", alias = "pool")]
#[derive(Debug)]
pub struct Lanes {
    name: &'static str,
    free: StaticMutex<VecDeque<Free>>,
    /// The number of lanes made so far.
    made: AtomicU32,
}

#[derive(Debug)]
struct Free {
    number: u32,
    /// The thread that wrote the last event.
    thread: u32,
}

/// A lane goes to a thread other than the one that gave it back only after this many more were
/// given back. The reason is that two events of different threads with equal times have no order.
const SETTLING: usize = 8;

impl Lanes {
    /// Makes lanes with a name to show. Lanes of equal names in one process are the same tracks, so
    /// there should be one `static` per name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, free: StaticMutex::new(VecDeque::new()), made: AtomicU32::new(0) }
    }

    /// Returns a track that nothing else uses. Takes a lock.
    #[must_use]
    pub fn take(&'static self) -> Lane {
        let Some(mut free) = self.free.lock_unless_interrupting() else { return self.take_new() };
        let own = free.iter().take(SETTLING).position(|lane| is_here(lane.thread));
        let settled = own.or_else(|| (free.len() > SETTLING).then_some(0));
        let used_before = settled.and_then(|place| free.remove(place));
        drop(free);
        match used_before {
            Some(lane) => self.lane(lane.number),
            None => self.take_new(),
        }
    }

    /// Returns a track that nothing has used before. Slices recorded with a time in the past
    /// ([`Timestamp`](crate::Timestamp)) need it.
    #[must_use]
    pub fn take_new(&'static self) -> Lane {
        self.lane(self.made.fetch_add(1, Ordering::Relaxed))
    }

    fn lane(&'static self, number: u32) -> Lane {
        Lane { lanes: self, number, track: Track::with_name(self.name, u64::from(number)) }
    }
}

/// A track for one thing. Dropping it gives the track back; drop it after the last event.
#[derive(Debug)]
pub struct Lane {
    lanes: &'static Lanes,
    number: u32,
    track: Track,
}

impl Lane {
    /// Returns the track.
    #[must_use]
    pub const fn track(&self) -> &Track {
        &self.track
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let lane = Free { number: self.number, thread: thread_number() };
        // If the lane cannot be given back now, another one is made later.
        if let Some(mut free) = self.lanes.free.lock_unless_interrupting() {
            free.push_back(lane);
        }
    }
}

/// Returns a number for the calling thread. Unlike the system's thread ids, numbers are not used
/// again. 0 in a thread that ends.
fn thread_number() -> u32 {
    static NUMBERS: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }
    let number = NUMBER.try_with(|number| {
        if number.get() == 0 {
            number.set(NUMBERS.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    });
    number.unwrap_or(0)
}

fn is_here(thread: u32) -> bool {
    thread != 0 && thread == thread_number()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_has_one_user_at_a_time() {
        static LANES: Lanes = Lanes::new("lanes of one test");
        let (a, b) = (LANES.take(), LANES.take());
        assert_ne!(a.track().uuid(), b.track().uuid());
        let uuid = a.track().uuid();
        drop(a);
        let c = LANES.take();
        assert_eq!(c.track().uuid(), uuid, "is used again by the thread that gave it back");
        drop((b, c));
    }

    #[test]
    fn a_lane_changes_threads_only_after_others() {
        static LANES: Lanes = Lanes::new("lanes of two threads");
        drop(LANES.take());
        let here = LANES.take().number;
        let there = || std::thread::spawn(|| LANES.take()).join().expect("does not panic");
        let mut taken = Vec::new();
        for _ in 0..SETTLING {
            taken.push(there());
        }
        assert!(taken.iter().all(|lane| lane.number != here));
        taken.push(LANES.take());
        drop(taken);
        assert_eq!(there().number, 1, "nine are free: the first of them may go elsewhere");
        assert_eq!(LANES.made.load(Ordering::Relaxed) as usize, SETTLING + 1);
    }
}
