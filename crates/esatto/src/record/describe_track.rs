//! Descriptions of tracks that the program asks for.

use esatto_instances::{ThreadTable as _, TracePoint};

use super::Threads;
use crate::clock;
use crate::event::track::{Track, announcement};
use crate::sequence::{Sequence, TRACK_EVENTS};

impl Track {
    /// Describes the track in all sessions that run, even if it has no events. Also sets the names
    /// of threads and processes. The description holds in these sessions and in later ones, until
    /// the next call for the same track:
    ///
    /// ```
    /// use esatto::Track;
    ///
    /// Track::of_process().named("shop").describe_now();
    /// Track::of_this_thread().named("cashier").describe_now();
    /// ```
    ///
    /// Readers name a track as they find it named first, threads and processes as they find them
    /// named last.
    pub fn describe_now(&self) {
        if self.is_process_or_thread() {
            announcement::announce(self);
        }
        if let Some(mut thread) = Threads::enter() {
            thread.record(TRACK_EVENTS.occupied(), &mut Description { track: self, now: clock::now_ns() });
        }
    }
}

/// Description of a track, which all sessions record.
struct Description<'t> {
    track: &'t Track,
    now: u64,
}

impl TracePoint<Sequence> for Description<'_> {
    fn recording(&self) -> impl Fn() -> u32 {
        || TRACK_EVENTS.occupied()
    }

    fn write(&mut self, sequence: &mut Sequence) {
        sequence.describe_again(self.track, self.now);
    }
}
