//! What libraries that offer tracing to other languages stand on: trace points that consist of several calls, sequences that others write to, and
//! categories with other rules. Not part of the interface: it changes with the C library that it is made for.

use crate::category::{Category, registry};
use crate::event::{Arg, Site};
use crate::os::process_info;
use crate::sys::threads;
use crate::{clock, instance, thread, track_uuid};

pub use crate::category::{Foreign, Role};
pub use crate::data_source::begin_end::{Open, begin, end};
pub use crate::os::fork::{Guard, StaticMutex, StaticRwLock};
pub use crate::sequence::Sequence;

/// Enters a trace point and stays in it until [`leave`]; meanwhile all others of the thread do nothing. `false`: it is in one already, or about to end.
#[must_use]
pub fn enter() -> bool {
    threads::stay()
}

/// Leaves what [`enter`] entered.
pub fn leave() {
    threads::leave();
}

/// Whether a trace point of this thread would do something, as far as that is up to the thread.
#[must_use]
pub fn is_open() -> bool {
    threads::is_open()
}

/// As long as the result lives, trace points of this thread do nothing: for while it holds locks that they take, and a signal handler may come.
#[must_use]
pub fn close() -> impl Sized {
    threads::close()
}

/// The sequence of track events of this thread, which has [entered](enter), for an instance. `None`: the instance has ended.
///
/// `recording` tells which instances record now what is to be written: another one may have come to the place.
pub fn sequence<R>(instance: usize, recording: &dyn Fn() -> u32, f: impl FnOnce(&mut Sequence) -> R) -> Option<R> {
    threads::with_stayed(|thread| thread.sequence_for(instance, recording).map(f)).flatten()
}

/// Records in these instances, which the category of the site was seen to be on in. Becomes code of the caller: without arguments it is less.
#[inline(always)]
pub fn record_in(instances: u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    thread::record_here(instances, site, args)
}

/// Records in those instances of which `recording` says that they want it.
pub fn record_for(recording: &dyn Fn() -> u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    thread::record_for(recording, site, args)
}

/// As [`record_for`], on a track with this id, which is among the arguments: `describe` writes what is to be known of it, and says that it
/// [was seen](Sequence::track_seen), where that was not done before.
#[inline]
pub fn record_on(
    uuid: u64,
    describe: &dyn Fn(&mut Sequence),
    recording: &dyn Fn() -> u32,
    site: &'static Site,
    args: &mut [Arg<'_>],
) -> u32 {
    threads::run(thread::TrackedEvent { site, args, uuid, recording, describe }).unwrap_or(0)
}

/// Hands what this thread has recorded to the service.
pub fn flush() {
    thread::flush();
}

/// How many forks made this process out of the first one that traced.
#[must_use]
pub fn forks() -> u32 {
    crate::os::fork::Generation::current().number()
}

/// Has a function called in the children of forks from now on, on their thread, where all that records is off. One for the whole process.
pub fn in_child(function: fn()) {
    crate::os::fork::in_child(function);
}

/// Registers a category without telling services; returns whether there is something to [`publish`].
pub fn register(category: &'static Category) -> bool {
    registry::register_quietly(&[category])
}

/// Takes a category out of the list, in which nobody traces any more.
pub fn unregister(category: &'static Category) {
    registry::remove(category);
}

/// Tells services of the categories.
pub fn publish() {
    registry::publish();
}

/// The track of the process.
#[must_use]
pub fn process_uuid() -> u64 {
    track_uuid::process_uuid()
}

/// The number of the calling thread as the system has it.
#[must_use]
pub fn tid() -> u32 {
    process_info::tid()
}

/// 64-bit FNV-1a.
#[must_use]
pub const fn fnv(bytes: &[u8]) -> u64 {
    track_uuid::fnv(bytes)
}

/// The time, in the clock of timestamps.
#[must_use]
#[inline]
pub fn now_ns() -> u64 {
    clock::now_ns()
}

/// The number of the clock of timestamps.
#[must_use]
pub fn clock_id() -> u32 {
    clock::trace_clock_id()
}

/// Whether the configuration of an instance enables a category that is not registered, by the rules of the C library. Takes a lock.
#[must_use]
pub fn is_enabled(instance: usize, name: &str, tags: &[&str]) -> bool {
    instance < instance::MAX_INSTANCES
        && instance::get(instance)
            .1
            .is_some_and(|instance| crate::category::selection::enables_foreign(&instance.config, name, tags))
}

/// Lets a service inside of this process that starts later count its producers to a machine with this number.
pub fn set_machine_id(machine_id: u32) {
    #[cfg(feature = "in-process")]
    crate::connection::set_machine_id(machine_id);
    #[cfg(not(feature = "in-process"))]
    let _ = machine_id;
}
