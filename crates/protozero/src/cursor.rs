//! The raw write cursor: a position in a chain of byte ranges, and the lengths still to be filled in.
//!
//! A [`Stream`] writes into one range of memory at a time. When the range is full, its
//! [`RawDelegate`] hands over the next one. Messages that are open at that moment have reserved
//! four bytes for their length in a range that is about to be given away; the delegate sees these
//! *slots* and may redirect each to a *patch*, a value that it will be told later.
//!
//! This is the unsafe floor of the crate, for those who bring their own memory (shared memory chunks,
//! rings). Everyone else uses [`Message`] on a ready-made sink.
//!
//! # Invariants
//!
//! 1. `begin ≤ ptr ≤ end`, all in one range that the delegate (or the owner, by [`Stream::reset`])
//!    handed over and that stays writable until the next one is asked for.
//! 2. Every [`Slot::InPlace`] points to four writable bytes. The delegate upholds this across ranges: it
//!    redirects the slots of a range that it takes away.
//! 3. `depth` is the number of open nested messages. A message that is closed at another depth than
//!    it was opened at tells that a guard in between was leaked; the stream is then *poisoned*, and whoever owns
//!    it drops what was written since the root message began.

#[cfg(feature = "alloc")]
pub(crate) mod heap;
pub(crate) mod slice;

use core::ptr::NonNull;

use crate::message::Message;
use crate::wire::{self, LENGTH_FIELD_SIZE, MAX_ONE_BYTE_LENGTH, MAX_SIMPLE_FIELD_SIZE, MAX_TAG_SIZE, MAX_VARINT_SIZE};

/// Nesting depth up to which open messages are tracked without allocation.
///
/// Deeper nesting allocates (feature `alloc`) or poisons the message.
pub const INLINE_DEPTH: usize = 16;

/// A range of writable bytes.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// First byte.
    pub begin: NonNull<u8>,
    /// Length in bytes.
    pub len: usize,
}

impl Range {
    /// A range without bytes: the first write asks the delegate for memory.
    pub const EMPTY: Self = Self { begin: NonNull::dangling(), len: 0 };
}

/// Where the length of an open message goes when it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Into four bytes of a range.
    InPlace(NonNull<u8>),
    /// To [`RawDelegate::fill_patch`], with this number.
    Patch(u32),
    /// Nowhere: the message is being discarded.
    Abandoned,
}

/// The lengths that are still open, as seen by a [`RawDelegate`].
#[derive(Debug)]
pub struct OpenSlots<'s> {
    inline: &'s mut [Slot],
    deep: &'s mut [Slot],
}

impl OpenSlots<'_> {
    /// Replaces every [`Slot::InPlace`] by what `redirect` returns for its address, outermost message first.
    pub fn redirect(&mut self, mut redirect: impl FnMut(NonNull<u8>) -> Slot) {
        for slot in self.inline.iter_mut().chain(self.deep.iter_mut()) {
            if let Slot::InPlace(address) = *slot {
                *slot = redirect(address);
            }
        }
    }

    /// True if no nested message is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inline.is_empty()
    }
}

/// Hands out memory to a [`Stream`].
///
/// # Safety
///
/// An implementation guarantees that
/// - the range returned by [`next_range`](Self::next_range) is valid for writes and is not accessed
///   through references by anybody, until the next call of `next_range` or until the owner
///   of the stream resets it;
/// - the range has at least `min_len` bytes;
/// - after `next_range`, each slot left [`Slot::InPlace`] points to four bytes that stay valid for writes for as long
///   as messages can be open.
pub unsafe trait RawDelegate {
    /// The current range is exhausted (`used` of its bytes were written): returns the next one.
    ///
    /// Must not fail; a delegate without memory returns scratch space and abandons the open slots.
    fn next_range(&mut self, used: usize, open: OpenSlots<'_>, min_len: usize) -> Range;

    /// The value of a [`Slot::Patch`] is known.
    fn fill_patch(&mut self, patch: u32, value: [u8; LENGTH_FIELD_SIZE]);
}

/// A write position in a chain of byte ranges.
#[derive(Debug)]
pub struct Stream {
    ptr: *mut u8,
    end: *mut u8,
    begin: *mut u8,
    /// Bytes written in earlier ranges, minus the address of `begin`: position = address + bias.
    bias: usize,
    depth: usize,
    root_open: bool,
    poisoned: bool,
    inline: [Slot; INLINE_DEPTH],
    #[cfg(feature = "alloc")]
    deep: alloc::vec::Vec<Slot>,
    delegate: NonNull<dyn RawDelegate>,
}

impl Stream {
    /// Makes a stream without memory; the first write asks `delegate` for a range.
    ///
    /// # Safety
    ///
    /// `delegate` is valid, and accessed by nobody else during any call on this stream or on a message of it, for as
    /// long as the stream is used.
    #[must_use]
    pub const unsafe fn new(delegate: NonNull<dyn RawDelegate>) -> Self {
        Self {
            ptr: NonNull::dangling().as_ptr(),
            end: NonNull::dangling().as_ptr(),
            begin: NonNull::dangling().as_ptr(),
            // NonNull::<u8>::dangling() is address 1.
            bias: usize::MAX,
            depth: 0,
            root_open: false,
            poisoned: false,
            inline: [Slot::Abandoned; INLINE_DEPTH],
            #[cfg(feature = "alloc")]
            deep: alloc::vec::Vec::new(),
            delegate,
        }
    }

