//! Way of an event from a trace point into the sequences of its thread.
//!
//! ```text
//! macro: does any session record the category?
//!   └ record_plain, record_enabled, record_enabled_as    which sessions record it now?
//!       └ record_event                                   enters the thread's state, takes the time
//!           └ ThreadState::record                        finds the sequence for each session
//!               └ Sequence::write                        encodes the event into the chunk
//! ```
//!
//! `record_event` and all below it are inlined into two functions: `record_with` for events with
//! arguments, and `record_without` for events without. The latter leaves out all code for
//! arguments. [`record_for`] is the way of events that other conditions decide on than a category.

use esatto_instances::{ThreadTable as _, TracePoint};

use super::{Begun, Threads};
use crate::category::Category;
use crate::clock;
use crate::event::{Arg, Site};
use crate::sequence::{ForeignTrack, Sequence};

/// Records an event in every session that its category is enabled in. Returns these sessions as a
/// bit mask. Does nothing from inside of a trace point.
///
/// The macros do the same, for trace points that are made at run time. Costs a load and a branch
/// while the category is off; see [the crate's documentation](crate#what-a-trace-point-costs).
#[inline]
pub fn record(site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    if site.category().is_enabled() { record_enabled(site, args) } else { 0 }
}

/// Like [`record`], but only in those sessions of `instances` (a result of [`record`]) that still
/// record the category. It is for the end of a slice, and to add sessions to a slice.
#[inline(never)]
pub fn record_only(instances: u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    record_with(instances & site.category().instances(), site, args)
}

/// As [`record`], after the caller has found the category enabled. The macros call this.
#[inline(never)]
pub fn record_enabled(site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    record_with(site.category().instances(), site, args)
}

/// As [`record_enabled`], in another category than the site's; it is also among the arguments.
#[inline(never)]
pub fn record_enabled_as(category: &'static Category, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    record_with(category.instances(), site, args)
}

/// As [`record_enabled`], for sites without arguments. Also registers the category.
#[inline(never)]
pub fn record_plain(site: &'static Site) -> u32 {
    match site.category().known_instances() {
        Some(instances) => record_without(instances, site),
        None => record_first(site),
    }
}

/// Records an event of a category that is not registered yet.
#[cold]
#[inline(never)]
fn record_first(site: &'static Site) -> u32 {
    if site.category().is_enabled() { record_without(site.category().instances(), site) } else { 0 }
}

/// Records an event with arguments.
#[inline(never)]
pub(super) fn record_with(instances: u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    record_event(instances, site, args)
}

/// Records an event without arguments.
#[inline(never)]
pub(super) fn record_without(instances: u32, site: &'static Site) -> u32 {
    record_event(instances, site, &mut [])
}

/// Records an event in `instances`, which the category of the site was loaded as recording. Becomes
/// code of the caller.
#[inline(always)]
pub(crate) fn record_event(instances: u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    let Some(mut thread) = Threads::enter() else { return 0 };
    thread.record(instances, &mut EventOfCategory { site, args, now: clock::now_ns() })
}

/// Event that its category decides on: that of the site, or the one among the arguments.
struct EventOfCategory<'a, 'v> {
    site: &'static Site,
    args: &'a mut [Arg<'v>],
    now: u64,
}

impl TracePoint<Sequence> for EventOfCategory<'_, '_> {
    #[inline(always)]
    fn recording(&self) -> impl Fn() -> u32 {
        let category = category_of(self.site, self.args);
        move || category.instances()
    }

    #[inline(always)]
    fn write(&mut self, sequence: &mut Sequence) {
        sequence.write(self.site, self.args, None, self.now);
    }
}

#[inline(never)]
fn category_of(site: &'static Site, args: &[Arg<'_>]) -> &'static Category {
    let category = site.category();
    let is_argument = core::ptr::eq(category, Category::of_argument());
    let of_argument = args.iter().filter(|_| is_argument).find_map(|arg| match arg {
        Arg::Category(category) => Some(*category),
        _ => None,
    });
    of_argument.unwrap_or(category)
}

/// Records an event in the instances that `recording` returns, where the category of the site does
/// not decide.
#[inline(never)]
pub(crate) fn record_for(recording: &dyn Fn() -> u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    record_event_for(recording, site, args, None)
}

/// As [`record_for`], possibly on a track that the caller describes. Becomes code of the caller.
#[inline(always)]
pub(crate) fn record_event_for(
    recording: &dyn Fn() -> u32,
    site: &'static Site,
    args: &mut [Arg<'_>],
    track: Option<ForeignTrack<'_>>,
) -> u32 {
    let Some(mut thread) = Threads::enter() else { return 0 };
    let now = clock::now_ns();
    thread.record(recording(), &mut EventFor { site, args, now, recording, track })
}

/// Records an event in those sessions of `begun` that still record a category.
pub(super) fn record_begun(
    begun: Begun,
    category: &'static Category,
    site: &'static Site,
    args: &mut [Arg<'_>],
) -> u32 {
    record_for(&|| begun.among(category.instances()), site, args)
}

/// Event that a function decides on.
struct EventFor<'a, 'v> {
    site: &'static Site,
    args: &'a mut [Arg<'v>],
    now: u64,
    recording: &'a dyn Fn() -> u32,
    track: Option<ForeignTrack<'a>>,
}

impl TracePoint<Sequence> for EventFor<'_, '_> {
    #[inline(always)]
    fn recording(&self) -> impl Fn() -> u32 {
        self.recording
    }

    #[inline(always)]
    fn write(&mut self, sequence: &mut Sequence) {
        sequence.write(self.site, self.args, self.track.as_ref(), self.now);
    }
}
