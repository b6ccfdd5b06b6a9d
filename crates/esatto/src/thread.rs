//! What each thread keeps: one packet sequence per instance that it has traced into.

use core::cell::RefCell;

use crate::data_source::Writers;
use crate::event::{Event, EventName, Head, Kind};
use crate::instance::{self, MAX_INSTANCES, Stamp};
use crate::sequence::Sequence;
use crate::track::Track;

thread_local! {
    /// Borrowed while a trace point runs: a trace point inside of a trace point, or in the destructor of a
    /// thread-local that runs later, does nothing.
    static THREAD: RefCell<Thread> = const { RefCell::new(Thread { sequences: [const { None }; MAX_INSTANCES], sources: Writers::new() }) };
}

#[derive(Debug)]
struct Thread {
    sequences: [Option<Box<Sequence>>; MAX_INSTANCES],
    /// For custom data sources.
    sources: Writers,
}

/// Records an event in every instance that its category is enabled in.
#[inline(never)]
pub fn record(head: &Head<'_>, body: &mut dyn FnMut(&mut Event<'_>)) {
    record_in(head.category.instances(), head, body);
}

fn record_in(mut instances: u32, head: &Head<'_>, body: &mut dyn FnMut(&mut Event<'_>)) {
    let _ = THREAD.try_with(|thread| {
        let Ok(mut thread) = thread.try_borrow_mut() else { return };
        while instances != 0 {
            let index = instances.trailing_zeros() as usize;
            instances &= instances - 1;
            if let Some(sequence) = thread.sequence(index) {
                sequence.write(head, body);
            }
        }
    });
}

/// Runs a trace point of a custom data source, unless this thread is in a trace point already.
pub(crate) fn with_sources(trace: impl FnOnce(&mut Writers)) {
    let _ = THREAD.try_with(|thread| {
        let Ok(mut thread) = thread.try_borrow_mut() else { return };
        if thread.sources.is_outdated() {
            thread.sweep();
        }
        trace(&mut thread.sources);
    });
}

/// Ends the chunks of this thread and hands them to the service, so that the thread may sleep for long.
pub(crate) fn flush() {
    let _ = THREAD.try_with(|thread| {
        if let Ok(mut thread) = thread.try_borrow_mut() {
            thread.sweep();
            for sequence in thread.sequences.iter_mut().flatten() {
                sequence.flush();
            }
            thread.sources.flush();
        }
    });
}

impl Thread {
    /// The sequence for slot `index`, up to date.
    #[inline]
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
}

/// Ends its slice when dropped; made by [`slice!`](crate::slice!).
#[derive(Debug)]
#[must_use = "the slice ends when the guard is dropped: bind it to a variable"]
pub struct SliceGuard<'t> {
    begun: Option<Begun<'t>>,
}

#[derive(Debug)]
struct Begun<'t> {
    category: &'static crate::Category,
    track: Option<&'t Track>,
    /// The instances that recorded the begin; only they get the end.
    instances: u32,
}

impl SliceGuard<'_> {
    /// A guard of a slice that is not recorded.
    #[inline(always)]
    pub const fn off() -> Self {
        Self { begun: None }
    }
}

/// Records a slice begin and returns the guard that ends the slice.
#[inline]
pub fn begin_scoped<'t>(head: &Head<'t>, body: &mut dyn FnMut(&mut Event<'_>)) -> SliceGuard<'t> {
    let instances = head.category.instances();
    record_in(instances, head, body);
    SliceGuard { begun: Some(Begun { category: head.category, track: head.track, instances }) }
}

impl Drop for SliceGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(begun) = &self.begun {
            begun.end();
        }
    }
}

impl Begun<'_> {
    #[inline(never)]
    fn end(&self) {
        let instances = self.instances & self.category.instances();
        let head = Head {
            category: self.category,
            kind: Kind::SliceEnd,
            name: EventName::Unnamed,
            track: self.track,
            counter: None,
        };
        record_in(instances, &head, &mut |_| {});
    }
}
