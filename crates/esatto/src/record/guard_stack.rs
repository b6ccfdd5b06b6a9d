//! Ends of slices in the presence of guards.
//!
//! A guard may record the end of its slice only if that is the innermost one of the thread. Guards
//! are not `Send`, and locals are dropped in reverse order. Three things still break the rule: code
//! that moves a guard to another thread by force, futures of one thread that keep guards across
//! `.await`, and `begin!` and `end!` that do not match.
//!
//! The [stack](crate::slice_stack) of the thread finds all of them:
//!
//! - A guard that is not on the stack of its thread does not record an end. The call is counted.
//! - A guard whose slice is not the innermost one first ends the slices in it. The guards of those
//!   slices are then no longer on the stack. The trace processor does the same with slices that
//!   overlap in part. If `begin!` began one of them, its `end!` is missing, which is counted.
//! - An `end!` that would end the slice of a guard records nothing. The call is counted.

use core::sync::atomic::{AtomicU64, Ordering};

use esatto_instances::{MAX_INSTANCES, ThreadGate as _, ThreadTable as _};

use super::Threads;
use super::trace_point::{record_plain, record_with, record_without};
use crate::category::Category;
use crate::diagnostics;
use crate::event::{Arg, Kind, Site};
use crate::slice_stack::{self, OpenSlice};
use crate::trace_point_gate::Gate;

/// Site of all ends of slices. The begin has said everything.
pub(super) static END: Site = {
    static ANY: Category = Category::new("");
    Site::new(&ANY, Kind::SliceEnd, None, &[])
};

/// Ends the innermost slice of the thread in these instances. Returns those in which it did.
///
/// No session records the category of the site. So if a slot has another instance than this thread
/// knows, which has the begin, that instance does not get the end.
pub(super) fn end_innermost(instances: u32) -> u32 {
    record_without(instances, &END)
}

/// Ends that are missing or were not recorded.
static WRONG: AtomicU64 = AtomicU64::new(0);

/// Returns the number of ends that are missing, or were not recorded because they would have ended
/// another slice.
pub(crate) fn wrong_ends() -> u64 {
    WRONG.load(Ordering::Relaxed)
}

/// Ends the slices in `slice`, and takes it from the stack. Returns false if it is not there: then
/// its end must not be recorded.
#[cold]
#[inline(never)]
pub(super) fn pop_out_of_order(slice: OpenSlice, category: &'static Category) -> bool {
    let mut missing = 0;
    let is_open = slice.pop_with_inner(&mut |inner| {
        let ended = end_innermost(inner.instances()) != 0;
        missing += u64::from(ended && inner.is_unguarded());
        ended
    });
    if !is_open {
        WRONG.fetch_add(1, Ordering::Relaxed);
        report(|| {
            format!(
                "a slice in the category `{}` has a wrong end, because its guard was dropped after the guard of a \
                 slice around it, or on another thread: drop the guards of `slice!` in reverse order, and do not keep \
                 them across `.await` (use `async_slice!` or `#[esatto::trace]` there)",
                category.name()
            )
        });
    }
    if missing != 0 {
        WRONG.fetch_add(missing, Ordering::Relaxed);
        report(|| {
            format!(
                "a slice that `begin!` began inside of the slice of a guard in the category `{}` has no `end!`, so it \
                 ends with that slice: call `end!` on each way out of the function, also before `return` and `?`, or \
                 use `slice!`, which needs no end",
                category.name()
            )
        });
    }
    is_open
}

/// Counts an end that is not recorded, because its slice is not open on this thread. Reports it.
#[cold]
pub(crate) fn ignore_end(category: &'static Category, remedy: &str) {
    WRONG.fetch_add(1, Ordering::Relaxed);
    report(|| {
        format!(
            "a slice in the category `{}` has a wrong end, because it ended on another thread than it began, or after \
             the slice around it: {remedy}",
            category.name()
        )
    });
}

/// Reports a mistake to the program's author.
fn report(line: impl FnOnce() -> String) {
    if !Gate::is_open() {
        return;
    }
    // A signal handler that traces must not wait for the lock of the lines.
    let _closed = Gate::close();
    diagnostics::say_once(line());
}

