//! Slices that last until a guard is dropped.

use core::marker::PhantomData;

use super::Begun;
use super::guard_stack::{END, end_innermost, pop_out_of_order};
use super::trace_point::{record_begun, record_for, record_plain, record_with, record_without};
use crate::category::Category;
use crate::event::track::Track;
use crate::event::{Arg, Event, Site};
use crate::slice_stack::OpenSlice;

/// Guard of a slice on the track of its thread, which ends when the guard is dropped; made by
/// [`slice!`](crate::slice!).
///
/// The slices of a thread are nested. So the guard stays on its thread, and must be dropped before
/// the guards that were made before it. Locals are.
///
/// The guard is not `Send`. So a future that keeps it across an `.await` cannot be spawned on a
/// runtime with several threads. Use [`async_slice!`](crate::async_slice!) for futures:
///
/// ```compile_fail,E0277
/// esatto::categories! { static APP = "app"; }
///
/// fn spawn(future: impl Future<Output = ()> + Send) {}
///
/// spawn(async {
///     let _slice = esatto::slice!(APP, "wait"); // error: future cannot be sent between threads
///     std::future::ready(()).await;
/// });
/// ```
///
/// On a runtime with one thread the compiler accepts this, and the slices of several futures
/// overlap. If a guard is dropped before the guards that were made after it, their slices end with
/// its slice. [`losses`](crate::losses) counts the later drops of these guards, and those of guards
/// that unsafe code has moved to another thread. Both kinds record nothing. Slices of
/// [`begin!`](crate::begin!) inside of the guard's slice end with it. The lint
/// `clippy::await_holding_invalid_type` finds such guards if `clippy.toml` says
/// `await-holding-invalid-types = ["esatto::SliceGuard"]`.
#[doc(alias = "Entered", alias = "ScopedSpan")]
#[derive(Debug)]
#[must_use = "the slice ends when the guard is dropped: bind it to a variable"]
pub struct SliceGuard {
    category: &'static Category,
    /// Instances that recorded the begin; only they get the end. There is one exception: another
    /// instance may since have taken the slot of one of them, record the category, and have events
    /// of this thread. It also gets the end. A [`Begun`] would tell the two apart, but is not worth
    /// its instructions here, because readers ignore an end without a begin.
    slice: OpenSlice,
    _not_send: PhantomData<*const ()>,
}

impl SliceGuard {
    /// Makes the guard of a slice.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn new(category: &'static Category, slice: OpenSlice) -> Self {
        Self { category, slice, _not_send: PhantomData }
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
        let slice = core::mem::replace(&mut self.slice, OpenSlice::NONE);
        if slice.is_recorded() {
            end_with(self.category, slice, &mut write);
        }
    }
}

impl Drop for SliceGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.slice.is_recorded() {
            end(self.category, self.slice);
        }
    }
}

/// Guard of a slice on a [`Track`], which ends when the guard is dropped; made by
/// [`slice!`](crate::slice!) with `track:`.
///
/// It may be sent to another thread, and kept across an `.await`. The slices of one track are
/// nested: if futures or threads share a track, give each one its own, such as a
/// [`Lane`](crate::Lane).
#[derive(Debug)]
#[must_use = "the slice ends when the guard is dropped: bind it to a variable"]
pub struct TrackSliceGuard<'t> {
    category: &'static Category,
    track: &'t Track,
    /// As for [`SliceGuard`].
    instances: u32,
}

impl<'t> TrackSliceGuard<'t> {
    /// Makes the guard of a slice that these instances record.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn new(category: &'static Category, track: &'t Track, instances: u32) -> Self {
        Self { category, track, instances }
    }

    /// Ends the slice, with arguments and flows that were not known at its begin.
    pub fn end_with(mut self, mut write: impl FnMut(&mut Event<'_>)) {
        let instances = core::mem::take(&mut self.instances);
        if instances != 0 {
            end_on(self.category, instances, &mut [Arg::Track(self.track), Arg::With(&mut write)]);
        }
    }
}

impl Drop for TrackSliceGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.instances != 0 {
            end_plainly_on(self.category, self.instances, self.track);
        }
    }
}

/// Begins the slice of a [`SliceGuard`] as [`record_plain`] does.
#[inline(never)]
pub fn begin_plain(site: &'static Site) -> OpenSlice {
    OpenSlice::begun(match site.category().known_instances() {
        Some(instances) => record_without(instances, site),
        None => record_plain(site),
    })
}

/// Begins the slice of a [`SliceGuard`] as [`record_enabled`](super::record_enabled) does.
#[inline(never)]
pub fn begin_enabled(site: &'static Site, args: &mut [Arg<'_>]) -> OpenSlice {
    OpenSlice::begun(record_with(site.category().instances(), site, args))
}

/// Begins the slice of a [`SliceGuard`] as [`record_enabled_as`](super::record_enabled_as) does.
#[inline(never)]
pub fn begin_enabled_as(category: &'static Category, site: &'static Site, args: &mut [Arg<'_>]) -> OpenSlice {
    OpenSlice::begun(record_with(category.instances(), site, args))
}

#[cold]
#[inline(never)]
fn end(category: &'static Category, slice: OpenSlice) {
    if slice.pop() {
        end_innermost(slice.instances() & category.instances());
    } else {
        end_out_of_order(category, slice);
    }
}

#[cold]
#[inline(never)]
fn end_out_of_order(category: &'static Category, slice: OpenSlice) {
    if pop_out_of_order(slice, category) {
        end_innermost(slice.instances() & category.instances());
    }
}

/// Ends a slice of the thread, with arguments and flows.
#[cold]
#[inline(never)]
fn end_with(category: &'static Category, slice: OpenSlice, write: &mut dyn FnMut(&mut Event<'_>)) {
    if slice.pop() || pop_out_of_order(slice, category) {
        end_on(category, slice.instances(), &mut [Arg::With(write)]);
    }
}

#[cold]
#[inline(never)]
fn end_plainly_on(category: &'static Category, instances: u32, track: &Track) {
    end_on(category, instances, &mut [Arg::Track(track)]);
}

/// Ends a slice of these instances, with these arguments.
fn end_on(category: &'static Category, instances: u32, args: &mut [Arg<'_>]) {
    record_for(&|| instances & category.instances(), &END, args);
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
