//! State that a stream shares with its open messages, and the rare operations.

use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use super::position::{Position, WIDENING};
use super::{INLINE_DEPTH, Open, OpenSlots, Range, RawDelegate, Slot};
use crate::wire::{self, LENGTH_FIELD_SIZE, MAX_ONE_BYTE_LENGTH, MAX_VARINT_SIZE};

/// The current range and the slots of the open messages.
#[derive(Debug)]
pub(crate) struct Core {
    /// The current range.
    pub(super) begin: *mut u8,
    pub(super) end: *mut u8,
    /// Bytes written in earlier ranges, minus the address of `begin`: position = address + bias.
    pub(super) bias: usize,
    /// Bytes written when the root message began.
    pub(super) root: usize,
    /// Number of open messages, outermost first, whose slot is in `crossed`.
    settled: usize,
    /// Number of open messages, outermost first, with a slot of four bytes; at least `settled`, and
    /// all messages in `deep`.
    pub(super) wide: usize,
    /// One bit for each depth: the last message at that depth was long.
    long: u32,
    pub(super) poisoned: bool,
    /// Slots of the open messages above `settled`, all of them in the current range.
    fresh: [MaybeUninit<NonNull<u8>>; INLINE_DEPTH],
    /// Slots that lay in the current range when it ended.
    crossed: [MaybeUninit<Open>; INLINE_DEPTH],
    /// Slots of the open messages deeper than [`INLINE_DEPTH`].
    #[cfg(feature = "alloc")]
    deep: alloc::vec::Vec<Open>,
    pub(super) delegate: NonNull<dyn RawDelegate>,
}

impl Core {
    pub(super) const fn new(delegate: NonNull<dyn RawDelegate>) -> Self {
        let nowhere = Range::EMPTY.begin.as_ptr();
        Self {
            begin: nowhere,
            end: nowhere,
            // The empty range begins at address 1.
            bias: usize::MAX,
            root: 0,
            settled: 0,
            wide: 0,
            long: 0,
            poisoned: false,
            fresh: [const { MaybeUninit::uninit() }; INLINE_DEPTH],
            crossed: [const { MaybeUninit::uninit() }; INLINE_DEPTH],
            #[cfg(feature = "alloc")]
            deep: alloc::vec::Vec::new(),
            delegate,
        }
    }

    /// Returns the bytes written up to `at` since the stream was made.
    #[inline(always)]
    pub(super) fn written(&self, at: Position) -> usize {
        at.ptr.addr().wrapping_add(self.bias)
    }

    /// Continues at the begin of `range`.
    ///
    /// # Safety
    ///
    /// `range` fulfils what [`RawDelegate::next_range`] promises, and the slots of all open
    /// messages are settled.
    #[inline]
    pub(super) unsafe fn adopt(&mut self, at: Position, range: Range) -> Position {
        let written = self.written(at);
        self.begin = range.begin.as_ptr();
        // SAFETY: the caller guarantees a valid range of `len` bytes.
        self.end = unsafe { self.begin.add(range.len) };
        self.bias = written.wrapping_sub(self.begin.addr());
        Position { ptr: self.begin, end: self.end }
    }

    /// Forgets all messages deeper than `depth`.
    pub(super) fn truncate(&mut self, depth: usize) {
        self.settled = self.settled.min(depth);
        self.wide = self.wide.min(depth);
        #[cfg(feature = "alloc")]
        self.deep.truncate(depth.saturating_sub(INLINE_DEPTH));
    }

    /// Records the slot of a message that begins inside one of depth `depth`, and decides if it is
    /// wide from the start.
    ///
    /// This is a guess: messages of one depth tend to have one size. The guess does not change the
    /// bytes, but after a wrong one, content is moved when the message ends.
    #[inline(always)]
    pub(super) fn begin(&mut self, depth: usize, slot: NonNull<u8>) -> bool {
        self.fresh[depth].write(slot);
        // The content of a narrow message is short.
        let wide = self.long & (1 << depth) != 0 && self.wide == depth;
        if wide {
            self.wide = depth + 1;
        }
        wide
    }

