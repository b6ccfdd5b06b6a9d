//! [`Stream`], and the open messages that hold its position in turn.

use core::ptr::NonNull;

use super::core::Core;
use super::position::Position;
use super::{INLINE_DEPTH, Range, RawDelegate};
use crate::wire::{self, WireType};

/// Write position in a chain of byte ranges.
#[derive(Debug)]
pub struct Stream {
    position: Position,
    core: Core,
}

impl Stream {
    /// Makes a stream without memory; the first write asks `delegate` for a range.
    ///
    /// # Safety
    ///
    /// `delegate` is valid, and not accessed otherwise during any call on this stream or on a
    /// message of it, for as long as the stream is used, or until [`attach`](Self::attach) sets
    /// another.
    #[must_use]
    pub unsafe fn new(delegate: NonNull<dyn RawDelegate + '_>) -> Self {
        // SAFETY: the caller's promise.
        let core = Core::new(unsafe { erase(delegate) });
        Self { position: Position { ptr: core.begin, end: core.end }, core }
    }

    /// Sets the delegate again, because it has moved in memory.
    ///
    /// # Safety
    ///
    /// As [`new`](Self::new).
    #[inline]
    pub unsafe fn attach(&mut self, delegate: NonNull<dyn RawDelegate + '_>) {
        // SAFETY: the caller's promise.
        self.core.delegate = unsafe { erase(delegate) };
    }

    /// Takes the position out for a root message.
    #[inline(always)]
    pub(super) fn root_frame(&mut self) -> Frame<'_> {
        self.core.root = self.position();
        let position = self.position.take();
        let up_end = position.end;
        let (up, core) = (&mut self.position, &mut self.core);
        Frame { position, up, up_end, core, slot: NonNull::dangling(), depth: 0 }
    }

    /// Adopts another range. The bytes written so far keep counting in
    /// [`position`](Self::position).
    ///
    /// # Safety
    ///
    /// `range` fulfils what [`RawDelegate::next_range`] promises, and no message is open. A leaked
    /// message is open until [`clear_poison`](Self::clear_poison).
    #[inline]
    pub unsafe fn reset(&mut self, range: Range) {
        // SAFETY: the caller's promise.
        self.position = unsafe { self.core.adopt(self.here(), range) };
    }

    /// Returns the bytes written since the stream was made.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.core.written(self.here())
    }

    /// Sets the start of [`position`](Self::position). Only for a stream without open messages.
    pub(crate) fn set_position(&mut self, position: usize) {
        self.core.bias = position.wrapping_sub(self.ptr().addr());
    }

    /// Returns the bytes left in the current range.
    #[inline]
    #[must_use]
    pub fn available(&self) -> usize {
        self.position.available()
    }

    /// Returns the bytes written into the current range.
    #[inline]
    #[must_use]
    pub fn used(&self) -> usize {
        self.ptr().addr() - self.core.begin.addr()
    }

    /// Returns the address of the next byte.
    #[inline]
    #[must_use]
    pub fn ptr(&self) -> *mut u8 {
        self.here().ptr
    }

    /// As [`ptr`](Self::ptr), if no message is open.
    #[inline(always)]
    #[must_use]
    pub fn next(&self) -> *mut u8 {
        self.position.ptr
    }

    /// Skips bytes that other code has written.
    ///
    /// # Safety
    ///
    /// No message is open, none was leaked, and `n` bytes are [available](Self::available).
    #[inline(always)]
    pub unsafe fn advance(&mut self, n: usize) {
        // SAFETY: the caller's promise.
        self.position.ptr = unsafe { self.position.ptr.add(n) };
    }

    /// Returns the first address of the current range.
    #[inline]
    #[must_use]
    pub fn begin(&self) -> *mut u8 {
        self.core.begin
    }

    /// Moves the write position back to `used` bytes from the begin of the current range.
    ///
    /// # Panics
    ///
    /// If that is after the current position.
    #[inline]
    pub fn rewind_to(&mut self, used: usize) {
        assert!(used <= self.used(), "a stream is only rewound");
        // A leak stays recorded.
        self.core.recover(self.position, 0);
        // SAFETY: `used` lies between 0 and the current offset, so the result is in the range.
        self.position = Position { ptr: unsafe { self.core.begin.add(used) }, end: self.core.end };
    }

    /// Returns true if a message was leaked or exceeded a limit: everything written since its root
    /// began is void.
    #[inline]
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.core.poisoned || self.position.is_taken()
    }

    /// Forgets open messages and the poison.
    pub fn clear_poison(&mut self) {
        self.position = self.here();
        self.core.poisoned = false;
        self.core.truncate(0);
    }

    /// Takes `n` contiguous bytes and returns the address of the first.
    ///
    /// If fewer are left, the rest of the range stays unused, and the delegate provides the next
    /// one.
    #[inline]
    pub fn reserve(&mut self, n: usize) -> NonNull<u8> {
        if self.available() < n {
            let at = self.position.take();
            let at = self.core.recover(at, 0);
            self.position = self.core.next_range(at, 0, n);
        }
        // SAFETY: the position lies in a range and is never null.
        let address = unsafe { NonNull::new_unchecked(self.position.ptr) };
        // SAFETY: at least `n` bytes are available, by the check above or the contract of
        // `next_range`.
        self.position.ptr = unsafe { self.position.ptr.add(n) };
        address
    }

    /// Replaces the four bytes at `slot`, directly before the last `size` bytes, by a one-byte
    /// length.
    ///
    /// The write position moves back by three.
    ///
    /// # Safety
    ///
    /// `slot + 4 + size` is the write position, all of it lies in the current range, `size` is at
    /// most 127, and no message is open.
    #[inline]
    pub unsafe fn compact(&mut self, slot: *mut u8, size: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.position.compact(slot, size) };
    }

    /// Returns the position. If a leaked message took it, returns the begin of that message, as far
    /// as that is in the current range.
    #[inline]
    fn here(&self) -> Position {
        if self.position.is_taken() { self.core.void_begin(0) } else { self.position }
    }
}