/// Begins a slice on the track of the thread as [`record_plain`] does, for `begin!`.
#[inline(never)]
pub fn open_plain(site: &'static Site) {
    if slice_stack::has_guard() {
        open_plain_in_guard(site);
    } else {
        record_plain_here(site);
    }
}

#[inline(never)]
fn open_plain_in_guard(site: &'static Site) {
    slice_stack::push_unguarded(record_plain(site));
}

/// Does what [`record_plain`] does, as code of the caller.
#[inline(always)]
fn record_plain_here(site: &'static Site) {
    match site.category().known_instances() {
        Some(instances) => record_without(instances, site),
        None => record_plain(site),
    };
}

/// Begins a slice on the track of the thread as [`record_enabled`](super::record_enabled) does, for
/// `begin!`.
#[inline(never)]
pub fn open_enabled(site: &'static Site, args: &mut [Arg<'_>]) {
    note_begin(record_with(site.category().instances(), site, args));
}

/// Begins a slice on the track of the thread as [`record_enabled_as`](super::record_enabled_as)
/// does, for `begin!`.
#[inline(never)]
pub fn open_enabled_as(category: &'static Category, site: &'static Site, args: &mut [Arg<'_>]) {
    note_begin(record_with(category.instances(), site, args));
}

#[inline(always)]
fn note_begin(instances: u32) {
    if slice_stack::has_guard() {
        slice_stack::push_unguarded(instances);
    }
}

/// Ends the innermost slice on the track of the thread as [`record_plain`] does, for `end!`.
#[inline(never)]
pub fn close_plain(site: &'static Site) {
    if slice_stack::has_guard() {
        close_plain_in_guard(site);
    } else {
        record_plain_here(site);
    }
}

#[inline(never)]
fn close_plain_in_guard(site: &'static Site) {
    let category = site.category();
    if category.is_enabled() {
        close_in_guard(category.instances(), category, &mut |instances| record_without(instances, site));
    }
}

/// Ends the innermost slice on the track of the thread as [`record_enabled`](super::record_enabled)
/// does, for `end!`.
#[inline(never)]
pub fn close_enabled(site: &'static Site, args: &mut [Arg<'_>]) {
    close_enabled_as(site.category(), site, args);
}

/// Ends the innermost slice on the track of the thread as
/// [`record_enabled_as`](super::record_enabled_as) does, for `end!`.
#[inline(never)]
pub fn close_enabled_as(category: &'static Category, site: &'static Site, args: &mut [Arg<'_>]) {
    let instances = category.instances();
    if slice_stack::has_guard() {
        close_enabled_in_guard(instances, category, site, args);
    } else {
        record_with(instances, site, args);
    }
}

#[inline(never)]
fn close_enabled_in_guard(instances: u32, category: &'static Category, site: &'static Site, args: &mut [Arg<'_>]) {
    close_in_guard(instances, category, &mut |instances| record_with(instances, site, args));
}

/// Calls `record` with those of `instances` in which it does not end the slice of a guard.
#[inline(always)]
fn close_in_guard(instances: u32, category: &'static Category, record: &mut impl FnMut(u32) -> u32) {
    if !slice_stack::end_innermost_unguarded(instances, record) {
        close_slowly(instances, category, record);
    }
}

#[cold]
#[inline(never)]
fn close_slowly(instances: u32, category: &'static Category, record: &mut dyn FnMut(u32) -> u32) {
    // The stack forgets the former instances of the slots. Inside of a trace point, nothing is
    // recorded or ignored.
    let Some(()) = Threads::with(|thread| {
        for slot in (0..MAX_INSTANCES).filter(|slot| instances & 1 << slot != 0) {
            thread.sequence(slot, &|| category.instances());
        }
    }) else {
        return;
    };
    let free = slice_stack::without_guard(instances);
    if free != 0 {
        slice_stack::pop_unguarded(record(free));
    }
    if free != instances {
        WRONG.fetch_add(1, Ordering::Relaxed);
        report(|| {
            format!(
                "an `end!({})` is ignored, because `begin!` has begun no slice inside of the innermost guard of \
                 `slice!` or `#[esatto::trace]` that it could end: call `end!` once for each `begin!`, before guards \
                 around the `begin!` are dropped and after those inside of it",
                category.name()
            )
        });
    }
}
