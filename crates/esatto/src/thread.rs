//! Trace points, on the threads that come to them.

mod state;

use crate::begun::Begun;
use crate::category::Category;
use crate::clock;
use crate::data_source::Writers;
use crate::event::track::Track;
use crate::event::{Arg, Event, Kind, Site};
use crate::instance::{self, MAX_INSTANCES, Stamp};
use crate::sequence::Sequence;
use crate::sys::threads;

pub(crate) use state::{Entry, Thread};

/// Records an event in every session that its category is enabled in, and says in which: a bit for each. Does nothing from inside
/// of a trace point.
///
/// What the macros do, for trace points that are made at run time. Costs a load and a branch while the category is off; see
/// [the crate's documentation](crate#what-a-trace-point-costs).
#[inline]
pub fn record(site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    if site.category().is_enabled() { record_enabled(site, args) } else { 0 }
}

/// As [`record`], where somebody has looked at the category.
#[inline(never)]
pub fn record_enabled(site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    record_in(site.category().instances(), site, args)
}

/// As [`record_enabled`], for sites without arguments; registers the category, too.
#[inline(never)]
pub fn record_plain(site: &'static Site) -> u32 {
    match site.category().known_instances() {
        Some(instances) => record_plain_in(instances, site),
        None => record_first(site),
    }
}

/// In a category that nobody has asked for before.
#[cold]
#[inline(never)]
fn record_first(site: &'static Site) -> u32 {
    if site.category().is_enabled() { record_plain_in(site.category().instances(), site) } else { 0 }
}

/// As [`record`], but only in those sessions of `instances`, a result of [`record`], that still record the category: for the ends of
/// what was begun, and for adding sessions to it.
#[inline(never)]
pub fn record_only(instances: u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    record_in(instances & site.category().instances(), site, args)
}

/// Records with arguments.
#[inline(never)]
fn record_in(instances: u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    record_here(instances, site, args)
}

/// Records without arguments: all that has to do with them is left out of what is inlined here.
#[inline(never)]
fn record_plain_in(instances: u32, site: &'static Site) -> u32 {
    record_here(instances, site, &mut [])
}

/// Records, as code of the caller.
#[inline(always)]
pub(crate) fn record_here(instances: u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    threads::run(Record { instances, site, args, decides: Its }).unwrap_or(0)
}

/// Records for those of whom `recording` says that they want it, where the category of the site does not say it.
#[inline(never)]
pub(crate) fn record_for(recording: &dyn Fn() -> u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    threads::run(Record { instances: recording(), site, args, decides: Another(recording) }).unwrap_or(0)
}

struct Record<'a, 'v, D> {
    instances: u32,
    site: &'static Site,
    args: &'a mut [Arg<'v>],
    decides: D,
}

/// What decides who records an event.
trait Decides: Copy {
    fn recording(self, site: &'static Site, args: &[Arg<'_>]) -> impl Fn() -> u32;
}

/// The category of the site, or that in the arguments.
#[derive(Clone, Copy)]
struct Its;

impl Decides for Its {
    #[inline(always)]
    fn recording(self, site: &'static Site, args: &[Arg<'_>]) -> impl Fn() -> u32 {
        let category = category_of(site, args);
        move || category.instances()
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

/// Something else.
#[derive(Clone, Copy)]
struct Another<'f>(&'f dyn Fn() -> u32);

impl Decides for Another<'_> {
    #[inline(always)]
    fn recording(self, _: &'static Site, _: &[Arg<'_>]) -> impl Fn() -> u32 {
        self.0
    }
}

impl<D: Decides> threads::Inside for Record<'_, '_, D> {
    type Result = u32;

    #[inline(always)]
    fn run(self, thread: &mut Thread) -> u32 {
        let now = clock::now_ns();
        let Self { instances, site, args, decides } = self;
        thread.record(instances, &mut TimedEvent { site, args, now, decides })
    }
}

struct TimedEvent<'a, 'v, D> {
    site: &'static Site,
    args: &'a mut [Arg<'v>],
    now: u64,
    decides: D,
}

impl<D: Decides> Entry for TimedEvent<'_, '_, D> {
    #[inline(always)]
    fn recording(&self) -> impl Fn() -> u32 {
        self.decides.recording(self.site, self.args)
    }

    #[inline(always)]
    fn write(&mut self, sequence: &mut Sequence) {
        sequence.write(self.site, self.args, self.now);
    }
}

/// An event on a track that somebody else describes.
pub(crate) struct TrackedEvent<'a, 'v> {
    pub(crate) site: &'static Site,
    pub(crate) args: &'a mut [Arg<'v>],
    pub(crate) uuid: u64,
    /// Tells which instances record it now.
    pub(crate) recording: &'a dyn Fn() -> u32,
    pub(crate) describe: &'a dyn Fn(&mut Sequence),
}

impl threads::Inside for TrackedEvent<'_, '_> {
    type Result = u32;

