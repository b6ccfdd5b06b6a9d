//! Stack of the slices of guards that are open on each thread.
//!
//! The end of a slice names no slice: it ends the innermost one of its track. So a guard may record
//! the end only if its slice is the innermost one of the thread. Guards are not `Send`, and locals
//! are dropped in reverse order. Two things still break the rule: code that moves a guard to
//! another thread by force, and futures of one thread that keep guards across `.await`.
//!
//! The stack finds both:
//!
//! - A guard that is not on the stack of its thread does not record an end. The call is counted.
//! - A guard whose slice is not the innermost one first ends the slices in it. The guards of those
//!   slices are then no longer on the stack. The trace processor does the same with slices that
//!   overlap in part.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

use esatto_instances::{MAX_INSTANCES, ThreadGate as _};

use super::trace_point::record_without;
use crate::category::Category;
use crate::diagnostics;
use crate::event::{Kind, Site};
use crate::trace_point_gate::Gate;

/// Site of all ends of slices. The begin has said everything.
pub(super) static END: Site = {
    static ANY: Category = Category::new("");
    Site::new(&ANY, Kind::SliceEnd, None, &[])
};

/// Ends the innermost slice of the thread in these instances.
///
/// No session records the category of the site. So if a slot has another instance than this thread
/// knows, which has the begin, that instance does not get the end.
pub(super) fn end_innermost(instances: u32) {
    record_without(instances, &END);
}

/// Ends that were not recorded.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of ends that were not recorded, because the guard was not on the stack.
pub(crate) fn ignored_ends() -> u64 {
    IGNORED.load(Ordering::Relaxed)
}

/// Slices that a thread remembers. Deeper ones are only counted.
const REMEMBERED: usize = 32;

/// Depth of a thread without a guard so far.
const NEW: u32 = u32::MAX;

/// Slice of a guard. Zero if no instance recorded its begin. Otherwise, from the lowest bit:
///
/// - 8 bits: the instances that recorded the begin,
/// - 5 bits: the depth,
/// - 19 bits: the number of the thread,
/// - 32 bits: the number of the slice among those of this depth on the thread, from 1; 0 if the
///   slice is deeper than `REMEMBERED`. At the top, so that it wraps around alone: then one slice
///   in 2^32 has the number 0, and is taken for a deep one if it does not end as the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSlice(u64);

const INSTANCES: u64 = 0xff;
const DEPTH_SHIFT: u32 = 8;
const THREAD_SHIFT: u32 = 13;
const NUMBER_SHIFT: u32 = 32;

const _: () = assert!(MAX_INSTANCES <= 8 && REMEMBERED == 1 << (THREAD_SHIFT - DEPTH_SHIFT), "they fit");

impl OpenSlice {
    /// Slice that no instance records.
    pub const NONE: Self = Self(0);

    /// Puts a slice whose begin these instances have recorded on the stack of the thread.
    #[inline(always)]
    pub(super) fn begun(instances: u32) -> Self {
        if instances == 0 { Self::NONE } else { STACK.with(|stack| stack.push(instances)) }
    }

    /// Returns whether an instance recorded the begin.
    #[inline(always)]
    pub(super) const fn is_recorded(self) -> bool {
        self.0 != 0
    }

    /// Returns the instances that recorded the begin.
    #[inline(always)]
    pub(super) const fn instances(self) -> u32 {
        (self.0 & INSTANCES) as u32
    }

    const fn is_deep(self) -> bool {
        self.0 >> NUMBER_SHIFT == 0
    }

    /// Takes the slice from the stack, if it is the innermost one.
    #[inline(always)]
    pub(super) fn pop(self) -> bool {
        STACK.with(|stack| stack.pop(self))
    }

    /// Ends the slices in this one, and takes it from the stack. Returns false if it is not there:
    /// then its end must not be recorded.
    #[cold]
    #[inline(never)]
    pub(super) fn pop_out_of_order(self, category: &'static Category) -> bool {
        let is_open = STACK.with(|stack| stack.pop_slowly(self));
        if !is_open {
            IGNORED.fetch_add(1, Ordering::Relaxed);
            report(format_args!(
                "a slice in the category `{}` has a wrong end, because its guard was dropped after the guard of a \
                 slice around it, or on another thread: drop the guards of `slice!` in reverse order, and do not keep \
                 them across `.await` (use `async_slice!` or `#[esatto::trace]` there)",
                category.name()
            ));
        }
        is_open
    }
}

/// Counts an end that is not recorded, because its slice is not open on this thread. Reports it.
#[cold]
pub(crate) fn ignore_end(category: &'static Category, remedy: &str) {
    IGNORED.fetch_add(1, Ordering::Relaxed);
    report(format_args!(
        "a slice in the category `{}` has a wrong end, because it ended on another thread than it began, or after the slice around it: {remedy}",
        category.name()
    ));
}

/// Reports the mistake to the program's author.
fn report(mistake: core::fmt::Arguments<'_>) {
    if !Gate::is_open() {
        return;
    }
    // A signal handler that traces must not wait for the lock of the lines.
    let _closed = Gate::close();
    diagnostics::say_once(mistake.to_string());
}

thread_local! {
    static STACK: Stack = const { Stack::new() };
}

struct Stack {
    /// Number of open slices, or [`NEW`].
    depth: Cell<u32>,
    /// Number of the thread, in its place of an [`OpenSlice`].
    thread: Cell<u64>,
    /// The open slices, and above them the last ones of their depths.
    slices: [Cell<OpenSlice>; REMEMBERED],
}

impl Stack {
    const fn new() -> Self {
        Self { depth: Cell::new(NEW), thread: Cell::new(0), slices: [const { Cell::new(OpenSlice::NONE) }; REMEMBERED] }
    }

