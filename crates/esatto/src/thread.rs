//! What each thread keeps: one packet sequence per instance that it has traced into.

use crate::arg::Arg;
use crate::category::Category;
use crate::clock;
use crate::data_source::Writers;
use crate::event::{Event, Kind};
use crate::instance::{self, MAX_INSTANCES, Stamp};
use crate::sequence::Sequence;
use crate::site::Site;
use crate::sys::threads;
use crate::track::Track;

/// The state of a thread. Usually the thread's own, but the control thread may take it while the thread is not in a trace point.
#[derive(Debug)]
pub(crate) struct Thread {
    sequences: [Option<Box<Sequence>>; MAX_INSTANCES],
    /// For custom data sources.
    sources: Writers,
}

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
    record_plain_in(site.category().registered(), site)
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
    threads::run(Record { instances, site, args }).unwrap_or(0)
}

/// Records without arguments: all that has to do with them is left out of what is inlined here.
#[inline(never)]
fn record_plain_in(instances: u32, site: &'static Site) -> u32 {
    threads::run(Record { instances, site, args: &mut [] }).unwrap_or(0)
}

struct Record<'a, 'v> {
    instances: u32,
    site: &'static Site,
    args: &'a mut [Arg<'v>],
}

impl threads::Inside for Record<'_, '_> {
    type Result = u32;

    #[inline(always)]
    fn run(self, thread: &mut Thread) -> u32 {
        let now = clock::now_ns();
        let (mut rest, mut recorded) = (self.instances, self.instances);
        while rest != 0 {
            let index = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            match thread.sequence(index) {
                Some(sequence) => sequence.write(self.site, self.args, now),
                None => recorded &= !(1 << index),
            }
        }
        recorded
    }
}

/// Runs a trace point of a custom data source, unless this thread is in a trace point already.
pub(crate) fn with_sources(trace: impl FnOnce(&mut Writers)) {
    threads::with(|thread| {
        if thread.sources.is_outdated() {
            thread.sweep();
        }
        trace(&mut thread.sources);
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
    threads::with(|thread| thread.sequences.iter_mut().flatten().for_each(|sequence| sequence.write_empty()));
}

/// Describes a track in all sessions that record track events.
pub(crate) fn describe(track: &Track) {
    threads::with(|thread| {
        let now = clock::now_ns();
        for index in 0..MAX_INSTANCES {
            if instance::stamp(index) != Stamp::NONE {
                if let Some(sequence) = thread.sequence(index) {
                    sequence.describe_again(track, now);
                }
            }
        }
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

impl Thread {
    pub(crate) const fn new() -> Self {
        Self { sequences: [const { None }; MAX_INSTANCES], sources: Writers::new() }
    }

    /// The sequence for slot `index`, up to date.
    #[inline(always)]
    fn sequence(&mut self, index: usize) -> Option<&mut Sequence> {
        let stamp = instance::stamp(index);
        let valid = matches!(&self.sequences[index], Some(sequence) if sequence.stamp() == stamp);
        if !valid {
            self.renew(index);
        }
        self.sequences[index].as_deref_mut()
    }

    /// The slot has another instance than the sequence was made for, or its incremental state was cleared.
    #[cold]
    #[inline(never)]
    fn renew(&mut self, index: usize) {
        let (stamp, instance) = instance::get(index);
        match &mut self.sequences[index] {
            Some(sequence) if stamp.is_same_instance(sequence.stamp()) => sequence.clear(stamp),
            sequence => *sequence = instance.map(|instance| Box::new(Sequence::new(&instance, stamp))),
        }
        self.sweep();
    }

    /// Drops the sequences of instances that are gone, which returns their chunks.
    fn sweep(&mut self) {
        for (index, sequence) in self.sequences.iter_mut().enumerate() {
            let stamp = instance::stamp(index);
            if sequence.as_ref().is_some_and(|s| stamp == Stamp::NONE || !stamp.is_same_instance(s.stamp())) {
                *sequence = None;
            }
        }
        self.sources.sweep();
    }

    /// Hands over what is left, as the thread ends.
    pub(crate) fn end(&mut self) {
        self.sequences = [const { None }; MAX_INSTANCES];
        self.sources.end();
    }

    fn reclaim(&mut self, all: bool) -> bool {
        self.sweep();
        let mut all_idle = self.sources.reclaim(all);
        for sequence in self.sequences.iter_mut().flatten() {
            if sequence.is_idle() || all {
                sequence.flush();
            } else {
                all_idle = false;
            }
        }
        all_idle
    }

    fn flush(&mut self) {
        self.sweep();
        for sequence in self.sequences.iter_mut().flatten() {
            sequence.flush();
        }
        self.sources.flush();
    }
}

/// Ends its slice when dropped; made by [`slice!`](crate::slice!).
#[derive(Debug)]
#[must_use = "the slice ends when the guard is dropped: bind it to a variable"]
pub struct SliceGuard<'t> {
    category: &'static Category,
    track: Option<&'t Track>,
    /// The instances that recorded the begin; only they get the end.
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
    record_plain_in(instances & category.instances(), &END);
}

#[cold]
#[inline(never)]
pub(crate) fn end_on(category: &'static Category, instances: u32, track: &Track) {
    record_in(instances & category.instances(), &END, &mut [Arg::Track(track)]);
}

/// Ends a slice of these instances, with more to say.
#[cold]
#[inline(never)]
pub(crate) fn end_with(
    category: &'static Category,
    instances: u32,
    track: Option<&Track>,
    write: &mut dyn FnMut(&mut Event<'_>),
) {
    let instances = instances & category.instances();
    match track {
        None => record_in(instances, &END, &mut [Arg::With(write)]),
        Some(track) => record_in(instances, &END, &mut [Arg::Track(track), Arg::With(write)]),
    };
}