    #[inline(always)]
    fn run(self, thread: &mut Thread) -> u32 {
        struct Timed<'a, 'v>(TrackedEvent<'a, 'v>, u64);

        impl Entry for Timed<'_, '_> {
            #[inline(always)]
            fn recording(&self) -> impl Fn() -> u32 {
                self.0.recording
            }

            #[inline(always)]
            fn write(&mut self, sequence: &mut Sequence) {
                let Self(event, now) = self;
                if !sequence.knows(event.uuid) && sequence.begin(*now) {
                    (event.describe)(sequence);
                }
                sequence.write(event.site, event.args, *now);
            }
        }

        let now = clock::now_ns();
        thread.record((self.recording)(), &mut Timed(self, now))
    }
}

/// Runs a trace point of a custom data source, unless this thread is in a trace point already.
pub(crate) fn with_sources(trace: impl FnOnce(&mut Writers)) {
    threads::with(|thread| {
        trace(thread.sources());
    });
}

/// As [`record_enabled`], in another category than the site's, which is among the arguments.
#[inline(never)]
pub fn record_enabled_as(category: &'static Category, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    record_in(category.instances(), site, args)
}

/// Makes the last event of this thread visible to services that read the memory of a running program, as older ones do not see the packet
/// that was written last. Costs nothing if nothing was written since the last call.
pub fn empty_event() {
    threads::with(|thread| thread.sequences().for_each(|sequence| sequence.write_empty()));
}

/// Describes a track in all sessions that record track events.
pub(crate) fn describe(track: &Track) {
    struct Description<'t>(&'t Track, u64);

    fn there_are() -> u32 {
        let is_there = |index: &usize| instance::stamp(*index) != Stamp::NONE;
        (0..MAX_INSTANCES).filter(is_there).fold(0, |mask, index| mask | 1 << index)
    }

    impl Entry for Description<'_> {
        fn recording(&self) -> impl Fn() -> u32 {
            there_are
        }

        fn write(&mut self, sequence: &mut Sequence) {
            sequence.describe_again(self.0, self.1);
        }
    }

    threads::with(|thread| {
        thread.record(there_are(), &mut Description(track, clock::now_ns()));
    });
}

/// Ends the chunks of this thread and hands them to the service, so that the thread may sleep for long.
pub(crate) fn flush() {
    threads::with(Thread::flush);
}

/// As [`flush`], for all threads that are not in a trace point. Not to be called from inside of one.
pub(crate) fn flush_all() {
    threads::for_each_idle(Thread::flush);
}

/// Hands over the chunks of threads that are not in a trace point and have not traced since the last call; of all of the former, if that is wished.
/// Returns whether those were all.
pub(crate) fn reclaim(all: bool) -> bool {
    let mut all_idle = true;
    threads::for_each_idle(|thread| all_idle &= thread.reclaim(all));
    all_idle
}

/// Ends its slice when dropped; made by [`slice!`](crate::slice!).
#[derive(Debug)]
#[must_use = "the slice ends when the guard is dropped: bind it to a variable"]
pub struct SliceGuard<'t> {
    category: &'static Category,
    track: Option<&'t Track>,
    /// The instances that recorded the begin; only they get the end. (Or another one that has come to the slot of one of them since, if it wants the category and this
    /// thread has traced into it: what tells them apart, a [`Begun`], is not worth its instructions here, as an end without a begin is nothing to readers.)
    instances: u32,
}

impl<'t> SliceGuard<'t> {
    /// A guard of a slice that is recorded in these instances.
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

/// Every end of a slice whose begin says all.
static END: Site = {
    static ANY: Category = Category::new("");
    Site::new(&ANY, Kind::SliceEnd, None, &[])
};

#[cold]
#[inline(never)]
fn end(category: &'static Category, instances: u32) {
    // Nobody records the category of the site. So if there is another instance in a slot than this thread knows, which has the begin, the end is left out.
    record_plain_in(instances & category.instances(), &END);
}

#[cold]
#[inline(never)]
fn end_on(category: &'static Category, instances: u32, track: &Track) {
    record_for(&|| instances & category.instances(), &END, &mut [Arg::Track(track)]);
}

/// Ends a slice of these instances, with more to say.
#[cold]
#[inline(never)]
fn end_with(category: &'static Category, instances: u32, track: Option<&Track>, write: &mut dyn FnMut(&mut Event<'_>)) {
    let recording = || instances & category.instances();
    match track {
        None => record_for(&recording, &END, &mut [Arg::With(write)]),
        Some(track) => record_for(&recording, &END, &mut [Arg::Track(track), Arg::With(write)]),
    };
}

/// Ends a slice that was begun long ago, on whatever thread, perhaps with more to say.
#[cold]
#[inline(never)]
pub(crate) fn end_begun(
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

/// Records an event in those sessions of `begun` that still record a category.
pub(crate) fn record_begun(
    begun: Begun,
    category: &'static Category,
    site: &'static Site,
    args: &mut [Arg<'_>],
) -> u32 {
    let recording = || {
        // In this order: of an instance that is seen to record, it is known that it was set up.
        let recording = category.instances();
        recording & begun.instances()
    };
    record_for(&recording, site, args)
}

/// Which of `instances`, a result of [`record`] just now, mean those that are in these slots now. The others have ended.
#[cold]
pub(crate) fn still_there(instances: u32) -> u32 {
    threads::with(|thread| instances & thread.current()).unwrap_or(0)
}