    /// Appends bytes in the cases that the common path does not handle: at the end of the range, or
    /// after a leak.
    #[cold]
    #[inline(never)]
    pub(super) fn write(&mut self, at: Position, depth: usize, mut bytes: &[u8]) -> Position {
        let mut at = self.recover(at, depth);
        loop {
            if at.put(bytes) {
                return at;
            }
            at = self.settle(at, depth);
            let (now, later) = bytes.split_at(bytes.len().min(at.available()));
            let fits = at.put(now);
            debug_assert!(fits, "cut to what is available");
            bytes = later;
            at = self.next_range(at, depth, 1);
        }
    }

    /// As [`write`](Self::write).
    #[cold]
    #[inline(never)]
    pub(super) fn write_varint(&mut self, at: Position, depth: usize, v: u64) -> Position {
        let mut buffer = [0; MAX_VARINT_SIZE];
        let n = wire::encode_varint(v, &mut buffer);
        self.write(at, depth, &buffer[..n])
    }

    /// As [`write`](Self::write).
    #[cold]
    #[inline(never)]
    pub(super) fn write_varint_field(&mut self, at: Position, depth: usize, tag: u32, v: u64) -> Position {
        let at = self.write_varint(at, depth, u64::from(tag));
        self.write_varint(at, depth, v)
    }

    /// As [`write`](Self::write).
    #[cold]
    #[inline(never)]
    pub(super) fn write_bytes_field(&mut self, at: Position, depth: usize, tag: u32, v: &[u8]) -> Position {
        let at = self.write_varint_field(at, depth, tag, v.len() as u64);
        self.write(at, depth, v)
    }

