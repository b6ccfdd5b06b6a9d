//! Stack of the slices that are open on the track of each thread, as far as guards need it.
//!
//! The end of a slice names no slice: it ends the innermost one of its track. So an end may be
//! recorded only if the slice that it is meant for is the innermost one. The stack has the slices
//! of guards, and those that `begin!` has begun inside of them. Other slices of the thread are not
//! on it, so `begin!` and `end!` of threads without a guard cost one test.
//!
//! A slice leaves an instance on the stack when the thread makes its sequence for the next instance
//! of the slot: the former one has ended, and the next one has not seen the begin.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use esatto_instances::MAX_INSTANCES;

/// Slices that a thread remembers. Deeper ones are only counted.
const REMEMBERED: usize = 32;

/// Depth of a thread without a guard so far.
const NEW: u32 = u32::MAX;

/// Depth at which the count stays, so that it does not become [`NEW`].
const DEEPEST: u32 = i32::MAX as u32;

/// Slice of a guard. Zero if no instance recorded its begin. Otherwise, from the lowest bit:
///
/// - 8 bits: the instances that recorded the begin,
/// - 1 bit: set if `begin!` began the slice, so that it has no guard,
/// - 5 bits: the depth,
/// - 18 bits: the number of the thread,
/// - 32 bits: the number of the slice among those of this depth on the thread, from 1; 0 if the
///   slice is deeper than `REMEMBERED`. At the top, so that it wraps around alone: then one slice
///   in 2^32 has the number 0, and is taken for a deep one if it does not end as the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSlice(u64);

const INSTANCES: u64 = 0xff;
const UNGUARDED: u64 = 0x100;
/// The bits that do not identify the slice.
const STATE: u64 = INSTANCES | UNGUARDED;
const DEPTH_SHIFT: u32 = 9;
const THREAD_SHIFT: u32 = 14;
const NUMBER_SHIFT: u32 = 32;

const _: () = assert!(MAX_INSTANCES <= 8 && REMEMBERED == 1 << (THREAD_SHIFT - DEPTH_SHIFT), "they fit");

impl OpenSlice {
    /// Slice that no instance records.
    pub const NONE: Self = Self(0);

    /// Puts the slice of a guard, whose begin these instances have recorded, on the stack of the
    /// thread.
    #[inline(always)]
    pub(crate) fn begun(instances: u32) -> Self {
        if instances == 0 { Self::NONE } else { STACK.with(|stack| stack.push(u64::from(instances))) }
    }

    /// Returns whether an instance recorded the begin.
    #[inline(always)]
    pub(crate) const fn is_recorded(self) -> bool {
        self.0 != 0
    }

    /// Returns the instances that recorded the begin.
    #[inline(always)]
    pub(crate) const fn instances(self) -> u32 {
        (self.0 & INSTANCES) as u32
    }

    /// Returns whether `begin!` began the slice.
    pub(crate) const fn is_unguarded(self) -> bool {
        self.0 & UNGUARDED != 0
    }

    const fn is_deep(self) -> bool {
        self.0 >> NUMBER_SHIFT == 0
    }

    const fn is_same(self, other: Self) -> bool {
        (self.0 ^ other.0) & !STATE == 0
    }

    /// Takes the slice from the stack, if it is the innermost one.
    #[inline(always)]
    pub(crate) fn pop(self) -> bool {
        STACK.with(|stack| stack.pop(self))
    }

    /// Calls `end` for the slices in this one, and takes it from the stack. Returns false if it is
    /// not there: then its end must not be recorded. `end` returns false if the slice has ended
    /// before, with its instances.
    pub(crate) fn pop_with_inner(self, end: &mut dyn FnMut(Self) -> bool) -> bool {
        STACK.with(|stack| stack.pop_with_inner(self, end))
    }
}

/// Returns whether a guard of this thread is open, so that `begin!` and `end!` need the stack.
#[inline(always)]
pub(crate) fn has_guard() -> bool {
    // One comparison tells 0 and `NEW` from the depths between them.
    STACK.with(|stack| stack.depth.get() as i32 > 0)
}

/// Puts a slice of `begin!`, whose begin these instances have recorded, on the stack of the thread,
/// which has a guard.
#[inline(always)]
pub(crate) fn push_unguarded(instances: u32) {
    if instances != 0 {
        STACK.with(|stack| stack.push(u64::from(instances) | UNGUARDED));
    }
}