    #[inline(always)]
    fn push(&self, instances: u32) -> OpenSlice {
        let depth = self.depth.get();
        let Some(entry) = self.slices.get(depth as usize) else { return self.push_slowly(instances) };
        self.depth.set(depth + 1);
        // The slices of a signal handler that interrupts this thread from now on are deeper.
        compiler_fence(Ordering::SeqCst);
        let next = entry.get().0.wrapping_add(1 << NUMBER_SHIFT) & !INSTANCES;
        let slice = OpenSlice(next | u64::from(instances));
        entry.set(slice);
        slice
    }

    #[cold]
    #[inline(never)]
    fn push_slowly(&self, instances: u32) -> OpenSlice {
        static THREADS: AtomicU32 = AtomicU32::new(0);
        let depth = self.depth.get();
        if depth == NEW {
            let number = u64::from(THREADS.fetch_add(1, Ordering::Relaxed));
            let thread = (number % (1 << (NUMBER_SHIFT - THREAD_SHIFT))) << THREAD_SHIFT;
            self.thread.set(thread);
            for (depth, slice) in (0_u64..).zip(&self.slices) {
                slice.set(OpenSlice(thread | depth << DEPTH_SHIFT));
            }
            self.depth.set(0);
            return self.push(instances);
        }
        self.depth.set(depth + 1);
        OpenSlice(self.thread.get() | u64::from(instances))
    }

    /// Takes the innermost slice from the stack, if it is this one.
    #[inline(always)]
    fn pop(&self, slice: OpenSlice) -> bool {
        // Both loads need only the slice, so neither waits for the other.
        let place = (slice.0 >> DEPTH_SHIFT) as usize % REMEMBERED;
        let is_innermost = (self.slices[place].get() == slice) & (self.depth.get() == place as u32 + 1);
        if is_innermost {
            self.depth.set(place as u32);
        }
        is_innermost
    }

    /// Ends the slices in this one, and takes it from the stack. Returns false if it is not there.
    fn pop_slowly(&self, slice: OpenSlice) -> bool {
        let depth = match self.depth.get() {
            NEW => return false,
            depth => depth as usize,
        };
        if slice.is_deep() {
            // The guards of deep slices are expected to be dropped in the right order.
            let is_here = depth > REMEMBERED && slice.0 & !INSTANCES == self.thread.get();
            self.depth.set(if is_here { depth as u32 - 1 } else { depth as u32 });
            return is_here;
        }
        let remembered = &self.slices[..depth.min(REMEMBERED)];
        let Some(place) = remembered.iter().rposition(|entry| entry.get() == slice) else { return false };
        self.depth.set(place as u32);
        for _ in REMEMBERED..depth {
            // The instances of deep slices are not known; usually all slices have the same ones.
            end_innermost(slice.instances());
        }
        for inner in remembered[place + 1..].iter().rev() {
            end_innermost(inner.get().instances());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth() -> u32 {
        STACK.with(|stack| stack.depth.get())
    }

    fn pops(slice: OpenSlice) -> bool {
        STACK.with(|stack| stack.pop(slice) || stack.pop_slowly(slice))
    }

    #[test]
    fn the_innermost_slice_ends_first() {
        let (a, b) = (OpenSlice::begun(1), OpenSlice::begun(2));
        assert_eq!((a.instances(), b.instances(), depth()), (1, 2, 2));
        assert!(pops(b) && pops(a));
        assert!(!pops(a), "has ended");
    }

    #[test]
    fn the_end_of_a_slice_ends_those_in_it() {
        let [a, b, c] = [1; 3].map(OpenSlice::begun);
        assert!(pops(a), "ends all three");
        assert_eq!(depth(), 0);
        let [d, e, f] = [1; 3].map(OpenSlice::begun);
        assert!(!pops(b) && !pops(c), "have ended; others are at their depth");
        assert!(pops(f) && pops(e) && pops(d));
    }

    #[test]
    fn a_slice_of_another_thread_is_not_on_the_stack() {
        let elsewhere = || std::thread::spawn(|| OpenSlice::begun(1)).join().expect("does not panic");
        assert!(!pops(elsewhere()), "this thread has no stack yet");
        let own = OpenSlice::begun(1);
        assert!(!pops(elsewhere()), "both are the first slice of their thread");
        assert!(pops(own));
    }

    #[test]
    fn slices_without_end_can_be_counted() {
        let outer = OpenSlice::begun(1);
        let last = |depth: usize| {
            STACK.with(|stack| stack.slices[depth].set(OpenSlice(stack.slices[depth].get().0 | !0 << NUMBER_SHIFT)))
        };
        last(1);
        for _ in 0..3 {
            let slice = OpenSlice::begun(1);
            assert!(STACK.with(|stack| stack.pop(slice)), "{slice:?}");
        }
        assert_eq!(depth(), 1);
        assert!(pops(outer));
    }

    #[test]
    fn any_depth_is_balanced() {
        let slices: Vec<OpenSlice> = (0..100).map(|_| OpenSlice::begun(3)).collect();
        assert_eq!(depth(), 100);
        let deep = slices[99];
        assert!(!std::thread::spawn(move || pops(deep)).join().expect("does not panic"), "belongs to this thread");
        for slice in slices.iter().rev() {
            assert_eq!(slice.instances(), 3);
            assert!(pops(*slice));
        }
        assert_eq!(depth(), 0);
        assert!(!pops(deep));
    }

    #[test]
    fn a_begin_that_was_not_recorded_is_not_on_the_stack() {
        assert!(!OpenSlice::begun(0).is_recorded());
        assert!(OpenSlice::begun(4).is_recorded());
        assert_eq!(depth(), 1);
    }
}
