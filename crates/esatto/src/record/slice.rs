//! Slices that last until a guard is dropped.

use super::Begun;
use super::trace_point::{record_begun, record_for, record_without};
use crate::category::Category;
use crate::event::track::Track;
use crate::event::{Arg, Event, Kind, Site};

/// Guard that ends its slice when it is dropped; made by [`slice!`](crate::slice!).
#[derive(Debug)]
#[must_use = "the slice ends when the guard is dropped: bind it to a variable"]
pub struct SliceGuard<'t> {
    category: &'static Category,
    track: Option<&'t Track>,
    /// Instances that recorded the begin; only they get the end. There is one exception: another
    /// instance may since have taken the slot of one of them, record the category, and have events
    /// of this thread. It also gets the end. A [`Begun`] would tell the two apart, but is not worth
    /// its instructions here, because readers ignore an end without a begin.
    instances: u32,
}

impl<'t> SliceGuard<'t> {
    /// Makes the guard of a slice that these instances record.
    #[inline(always)]
    pub const fn new(category: &'static Category, track: Option<&'t Track>, instances: u32) -> Self {
        Self { category, track, instances }
    }

    /// Ends the slice, with arguments and flows that were not known at its begin.
    ///
    /// ```
    /// # esatto::categories! { static APP = "app"; }
    /// let slice = esatto::slice!(APP, "parse");
    /// let number = "42".parse::<u32>();
    /// slice.end_with(|event| event.annotate("ok", number.is_ok()));
    /// ```
    pub fn end_with(mut self, mut write: impl FnMut(&mut Event<'_>)) {
        let instances = core::mem::take(&mut self.instances);
        if instances != 0 {
            end_with(self.category, instances, self.track, &mut write);
        }
    }
}

impl Drop for SliceGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.instances != 0 {
            match self.track {
                None => end(self.category, self.instances),
                Some(track) => end_on(self.category, self.instances, track),
            }
        }
    }
}

/// Site of all ends of slices. The begin has said everything.
static END: Site = {
    static ANY: Category = Category::new("");
    Site::new(&ANY, Kind::SliceEnd, None, &[])
};

#[cold]
#[inline(never)]
fn end(category: &'static Category, instances: u32) {
    // No session records the category of the site. So if a slot has another instance than this
    // thread knows, which has the begin, that instance does not get the end.
    record_without(instances & category.instances(), &END);
}

#[cold]
#[inline(never)]
fn end_on(category: &'static Category, instances: u32, track: &Track) {
    record_for(&|| instances & category.instances(), &END, &mut [Arg::Track(track)]);
}

/// Ends a slice of these instances, with arguments and flows.
#[cold]
#[inline(never)]
fn end_with(category: &'static Category, instances: u32, track: Option<&Track>, write: &mut dyn FnMut(&mut Event<'_>)) {
    let recording = || instances & category.instances();
    match track {
        None => record_for(&recording, &END, &mut [Arg::With(write)]),
        Some(track) => record_for(&recording, &END, &mut [Arg::Track(track), Arg::With(write)]),
    };
}

/// Ends a slice that may outlive sessions, on any thread.
#[cold]
#[inline(never)]
pub(super) fn end_begun(
    category: &'static Category,
    begun: Begun,
    track: &Track,
    write: Option<&mut dyn FnMut(&mut Event<'_>)>,
) {
    match write {
        None => record_begun(begun, category, &END, &mut [Arg::Track(track)]),
        Some(write) => record_begun(begun, category, &END, &mut [Arg::Track(track), Arg::With(write)]),
    };
}