/// Ends the innermost slice with `record`, which returns the instances in which it did. Returns
/// false if `begin!` has not begun this slice, or in other instances.
#[inline(always)]
pub(crate) fn end_innermost_unguarded(instances: u32, record: &mut impl FnMut(u32) -> u32) -> bool {
    STACK.with(
        #[inline(always)]
        |stack| stack.end_innermost_unguarded(instances, record),
    )
}

/// Returns those of `instances` in which an `end!` would not end the slice of a guard.
pub(crate) fn without_guard(instances: u32) -> u32 {
    STACK.with(|stack| stack.without_guard(instances))
}

/// Notes that an `end!` was recorded in these instances, which [`without_guard`] returned.
pub(crate) fn pop_unguarded(instances: u32) {
    STACK.with(|stack| stack.pop_unguarded(instances));
}

/// Removes an instance that has ended from the slices of this thread.
pub(crate) fn forget_instance(slot: usize) {
    STACK.with(|stack| stack.forget_instance(1 << slot));
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

    /// Puts a slice with this [`STATE`] on the stack.
    #[inline(always)]
    fn push(&self, state: u64) -> OpenSlice {
        let depth = self.depth.get();
        let Some(entry) = self.slices.get(depth as usize) else { return self.push_slowly(state) };
        self.depth.set(depth + 1);
        // The slices of a signal handler that interrupts this thread from now on are deeper.
        compiler_fence(Ordering::SeqCst);
        let next = entry.get().0.wrapping_add(1 << NUMBER_SHIFT) & !STATE;
        let slice = OpenSlice(next | state);
        entry.set(slice);
        slice
    }

    #[cold]
    #[inline(never)]
    fn push_slowly(&self, state: u64) -> OpenSlice {
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
            return self.push(state);
        }
        // A program that begins two billion slices and ends none must not look new.
        self.depth.set((depth + 1).min(DEEPEST));
        OpenSlice(self.thread.get() | state)
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

    #[inline(always)]
    fn end_innermost_unguarded(&self, instances: u32, record: &mut impl FnMut(u32) -> u32) -> bool {
        let Some(entry) = self.slices.get(self.depth.get().wrapping_sub(1) as usize) else { return false };
        let slice = entry.get();
        if slice.0 & STATE != u64::from(instances) | UNGUARDED {
            return false;
        }
        // First, because inside of a trace point nothing is recorded, and the slice goes on.
        let recorded = record(instances);
        if recorded != instances || !self.pop(slice) {
            self.pop_unguarded(recorded);
        }
        true
    }

    /// Returns the number of open slices.
    fn depth(&self) -> usize {
        match self.depth.get() {
            NEW => 0,
            depth => depth as usize,
        }
    }

    /// Returns the open slices that are remembered, outermost first.
    fn remembered(&self) -> &[Cell<OpenSlice>] {
        &self.slices[..self.depth().min(REMEMBERED)]
    }

    fn pop_with_inner(&self, slice: OpenSlice, end: &mut dyn FnMut(OpenSlice) -> bool) -> bool {
        let depth = self.depth();
        if slice.is_deep() {
            // The guards of deep slices are expected to be dropped in the right order.
            let is_here = depth > REMEMBERED && slice.0 & !STATE == self.thread.get();
            if is_here {
                self.depth.set(depth as u32 - 1);
            }
            return is_here;
        }
        let remembered = self.remembered();
        let Some(place) = remembered.iter().rposition(|entry| entry.get().is_same(slice)) else { return false };
        self.depth.set(place as u32);
        for _ in REMEMBERED..depth {
            // The instances of deep slices are not known; usually all slices have the same ones.
            if !end(OpenSlice(slice.0 & INSTANCES)) {
                break;
            }
        }
        for inner in remembered[place + 1..].iter().rev() {
            end(inner.get());
        }
        true
    }

    fn without_guard(&self, instances: u32) -> u32 {
        if self.depth() > REMEMBERED {
            // It is not known whose the innermost slice is.
            return instances;
        }
        let (mut rest, mut free) = (instances, 0);
        for entry in self.remembered().iter().rev().map(Cell::get) {
            if entry.is_unguarded() {
                free |= rest & entry.instances();
            }
            rest &= !entry.instances();
        }
        free | rest
    }

    #[cold]
    #[inline(never)]
    fn pop_unguarded(&self, instances: u32) {
        let depth = self.depth();
        if depth > REMEMBERED {
            self.depth.set(depth as u32 - u32::from(instances != 0));
            return;
        }
        let mut rest = instances;
        for entry in self.remembered().iter().rev() {
            let slice = entry.get();
            let ended = rest & slice.instances();
            if slice.is_unguarded() {
                entry.set(OpenSlice(slice.0 & !u64::from(ended)));
            }
            rest &= !ended;
        }
        self.pop_ended();
    }

    fn forget_instance(&self, instance: u32) {
        for entry in self.remembered() {
            entry.set(OpenSlice(entry.get().0 & !u64::from(instance)));
        }
        if self.depth() <= REMEMBERED {
            self.pop_ended();
        }
    }

    /// Takes the innermost slices from the stack that have ended in all instances and have no
    /// guard.
    fn pop_ended(&self) {
        while let Some(last) = self.remembered().last() {
            if last.get().0 & STATE != UNGUARDED {
                break;
            }
            self.depth.set(self.depth.get() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth() -> u32 {
        STACK.with(|stack| stack.depth.get())
    }

    fn pops(slice: OpenSlice) -> bool {
        slice.pop() || slice.pop_with_inner(&mut |_| true)
    }

    /// Returns the instances of the slices that end in `slice`.
    fn inner(slice: OpenSlice) -> Vec<(u32, bool)> {
        let mut ended = Vec::new();
        let note = &mut |inner: OpenSlice| {
            ended.push((inner.instances(), inner.is_unguarded()));
            true
        };
        assert!(slice.pop() || slice.pop_with_inner(note), "is open");
        ended
    }

    /// Does what `end!` does, and returns the instances in which it ends a slice.
    fn end(instances: u32) -> u32 {
        let free = without_guard(instances);
        pop_unguarded(free);
        free
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
            assert!(pops(*slice));
        }
        assert_eq!(depth(), 0);
    }

    #[test]
    fn begun_slices_are_on_the_stack_of_guards_only() {
        assert!(!has_guard(), "a new thread has none");
        let guard = OpenSlice::begun(1);
        assert!(has_guard());
        push_unguarded(1);
        assert!(!end_innermost_unguarded(1, &mut |_| 0) || depth() == 2, "is not recorded, so the slice goes on");
        assert!(end_innermost_unguarded(1, &mut |instances| instances));
        assert!(!end_innermost_unguarded(1, &mut |_| panic!("ends the guard")));
        assert!(pops(guard) && !has_guard());
    }

    #[test]
    fn an_end_ends_only_what_was_begun_in_the_guard() {
        let guard = OpenSlice::begun(1);
        push_unguarded(1);
        assert_eq!((end(1), end(1)), (1, 0));
        assert!(guard.pop());
        assert_eq!(end(1), 1, "no guard is open");
    }

    #[test]
    fn each_instance_has_its_own_slices() {
        let guard = OpenSlice::begun(1);
        push_unguarded(3);
        push_unguarded(2);
        assert_eq!(end(3), 3, "the outer one ends in the first instance, the inner one in the second");
        assert_eq!(end(1), 0, "only the guard is open there");
        assert_eq!(end(4), 4, "no guard is open there");
        assert_eq!(inner(guard), [(2, true)]);
    }

    #[test]
    fn slices_forget_instances_that_have_ended() {
        let guard = OpenSlice::begun(1);
        push_unguarded(1);
        let nested = OpenSlice::begun(3);
        push_unguarded(1);
        forget_instance(0);
        assert_eq!(depth(), 3, "the innermost slice has ended");
        assert_eq!(end(3), 1, "the next instance of the slot has no guard here");
        assert!(!nested.pop() && pops(nested), "its guard knows it by its number");
        assert_eq!(inner(guard), [(0, true)]);
        assert_eq!(depth(), 0);
    }

    #[test]
    fn deep_slices_are_counted() {
        let guard = OpenSlice::begun(1);
        for _ in 0..50 {
            push_unguarded(1);
        }
        assert_eq!((end(1), depth()), (1, 50));
        assert_eq!(inner(guard).len(), 49);
        let guard = OpenSlice::begun(1);
        for _ in 0..50 {
            push_unguarded(1);
        }
        let mut ends = 0;
        let nothing_ends = &mut |_: OpenSlice| {
            ends += 1;
            false
        };
        assert!(guard.pop_with_inner(nothing_ends));
        assert_eq!((ends, depth()), (32, 0), "one deep slice, and 31 that are remembered");
    }
}
