//! Functions for libraries that offer tracing to other languages: trace points that consist of
//! several calls, sequences that the caller writes to, and categories with other rules.
//!
//! Not part of the interface: it changes with the C library that it is made for.

use esatto_instances::{MAX_INSTANCES, ThreadGate as _, ThreadTable as _};

use crate::category::{Category, registry};
use crate::event::{Arg, Site};
use crate::os::process_info;
use crate::record::trace_point;
use crate::record::{self, Threads};
use crate::sequence::{ForeignTrack, TRACK_EVENTS};
use crate::trace_point_gate::Gate;
use crate::{clock, control_thread, hash, track_uuid};

pub use crate::category::{Foreign, Role};
pub use crate::data_source::begin_end::{Open, begin, end};
pub use crate::os::fork::{Guard, StaticMutex, StaticRwLock};
pub use crate::sequence::Sequence;
pub use esatto_instances::{Uncancelled, is_main_thread};

/// Enters a trace point and stays in it until [`leave`]. Meanwhile all other trace points of the
/// thread do nothing. Returns `false` if the thread is already in a trace point, or about to end.
#[must_use]
pub fn enter() -> bool {
    Threads::stay()
}

/// Leaves the trace point that [`enter`] entered.
pub fn leave() {
    Threads::leave();
}

/// Returns whether the caller is the thread of this crate that talks to services.
#[must_use]
pub fn is_control_thread() -> bool {
    control_thread::is_current()
}

/// Returns whether the state of this thread allows trace points to record.
#[must_use]
pub fn is_open() -> bool {
    Gate::is_open()
}

/// Returns whether a config enables a category of this name with these tags, by the rules of
/// programs in Rust and C++ (`docs/spec/track-event.md` §5).
#[must_use]
pub fn enables(config: &esatto_schema::TrackEventConfig, name: &str, tags: &[&str]) -> bool {
    crate::category::selection::enables_one(config, name, tags, None)
}

/// Keeps trace points of this thread from recording as long as the result lives. A thread needs it
/// while it holds locks that trace points take, because a signal handler may trace.
#[must_use]
pub fn close() -> impl Sized {
    Gate::close()
}

/// Passes to `f` the sequence of track events that this thread, which has [entered](enter) a trace
/// point, has for an instance. Returns `None` if the instance has ended.
///
/// `recording` returns the instances that record the event now, because another instance may have
/// come to the slot.
pub fn sequence<R>(instance: usize, recording: &dyn Fn() -> u32, f: impl FnOnce(&mut Sequence) -> R) -> Option<R> {
    Threads::with_stayed(|thread| thread.sequence(instance, recording).map(f)).flatten()
}

/// Records an event in these instances, for which the category of the site was loaded as enabled.
/// Becomes code of the caller, which is small without arguments.
#[inline(always)]
pub fn record_in(instances: u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    trace_point::record_event(instances, site, args)
}

/// Records an event in the instances that `recording` returns.
pub fn record_for(recording: &dyn Fn() -> u32, site: &'static Site, args: &mut [Arg<'_>]) -> u32 {
    trace_point::record_for(recording, site, args)
}

/// As [`record_for`], on the track that is among the arguments. If the sequence does not know the
/// track, `describe` writes its description and calls [`Sequence::track_seen`].
#[inline]
pub fn record_on(
    describe: &dyn Fn(&mut Sequence),
    recording: &dyn Fn() -> u32,
    site: &'static Site,
    args: &mut [Arg<'_>],
) -> u32 {
    trace_point::record_event_for(recording, site, args, Some(ForeignTrack { describe }))
}

/// Hands the chunks of this thread to the service.
pub fn flush() {
    record::flush();
}

/// Counts the end of a slice that is not recorded, because the slice is not open on this thread.
/// Tells the program's author once, with the remedy.
pub fn ignore_end(category: &'static Category, remedy: &str) {
    record::ignore_end(category, remedy);
}

/// Returns the number of forks between the first process that traced and this one.
#[must_use]
pub fn forks() -> u32 {
    crate::os::fork::Generation::current().number()
}

/// Sets the one function that children of forks call, on their thread, with all recording off.
pub fn in_child(function: fn()) {
    crate::os::fork::in_child(function);
}

/// Registers a category without telling services; returns whether there is something to
/// [`publish`].
pub fn register(category: &'static Category) -> bool {
    registry::register_quietly(&[category])
}

/// Notes that a trace point of a [`Foreign`] category is reached, but no instance records it.
///
/// In the child of a fork, this remembers that the parent recorded it, and switches the category
/// off.
pub fn reached_in_child(category: &'static Category) {
    registry::reached_foreign(category);
}

/// Removes a category that no trace point uses any more.
pub fn unregister(category: &'static Category) {
    registry::remove(category);
}

/// Tells services the registered categories.
pub fn publish() {
    registry::publish();
}

/// Returns the id of the process's track.
#[must_use]
pub fn process_uuid() -> u64 {
    track_uuid::process_uuid()
}

/// Returns the system's number of the calling thread.
#[must_use]
pub fn tid() -> u32 {
    process_info::tid()
}

/// Returns the 64-bit FNV-1a hash.
#[must_use]
pub const fn fnv(bytes: &[u8]) -> u64 {
    hash::fnv(bytes)
}

/// Returns the number of the clock of [`now_ns`](crate::now_ns).
#[must_use]
pub fn clock_id() -> u32 {
    clock::trace_clock_id()
}

/// Returns whether the configuration of an instance enables a category that is not registered, by
/// the rules of the C library. Takes a lock.
#[must_use]
pub fn is_enabled(instance: usize, name: &str, tags: &[&str]) -> bool {
    instance < MAX_INSTANCES
        && TRACK_EVENTS
            .get(instance)
            .1
            .is_some_and(|instance| crate::category::selection::enables_foreign(&instance.config, name, tags))
}

/// Sets the machine number of a service inside of this process that starts later.
pub fn set_machine_id(machine_id: u32) {
    #[cfg(feature = "in-process")]
    crate::connection::set_machine_id(machine_id);
    #[cfg(not(feature = "in-process"))]
    let _ = machine_id;
}