    /// Begins a root message, which has no length of its own.
    ///
    /// If an earlier root message was leaked, the stream is poisoned.
    #[inline]
    pub fn root(&mut self) -> Message<'_> {
        if self.root_open || self.depth != 0 {
            self.poison();
        }
        self.root_open = true;
        Message::open(self, 0)
    }

    /// Adopts another range. What was written so far keeps counting in [`position`](Self::position).
    ///
    /// # Safety
    ///
    /// `range` fulfils what [`RawDelegate::next_range`] promises, and no message is open whose slot lies in a
    /// range that is no longer valid.
    #[inline]
    pub unsafe fn reset(&mut self, range: Range) {
        let position = self.position();
        self.begin = range.begin.as_ptr();
        self.ptr = self.begin;
        // SAFETY: the caller guarantees a valid range of `len` bytes.
        self.end = unsafe { self.begin.add(range.len) };
        self.bias = position.wrapping_sub(self.begin.addr());
    }

    /// Bytes written since the stream was made.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.ptr.addr().wrapping_add(self.bias)
    }

    /// Sets what [`position`](Self::position) counts from. Only for a stream without open messages.
    #[cfg(feature = "alloc")]
    pub(crate) fn set_position(&mut self, position: usize) {
        self.bias = position.wrapping_sub(self.ptr.addr());
    }

    /// Bytes left in the current range.
    #[inline]
    #[must_use]
    pub fn available(&self) -> usize {
        self.end.addr() - self.ptr.addr()
    }

    /// Bytes written into the current range.
    #[inline]
    #[must_use]
    pub fn used(&self) -> usize {
        self.ptr.addr() - self.begin.addr()
    }

    /// The address of the next byte.
    #[inline]
    #[must_use]
    pub fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// The first address of the current range.
    #[inline]
    #[must_use]
    pub fn begin(&self) -> *mut u8 {
        self.begin
    }

    /// Moves the write position back to `used` bytes from the begin of the current range.
    ///
    /// # Panics
    ///
    /// If that lies ahead.
    #[inline]
    pub fn rewind_to(&mut self, used: usize) {
        assert!(used <= self.used(), "a stream is only rewound");
        // SAFETY: `used` lies between 0 and the current offset, so the result is in the range.
        self.ptr = unsafe { self.begin.add(used) };
    }

    /// True if a message was leaked or outgrew a limit: what was written since its root began is void.
    #[inline]
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned || self.root_open
    }

    /// Forgets open messages and the poison.
    pub fn clear_poison(&mut self) {
        self.poisoned = false;
        self.root_open = false;
        self.truncate_slots(0);
    }

    /// Appends bytes, over as many ranges as it takes.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) {
        if bytes.len() <= self.available() {
            // SAFETY: there is room for `bytes.len()` bytes.
            unsafe { self.write_unchecked(bytes) };
        } else {
            self.write_split(bytes);
        }
    }

    /// Appends a varint.
    #[inline]
    pub fn write_varint(&mut self, v: u64) {
        if self.available() >= MAX_VARINT_SIZE {
            // SAFETY: there is room for the longest varint.
            unsafe { self.write_varint_unchecked(v) };
        } else {
            let mut buffer = [0; MAX_VARINT_SIZE];
            let n = wire::encode_varint(v, &mut buffer);
            self.write(&buffer[..n]);
        }
    }

    /// Appends a tag and a varint.
    #[inline]
    pub(crate) fn write_varint_field(&mut self, tag: u32, v: u64) {
        if self.available() >= MAX_SIMPLE_FIELD_SIZE {
            // SAFETY: there is room for the longest tag and the longest varint.
            unsafe { self.write_varint_unchecked(u64::from(tag)) };
            // SAFETY: as above.
            unsafe { self.write_varint_unchecked(v) };
        } else {
            self.write_varint_field_slow(tag, v);
        }
    }

    #[cold]
    #[inline(never)]
    fn write_varint_field_slow(&mut self, tag: u32, v: u64) {
        self.write_varint(u64::from(tag));
        self.write_varint(v);
    }

    /// Appends a tag and a value of fixed size.
    #[inline]
    pub(crate) fn write_fixed_field<const N: usize>(&mut self, tag: u32, bytes: [u8; N]) {
        if self.available() >= MAX_TAG_SIZE + N {
            // SAFETY: there is room for the longest tag and the value.
            unsafe { self.write_varint_unchecked(u64::from(tag)) };
            // SAFETY: as above.
            unsafe { self.write_unchecked(&bytes) };
        } else {
            self.write_varint(u64::from(tag));
            self.write(&bytes);
        }
    }

    /// Appends a tag, a length and as many bytes.
    #[inline]
    pub(crate) fn write_bytes_field(&mut self, tag: u32, v: &[u8]) {
        if self.available() >= MAX_SIMPLE_FIELD_SIZE && self.available() - MAX_SIMPLE_FIELD_SIZE >= v.len() {
            // SAFETY: there is room for the longest tag, the longest varint and the value.
            unsafe { self.write_varint_unchecked(u64::from(tag)) };
            // SAFETY: as above.
            unsafe { self.write_varint_unchecked(v.len() as u64) };
            // SAFETY: as above.
            unsafe { self.write_unchecked(v) };
        } else {
            self.write_bytes_field_slow(tag, v);
        }
    }

    #[cold]
    #[inline(never)]
    fn write_bytes_field_slow(&mut self, tag: u32, v: &[u8]) {
        self.write_varint(u64::from(tag));
        self.write_varint(v.len() as u64);
        self.write(v);
    }

    /// Appends one byte without looking for room.
    ///
    /// # Safety
    ///
    /// At least one byte is [`available`](Self::available).
    #[inline]
    pub unsafe fn push_unchecked(&mut self, byte: u8) {
        // SAFETY: the caller saw room for one byte between `ptr` and `end`.
        unsafe { self.ptr.write(byte) };
        // SAFETY: as above; one past the byte is at most `end`.
        self.ptr = unsafe { self.ptr.add(1) };
    }

    /// Appends bytes without looking for room.
    ///
    /// # Safety
    ///
    /// At least `bytes.len()` bytes are [`available`](Self::available).
    #[inline]
    pub unsafe fn write_unchecked(&mut self, bytes: &[u8]) {
        // SAFETY: the caller saw room; `bytes` cannot overlap memory that nobody may hold references to.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr, bytes.len()) };
        // SAFETY: as above.
        self.ptr = unsafe { self.ptr.add(bytes.len()) };
    }

    /// Appends a varint without looking for room.
    ///
    /// # Safety
    ///
    /// At least [`wire::varint_size`]`(v)` bytes are [`available`](Self::available).
    #[inline]
    pub unsafe fn write_varint_unchecked(&mut self, mut v: u64) {
        // A local: the compiler cannot know that bytes written do not overlap `self`, and would store `self.ptr` for each.
        let mut ptr = self.ptr;
        while v >= 0x80 {
            // SAFETY: the caller saw room for all bytes of the varint.
            unsafe { ptr.write((v as u8) | 0x80) };
            // SAFETY: as above.
            ptr = unsafe { ptr.add(1) };
            v >>= 7;
        }
        // SAFETY: as above.
        unsafe { ptr.write(v as u8) };
        // SAFETY: as above; one past the last byte is at most `end`.
        self.ptr = unsafe { ptr.add(1) };
    }

    /// Takes `n` contiguous bytes and returns the address of the first.
    ///
    /// If fewer are left, the rest of the range stays unused and the next one is asked for.
    #[inline]
    pub fn reserve(&mut self, n: usize) -> NonNull<u8> {
        if self.available() < n {
            self.next_range(n);
        }
        // SAFETY: `ptr` lies in a range and is never null.
        let address = unsafe { NonNull::new_unchecked(self.ptr) };
        // SAFETY: at least `n` bytes are available, by the check above or the contract of `next_range`.
        self.ptr = unsafe { self.ptr.add(n) };
        address
    }

    #[cold]
    #[inline(never)]
    fn write_split(&mut self, mut bytes: &[u8]) {
        loop {
            let (now, later) = bytes.split_at(bytes.len().min(self.available()));
            // SAFETY: `now` is cut to what is available.
            unsafe { self.write_unchecked(now) };
            if later.is_empty() {
                return;
            }
            bytes = later;
            self.next_range(1);
        }
    }

    #[cold]
    #[inline(never)]
    fn next_range(&mut self, min_len: usize) {
        let used = self.used();
        let inline = self.depth.min(INLINE_DEPTH);
        let open = OpenSlots {
            inline: &mut self.inline[..inline],
            #[cfg(feature = "alloc")]
            deep: &mut self.deep,
            #[cfg(not(feature = "alloc"))]
            deep: &mut [],
        };
        // SAFETY: whoever made the stream promised that the delegate is valid and not in use elsewhere.
        let range = unsafe { self.delegate.as_mut() }.next_range(used, open, min_len);
        assert!(range.len >= min_len, "a delegate returned a range that is too small");
        // SAFETY: the contract of `RawDelegate`.
        unsafe { self.reset(range) };
    }

    /// Begins a nested message of depth `depth + 1`: writes its tag and reserves its length.
    #[inline]
    pub(crate) fn begin_nested(&mut self, depth: usize, field: u32) {
        if self.depth != depth {
            self.unwind_to(depth);
        }
        self.write_varint(u64::from(wire::tag(field, wire::WireType::LengthDelimited)));
        let slot = Slot::InPlace(self.reserve(LENGTH_FIELD_SIZE));
        if depth < INLINE_DEPTH {
            self.inline[depth] = slot;
        } else {
            self.push_deep(slot);
        }
        self.depth = depth + 1;
    }

    /// Ends the nested message of depth `depth` whose content began at position `start`.
    #[inline]
    pub(crate) fn end_nested(&mut self, depth: usize, start: usize) {
        if self.depth != depth {
            self.unwind_to(depth);
        }
        self.depth = depth - 1;
        let slot = if depth <= INLINE_DEPTH { self.inline[depth - 1] } else { self.pop_deep() };
        let size = self.position().wrapping_sub(start);
        if let Slot::InPlace(slot) = slot {
            let slot = slot.as_ptr();
            if size <= MAX_ONE_BYTE_LENGTH
                && slot.addr() + LENGTH_FIELD_SIZE + size == self.ptr.addr()
                && slot.addr() >= self.begin.addr()
            {
                // SAFETY: invariant 2 and the comparison above: slot and content lie in the current range.
                unsafe { self.compact(slot, size) };
                return;
            }
        }
        self.fill(slot, size);
    }

    /// Ends the root message.
    #[inline]
    pub(crate) fn end_root(&mut self) {
        self.root_open = false;
        if self.depth != 0 {
            self.unwind_to(0);
        }
    }

    /// Replaces the four bytes at `slot`, which stand right before the last `size` bytes, by a one-byte length.
    ///
    /// The write position moves back by three.
    ///
    /// # Safety
    ///
    /// `slot + 4 + size` is the write position, all of it lies in the current range, and `size` is at most 127.
    #[inline]
    pub unsafe fn compact(&mut self, slot: *mut u8, size: usize) {
        const SHIFT: usize = LENGTH_FIELD_SIZE - 1;
        // SAFETY: source and destination lie in the current range, by the caller's promise.
        unsafe { core::ptr::copy(slot.add(LENGTH_FIELD_SIZE), slot.add(1), size) };
        // SAFETY: as above.
        unsafe { slot.write(size as u8) };
        // SAFETY: the write position is at least `slot + 4`.
        self.ptr = unsafe { self.ptr.sub(SHIFT) };
    }

    #[inline(never)]
    fn fill(&mut self, slot: Slot, size: usize) {
        if size > wire::MAX_MESSAGE_LENGTH {
            self.poison();
        }
        let value = wire::redundant_varint4(size as u32);
        match slot {
            // SAFETY: invariant 2.
            Slot::InPlace(address) => unsafe {
                core::ptr::copy_nonoverlapping(value.as_ptr(), address.as_ptr(), value.len());
            },
            // SAFETY: see `next_range`.
            Slot::Patch(patch) => unsafe { self.delegate.as_mut() }.fill_patch(patch, value),
            Slot::Abandoned => {}
        }
    }

    /// A guard between `depth` and the current depth was leaked.
    #[cold]
    #[inline(never)]
    fn unwind_to(&mut self, depth: usize) {
        self.poison();
        self.truncate_slots(depth);
    }

    fn truncate_slots(&mut self, depth: usize) {
        self.depth = self.depth.min(depth);
        #[cfg(feature = "alloc")]
        self.deep.truncate(depth.saturating_sub(INLINE_DEPTH));
    }

    #[cold]
    fn poison(&mut self) {
        self.poisoned = true;
    }

    #[cold]
    #[inline(never)]
    fn push_deep(&mut self, slot: Slot) {
        #[cfg(feature = "alloc")]
        self.deep.push(slot);
        #[cfg(not(feature = "alloc"))]
        {
            let _ = slot;
            self.poison();
        }
    }

    #[cold]
    #[inline(never)]
    fn pop_deep(&mut self) -> Slot {
        #[cfg(feature = "alloc")]
        return self.deep.pop().unwrap_or(Slot::Abandoned);
        #[cfg(not(feature = "alloc"))]
        return Slot::Abandoned;
    }
}