    /// Begins a message inside one of depth `depth`, in the cases that the common path does not
    /// handle.
    ///
    /// Returns the position in the new message, the end of the position in the outer one, and the
    /// slot.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_rare(&mut self, at: Position, depth: usize, tag: u32) -> (Position, *mut u8, NonNull<u8>) {
        let mut at = self.write_varint(at, depth, u64::from(tag));
        if at.available() < LENGTH_FIELD_SIZE {
            at = self.next_range(at, depth, LENGTH_FIELD_SIZE);
        }
        if depth >= INLINE_DEPTH {
            at = self.settle(at, depth);
        }
        // SAFETY: a position that is not taken lies in a range, whose addresses are not null.
        let slot = unsafe { NonNull::new_unchecked(at.ptr) };
        let outer_end = at.end;
        if let Some(fresh) = self.fresh.get_mut(depth) {
            fresh.write(slot);
            // SAFETY: there is room for a wide slot.
            unsafe { at.begin_narrow() };
        } else {
            // SAFETY: there is room for a wide slot.
            unsafe { at.begin_wide() };
            self.wide = depth + 1;
            #[cfg(feature = "alloc")]
            self.deep.push(self.open_at(slot));
            #[cfg(not(feature = "alloc"))]
            {
                self.poisoned = true;
            }
        }
        (at, outer_end, slot)
    }

    /// Ends a message of depth `depth` whose slot is wide, or too narrow for it, or whose position
    /// is taken.
    #[cold]
    #[inline(never)]
    pub(super) fn end_rare(&mut self, at: Position, depth: usize) -> Position {
        if at.is_taken() {
            // Void, so no length matters.
            let outer = depth.saturating_sub(1);
            return self.recover(at, outer);
        }
        if self.poisoned {
            // The message is void too. Narrow slots may be taken for wide ones, so they must not be
            // filled in.
            self.truncate(depth - 1);
            return at;
        }
        let mut at = at;
        if self.wide < depth {
            at = self.widen(at, depth);
            self.long |= (1 << depth) - 1;
        }
        let size = match self.pop(depth) {
            Some(open) => {
                let size = self.written(at).wrapping_sub(open.start);
                self.fill_settled(&mut at, open.slot, size);
                size
            }
            // SAFETY: the slot is wide and not settled, so it and the content lie in the current
            // range.
            None => unsafe { at.fill_wide(self.fresh(depth - 1)) },
        };
        self.wide = depth - 1;
        if size > wire::MAX_MESSAGE_LENGTH {
            self.poisoned = true;
        } else if size <= MAX_ONE_BYTE_LENGTH && depth <= INLINE_DEPTH {
            self.long &= !(1 << (depth - 1));
        }
        at
    }

    /// Returns the content bytes up to `at` of an open message of depth `depth`.
    pub(super) fn content_len(&self, at: Position, depth: usize) -> usize {
        self.written(at).wrapping_sub(self.start(depth))
    }

    /// Returns the position of the first byte of the content of an open message of depth `depth`.
    fn start(&self, depth: usize) -> usize {
        #[cfg(feature = "alloc")]
        if depth > INLINE_DEPTH {
            return self.deep[depth - INLINE_DEPTH - 1].start;
        }
        // The message is void, so any position after the recorded slots will do.
        #[cfg(not(feature = "alloc"))]
        let depth = depth.min(INLINE_DEPTH);
        if depth == 0 {
            self.root
        } else if depth <= self.settled {
            // SAFETY: the message is settled, so its slot is here (invariant 2).
            unsafe { self.crossed[depth - 1].assume_init() }.start
        } else if depth <= self.wide {
            self.open_at(self.fresh(depth - 1)).start
        } else {
            self.fresh(depth - 1).addr().get().wrapping_add(1).wrapping_add(self.bias)
        }
    }

    /// Continues in the next range. `at` is not taken.
    #[cold]
    #[inline(never)]
    pub(super) fn next_range(&mut self, at: Position, depth: usize, min_len: usize) -> Position {
        let at = self.settle(at, depth);
        // It is void when it ends; where `usize` has 32 bits its length might have wrapped by then.
        if depth > 0 && self.content_len(at, 1) > wire::MAX_MESSAGE_LENGTH {
            self.poisoned = true;
        }
        let used = at.ptr.addr() - self.begin.addr();
        let in_flight = Unwinding { written: self.written(at), core: self };
        let core = &mut *in_flight.core;
        let inline = &mut core.crossed[..core.settled];
        let open = OpenSlots {
            // SAFETY: the first `settled` slots are initialised (invariant 2).
            inline: unsafe { &mut *(ptr::from_mut(inline) as *mut [Open]) },
            #[cfg(feature = "alloc")]
            deep: &mut core.deep,
            #[cfg(not(feature = "alloc"))]
            deep: &mut [],
        };
        // SAFETY: the creator of the stream promised that the delegate is valid and not in use
        // elsewhere.
        let range = unsafe { core.delegate.as_mut() }.next_range(used, open, min_len);
        assert!(range.len >= min_len, "a delegate returned a range that is too small");
        core::mem::forget(in_flight);
        // SAFETY: the contract of `RawDelegate`; everything is settled.
        unsafe { self.adopt(at, range) }
    }

    /// Makes the slots of all open messages wide and records them.
    fn settle(&mut self, at: Position, depth: usize) -> Position {
        let at = self.widen(at, depth);
        for level in self.settled..depth.min(INLINE_DEPTH) {
            let open = self.open_at(self.fresh(level));
            self.crossed[level].write(open);
        }
        self.settled = self.settled.max(depth.min(INLINE_DEPTH));
        at
    }

    /// Gives all open messages wide slots, by moving their content.
    fn widen(&mut self, at: Position, depth: usize) -> Position {
        if self.wide >= depth {
            return at;
        }
        let mut end = at.ptr;
        // From the innermost one, whose content moves furthest, to the outermost.
        for level in (self.wide..depth).rev() {
            let slot = self.fresh(level);
            // SAFETY: a narrow slot is one byte of the range.
            let content = unsafe { slot.as_ptr().add(1) };
            let shift = (level + 1 - self.wide) * WIDENING;
            // SAFETY: source and destination lie in the range (invariant 4).
            unsafe { ptr::copy(content, content.add(shift), end.addr() - content.addr()) };
            // SAFETY: as above; the slot moves with the content of the message around it.
            self.fresh[level].write(unsafe { slot.add(shift - WIDENING) });
            end = slot.as_ptr();
        }
        // SAFETY: as above.
        let ptr = unsafe { at.ptr.add((depth - self.wide) * WIDENING) };
        self.wide = depth;
        Position { ptr, end: self.end }
    }

    /// Makes sure that there is a position, for a message of depth `depth`.
    pub(super) fn recover(&mut self, at: Position, depth: usize) -> Position {
        if !at.is_taken() {
            return at;
        }
        self.poisoned = true;
        self.truncate(depth);
        // Lengths do not matter any more, but each slot must have room to be wide (invariant 4).
        self.wide = depth;
        self.void_begin(depth)
    }

    /// Returns where a void message of depth `depth` continues. Its content need not be kept, but
    /// the content around it must. Its slot is wide.
    pub(super) fn void_begin(&self, depth: usize) -> Position {
        let len = self.end.addr() - self.begin.addr();
        let offset = self.start(depth).wrapping_sub(self.begin.addr().wrapping_add(self.bias));
        // All of the range is the message's, if it began before.
        let offset = if offset <= len { offset } else { 0 };
        // Between messages there may be no range, so this is no `add`.
        Position { ptr: self.begin.wrapping_add(offset), end: self.end }
    }

    /// Fills in the length of a settled message: out of line, in place, or shortened if all of it
    /// lies in one range.
    #[expect(clippy::cast_possible_truncation, reason = "a message that is too long is void")]
    fn fill_settled(&mut self, at: &mut Position, slot: Slot, size: usize) {
        let value = wire::redundant_varint4(size as u32);
        match slot {
            Slot::InPlace(slot) => {
                let slot = slot.as_ptr();
                if size <= MAX_ONE_BYTE_LENGTH
                    && slot.addr() + LENGTH_FIELD_SIZE + size == at.ptr.addr()
                    && slot.addr() >= self.begin.addr()
                {
                    // SAFETY: by the comparison above slot and content lie in the current range,
                    // whose pointer is taken: a slot in place is only promised to be writable.
                    unsafe { at.compact(at.ptr.sub(LENGTH_FIELD_SIZE + size), size) };
                } else {
                    // SAFETY: invariant 2.
                    unsafe { slot.cast::<[u8; LENGTH_FIELD_SIZE]>().write(value) };
                }
            }
            // SAFETY: see `next_range`.
            Slot::Patch(patch) => unsafe { self.delegate.as_mut() }.fill_patch(patch, value),
            Slot::Abandoned => {}
        }
    }

    /// Takes the slot of the message of depth `depth`, which is the innermost one. Returns `None`
    /// if it is not settled.
    fn pop(&mut self, depth: usize) -> Option<Open> {
        if depth > INLINE_DEPTH {
            #[cfg(feature = "alloc")]
            return self.deep.pop();
            #[cfg(not(feature = "alloc"))]
            return Some(Open { slot: Slot::Abandoned, start: 0 });
        }
        if depth > self.settled {
            return None;
        }
        self.settled = depth - 1;
        // SAFETY: the message is settled, so its slot is here (invariant 2).
        Some(unsafe { self.crossed[depth - 1].assume_init() })
    }

    /// Returns the slot of the open message at depth `level + 1`, which is not settled.
    #[inline(always)]
    fn fresh(&self, level: usize) -> NonNull<u8> {
        // SAFETY: the message is open and not settled, so its slot is here (invariant 2).
        unsafe { self.fresh[level].assume_init() }
    }

    /// A message with a wide slot in the current range.
    fn open_at(&self, slot: NonNull<u8>) -> Open {
        let start = slot.addr().get().wrapping_add(LENGTH_FIELD_SIZE).wrapping_add(self.bias);
        Open { slot: Slot::InPlace(slot), start }
    }
}

/// Guard for a call of the delegate. If the delegate panics, the owner of the old range is unknown,
/// so the stream has no range then.
struct Unwinding<'c> {
    core: &'c mut Core,
    written: usize,
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        let core = &mut *self.core;
        let nowhere = Range::EMPTY.begin.as_ptr();
        (core.begin, core.end) = (nowhere, nowhere);
        core.bias = self.written.wrapping_sub(nowhere.addr());
        core.poisoned = true;
        for open in &mut core.crossed[..core.settled] {
            // SAFETY: the first `settled` slots are initialised (invariant 2).
            unsafe { open.assume_init_mut() }.slot = Slot::Abandoned;
        }
        #[cfg(feature = "alloc")]
        core.deep.iter_mut().for_each(|open| open.slot = Slot::Abandoned);
    }
}