/// Removes the lifetime of the delegate from the pointer's type.
///
/// # Safety
///
/// The pointer is not used longer.
unsafe fn erase<'d>(delegate: NonNull<dyn RawDelegate + 'd>) -> NonNull<dyn RawDelegate> {
    // SAFETY: the types differ only in a lifetime, for which the caller vouches.
    unsafe { core::mem::transmute::<NonNull<dyn RawDelegate + 'd>, NonNull<dyn RawDelegate>>(delegate) }
}

/// Open message: the position, unless a nested message has it, and where to return it.
#[derive(Debug)]
pub(crate) struct Frame<'w> {
    position: Position,
    /// Owner of the position: the parent, or the stream.
    up: &'w mut Position,
    /// The end of that position.
    up_end: *mut u8,
    core: &'w mut Core,
    /// Place of the length if the slot is narrow.
    slot: NonNull<u8>,
    /// 0 for a root message.
    depth: usize,
}

impl Frame<'_> {
    /// Begins a nested message.
    #[inline(always)]
    pub(crate) fn begin(&mut self, field: u32) -> Frame<'_> {
        let tag = wire::tag(field, WireType::LengthDelimited);
        let mut position = self.position.take();
        let up_end = position.end;
        let slot = if self.depth < INLINE_DEPTH { position.put_tag(tag) } else { None };
        let (up_end, slot) = if let Some(slot) = slot {
            if self.core.begin(self.depth, slot) {
                // SAFETY: `put_tag` has checked that there is room for more than a slot.
                unsafe { position.begin_wide() };
            } else {
                // SAFETY: as above.
                unsafe { position.begin_narrow() };
            }
            (up_end, slot)
        } else {
            let (rare, up_end, slot) = self.core.begin_rare(position, self.depth, tag);
            position = rare;
            (up_end, slot)
        };
        Frame { position, up: &mut self.position, up_end, core: self.core, slot, depth: self.depth + 1 }
    }

    /// Appends a tag and a varint.
    #[inline(always)]
    pub(crate) fn varint_field(&mut self, tag: u32, v: u64) {
        if !self.position.put_varint_field(tag, v) {
            self.position = self.core.write_varint_field(self.position.take(), self.depth, tag, v);
        }
    }

    /// Appends a tag and a value of fixed size.
    #[inline(always)]
    pub(crate) fn fixed_field<const N: usize>(&mut self, tag: u32, bytes: [u8; N]) {
        if !self.position.put_fixed_field(tag, bytes) {
            self.position = self.core.write_varint(self.position.take(), self.depth, u64::from(tag));
            self.position = self.core.write(self.position.take(), self.depth, &bytes);
        }
    }

    /// Appends a tag, a length and as many bytes.
    #[inline(always)]
    pub(crate) fn bytes_field(&mut self, tag: u32, v: &[u8]) {
        if !self.position.put_bytes_field(tag, v) {
            self.position = self.core.write_bytes_field(self.position.take(), self.depth, tag, v);
        }
    }

    /// Appends bytes, over as many ranges as necessary.
    #[inline(always)]
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if !self.position.put(bytes) {
            self.position = self.core.write(self.position.take(), self.depth, bytes);
        }
    }

    /// Appends a varint.
    #[inline(always)]
    pub(crate) fn write_varint(&mut self, v: u64) {
        if !self.position.put_varint(v) {
            self.position = self.core.write_varint(self.position.take(), self.depth, v);
        }
    }

    /// Returns the bytes of content so far; 0 if the message is void.
    pub(crate) fn len(&self) -> usize {
        if self.position.is_taken() || self.core.poisoned {
            0
        } else {
            self.core.content_len(self.position, self.depth)
        }
    }
}

