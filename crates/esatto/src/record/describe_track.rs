//! Descriptions of tracks that the program asks for.

use crate::event::track::{Track, announcement};
use crate::thread;

impl Track {
    /// Describes the track in all sessions that run, whether anything happens on it or not. Takes effect for the names of threads and processes,
    /// too, in these sessions and in later ones, until the next call for the same track:
    ///
    /// ```
    /// use esatto::Track;
    ///
    /// Track::of_process().named("shop").describe_now();
    /// Track::of_this_thread().named("cashier").describe_now();
    /// ```
    ///
    /// Readers name a track as they find it named first, threads and processes as they find them named last.
    pub fn describe_now(&self) {
        if self.is_process_or_thread() {
            announcement::announce(self);
        }
        thread::describe(self);
    }
}
