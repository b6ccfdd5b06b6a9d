//! Slices of a thread that an adapter of another interface begins and ends.

use super::guard_stack::pop_out_of_order;
use super::trace_point::record_with;
use crate::event::{Arg, Site};
use crate::slice_stack::OpenSlice;

/// A slice on the track of the thread, for adapters of interfaces that have begins and ends of
/// their own, such as the spans of `tracing`.
///
/// An end names no slice: it ends the innermost one of the thread. So this slice is known to the
/// guards of [`slice!`](crate::slice!) as one of theirs: what ends out of order does not end the
/// slice of another one, and is counted by [`losses`](crate::losses).
#[derive(Clone, Copy, Debug)]
pub struct ThreadSlice(OpenSlice);

impl ThreadSlice {
    /// No slice.
    pub const NONE: Self = Self(OpenSlice::NONE);

    /// Calls `record` to begin the slice on the track of this thread. `record` returns the sessions
    /// in which it did, as [`record`](crate::record) does.
    #[inline]
    #[must_use]
    pub fn by(record: impl FnOnce() -> u32) -> Self {
        Self(OpenSlice::begun(record()))
    }

    /// Returns whether a session has its begin.
    #[inline]
    #[must_use]
    pub const fn is_recorded(self) -> bool {
        self.0.is_recorded()
    }

    /// Ends the slice, in those of its sessions that still record the category of the site, and
    /// those in it that are still open. Records nothing if the slice has ended with one around it,
    /// or is on another thread. Call it once.
    #[inline]
    pub fn end(self, site: &'static Site, args: &mut [Arg<'_>]) {
        if self.is_recorded() && (self.0.pop() || pop_out_of_order(self.0, site.category())) {
            record_with(self.0.instances() & site.category().instances(), site, args);
        }
    }
}