impl Drop for Frame<'_> {
    // One short path, or the compiler would not inline it. Everything else is one call.
    #[cfg_attr(feature = "compact", inline(never))]
    #[cfg_attr(not(feature = "compact"), inline(always))]
    fn drop(&mut self) {
        let at = self.position;
        // SAFETY: a slot that is not wide is in the current range, and so is the position unless it
        // is taken.
        *self.up = if self.depth > self.core.wide && unsafe { at.fill_narrow(self.slot) } {
            Position { ptr: at.ptr, end: self.up_end }
        } else if self.depth == 0 && !at.is_taken() {
            at
        } else {
            self.core.end_rare(self.position.take(), self.depth)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::{OpenSlots, Slot};

    /// Delegate that returns the parts of an array in turn.
    struct Parts {
        memory: NonNull<[u8; 4 * 32]>,
        next: usize,
        /// Slots seen in place, in all calls.
        seen: usize,
        panics: bool,
    }

    // SAFETY: the memory outlives the stream, and no other code accesses it; slots are abandoned.
    unsafe impl RawDelegate for Parts {
        fn next_range(&mut self, _used: usize, mut open: OpenSlots<'_>, min_len: usize) -> Range {
            assert!(!self.panics && min_len <= 32, "on purpose");
            open.redirect(|_| {
                self.seen += 1;
                Slot::Abandoned
            });
            self.next = (self.next + 1) % 4;
            // SAFETY: there are four parts.
            Range { begin: unsafe { self.memory.cast::<u8>().add(32 * self.next) }, len: 32 }
        }

        fn fill_patch(&mut self, _: u32, _: [u8; 4]) {
            unreachable!("no slot is ever redirected to a patch");
        }
    }

    fn with_stream(test: impl FnOnce(&mut Stream, NonNull<Parts>)) {
        let mut memory = [0; 4 * 32];
        let mut parts = Parts { memory: NonNull::from(&mut memory), next: 0, seen: 0, panics: false };
        let parts = NonNull::from(&mut parts);
        // SAFETY: the delegate outlives the stream.
        test(&mut unsafe { Stream::new(parts) }, parts);
    }

    /// Leaves messages open in all ways that a stream can tell apart.
    fn leak(stream: &mut Stream, how: usize) {
        let mut root = stream.root();
        if how == 1 {
            core::mem::forget(root.begin(1));
        }
        if how == 2 {
            let mut outer = root.begin(1);
            let mut inner = outer.begin(1);
            inner.bytes(1, &[1; 100]);
            core::mem::forget(inner);
            core::mem::forget(outer);
        }
        core::mem::forget(root);
    }

    #[test]
    fn a_leak_stays_recorded_after_any_call_of_the_stream() {
        for how in 0..3 {
            for next in 0..3 {
                with_stream(|stream, _| {
                    stream.root().varint(1, 1);
                    leak(stream, how);
                    match next {
                        0 => drop(stream.reserve(4)),
                        1 => stream.rewind_to(0),
                        _ => stream.root().varint(1, 1),
                    }
                    assert!(stream.is_poisoned(), "{how} {next}");
                    // The messages that were open are no longer open.
                    let mut root = stream.root();
                    root.begin(1).begin(2).varint(3, 3);
                    root.begin(1).bytes(2, &[0; 200]);
                    drop(root);
                    stream.clear_poison();
                    assert!(!stream.is_poisoned());
                });
            }
        }
    }

    #[test]
    fn a_stream_whose_delegate_panicked_has_no_range_and_goes_on_counting() {
        with_stream(|stream, mut parts| {
            stream.root().bytes(1, &[0; 10]);
            let before = stream.position();
            // SAFETY: not during a call on the stream.
            unsafe { parts.as_mut() }.panics = true;
            let mut root = stream.root();
            let mut nested = root.begin(1);
            let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| nested.bytes(1, &[0; 100])));
            assert!(panicked.is_err());
            assert_eq!(nested.len(), 0, "void");
            drop(nested);
            drop(root);
            assert!(stream.is_poisoned());
            assert_eq!((stream.available(), stream.used()), (0, 0));
            assert!(stream.position() >= before && stream.position() <= before + 32);
            // SAFETY: as above.
            unsafe { parts.as_mut() }.panics = false;
            stream.clear_poison();
            stream.root().begin(1).bytes(1, &[0; 100]);
            assert!(!stream.is_poisoned());
        });
    }

    #[test]
    fn a_slot_of_a_leaked_message_is_not_seen_again() {
        with_stream(|stream, parts| {
            leak(stream, 2);
            stream.clear_poison();
            // SAFETY: not during a call on the stream.
            let seen = unsafe { parts.as_ref() }.seen;
            stream.root().bytes(1, &[0; 100]);
            // SAFETY: as above.
            assert_eq!(unsafe { parts.as_ref() }.seen, seen);
        });
    }
}
