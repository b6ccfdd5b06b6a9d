//! [`Position`]: a write position in a range, as two pointers that should stay in registers.

use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use super::varint::put_varint;
use crate::wire::{LENGTH_FIELD_SIZE, MAX_ONE_BYTE_LENGTH, MAX_TAG_SIZE, MAX_VARINT_SIZE, redundant_varint4};

/// Value of both pointers while another message has the position. No range is near this address: no
/// system maps its last page, whose addresses are error codes, and a
/// [`RawDelegate`](super::RawDelegate) promises it.
const TAKEN: *mut u8 = ptr::without_provenance_mut(usize::MAX);

/// Bytes that a length field grows by when it is widened.
pub(super) const WIDENING: usize = LENGTH_FIELD_SIZE - 1;

/// Number of bytes that are moved at once when a length is compacted.
const BLOCK: usize = 16;

/// Next byte to write, and the end of the range.
///
/// Methods that are not `unsafe` check for room themselves, and return false if there was none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) ptr: *mut u8,
    pub(super) end: *mut u8,
}

impl Position {
    /// Returns the value of a position that was taken. It has no room.
    pub(super) const TAKEN: Self = Self { ptr: TAKEN, end: TAKEN };

    #[inline]
    pub(super) fn is_taken(&self) -> bool {
        self.ptr == TAKEN
    }

    /// Takes the position out, and leaves the value for a taken position.
    #[inline]
    pub(super) fn take(&mut self) -> Self {
        core::mem::replace(self, Self::TAKEN)
    }

    /// Returns the number of bytes left in the range.
    #[inline]
    pub(super) fn available(&self) -> usize {
        self.end.addr() - self.ptr.addr()
    }

    /// Appends a tag and a varint, if there is room for the longest.
    #[inline(always)]
    pub(super) fn put_varint_field(&mut self, tag: u32, v: u64) -> bool {
        let room = self.available() >= MAX_TAG_SIZE + MAX_VARINT_SIZE;
        if room {
            // SAFETY: there is room for the longest tag, and the longest varint after it.
            let ptr = unsafe { put_tag(self.ptr, tag) };
            // SAFETY: as above.
            self.ptr = unsafe { put_varint(ptr, v) };
        }
        room
    }

    /// Appends a tag and a value of fixed size, if there is room for the longest tag.
    #[inline(always)]
    pub(super) fn put_fixed_field<const N: usize>(&mut self, tag: u32, bytes: [u8; N]) -> bool {
        let room = self.available() >= MAX_TAG_SIZE + MAX_VARINT_SIZE;
        const { assert!(N <= MAX_VARINT_SIZE) };
        if room {
            // SAFETY: there is room for the longest tag, and `N` bytes after it.
            let ptr = unsafe { put_tag(self.ptr, tag) };
            // SAFETY: as above.
            unsafe { ptr.cast::<[u8; N]>().write(bytes) };
            // SAFETY: as above.
            self.ptr = unsafe { ptr.add(N) };
        }
        room
    }

    /// Appends a tag, a length and as many bytes, if there is room for the longest.
    #[inline(always)]
    pub(super) fn put_bytes_field(&mut self, tag: u32, v: &[u8]) -> bool {
        let available = self.available();
        let room =
            available >= MAX_TAG_SIZE + MAX_VARINT_SIZE && available - (MAX_TAG_SIZE + MAX_VARINT_SIZE) >= v.len();
        if room {
            // SAFETY: there is room for the longest tag, the longest varint after it, and the value
            // after that.
            let ptr = unsafe { put_tag(self.ptr, tag) };
            // SAFETY: as above.
            let ptr = unsafe { put_varint(ptr, v.len() as u64) };
            // SAFETY: as above; `v` cannot overlap memory to which no references may exist.
            unsafe { ptr::copy_nonoverlapping(v.as_ptr(), ptr, v.len()) };
            // SAFETY: as above.
            self.ptr = unsafe { ptr.add(v.len()) };
        }
        room
    }

    /// Appends bytes, if there is room.
    #[inline(always)]
    pub(super) fn put(&mut self, bytes: &[u8]) -> bool {
        let room = self.available() >= bytes.len();
        if room {
            // SAFETY: there is room; `bytes` cannot overlap memory to which no references may
            // exist.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr, bytes.len()) };
            // SAFETY: as above.
            self.ptr = unsafe { self.ptr.add(bytes.len()) };
        }
        room
    }

    /// Appends a varint, if there is room for the longest.
    #[inline(always)]
    pub(super) fn put_varint(&mut self, v: u64) -> bool {
        let room = self.available() >= MAX_VARINT_SIZE;
        if room {
            // SAFETY: there is room for the longest varint.
            self.ptr = unsafe { put_varint(self.ptr, v) };
        }
        room
    }

    /// Appends a tag, if there is room for the longest and a length field. Returns the address
    /// after it.
    #[inline(always)]
    pub(super) fn put_tag(&mut self, tag: u32) -> Option<NonNull<u8>> {
        if self.available() < MAX_TAG_SIZE + MAX_VARINT_SIZE {
            return None;
        }
        // SAFETY: there is room for the longest tag.
        self.ptr = unsafe { put_tag(self.ptr, tag) };
        // SAFETY: it lies in a range, whose addresses are not null.
        Some(unsafe { NonNull::new_unchecked(self.ptr) })
    }

    /// Reserves a length field of one byte, and sets the end back so that there is room to widen
    /// it.
    ///
    /// # Safety
    ///
    /// There is room for a length field of four bytes.
    #[inline(always)]
    pub(super) unsafe fn begin_narrow(&mut self) {
        // SAFETY: the caller's promise.
        self.ptr = unsafe { self.ptr.add(1) };
        // SAFETY: as above.
        self.end = unsafe { self.end.sub(WIDENING) };
    }

    /// Reserves a length field of four bytes.
    ///
    /// # Safety
    ///
    /// There is room for it.
    #[inline(always)]
    pub(super) unsafe fn begin_wide(&mut self) {
        // SAFETY: the caller's promise.
        self.ptr = unsafe { self.ptr.add(LENGTH_FIELD_SIZE) };
    }

    /// Fills in the length of the content between a slot of one byte and here. Returns `false` if
    /// it is too long for one byte, or the position is taken.
    ///
    /// # Safety
    ///
    /// `slot` lies in the current range, before this position.
    #[expect(clippy::cast_possible_truncation, reason = "checked by the comparison")]
    #[inline(always)]
    pub(super) unsafe fn fill_narrow(&self, slot: NonNull<u8>) -> bool {
        // A taken position is further away than the length of any message.
        let size = self.ptr.addr() - slot.addr().get() - 1;
        if size <= MAX_ONE_BYTE_LENGTH {
            // SAFETY: the caller's promise.
            unsafe { slot.write(size as u8) };
        }
        size <= MAX_ONE_BYTE_LENGTH
    }

    /// Fills in the length of the content between a slot of four bytes and here, and returns it.
    ///
    /// # Safety
    ///
    /// `slot` is the address of a length field in the current range, before this position.
    #[expect(clippy::cast_possible_truncation, reason = "a message that is too long is void")]
    #[inline(always)]
    pub(super) unsafe fn fill_wide(&mut self, slot: NonNull<u8>) -> usize {
        let slot = slot.as_ptr();
        let size = self.ptr.addr() - slot.addr() - LENGTH_FIELD_SIZE;
        if size <= MAX_ONE_BYTE_LENGTH {
            // SAFETY: the caller's promise, and `size` is what lies between.
            unsafe { self.compact(slot, size) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { slot.cast::<[u8; LENGTH_FIELD_SIZE]>().write(redundant_varint4(size as u32)) };
        }
        size
    }

    /// Replaces the four bytes at `slot`, directly before the last `size` bytes, by a one-byte
    /// length.
    ///
    /// The position moves back by three.
    ///
    /// # Safety
    ///
    /// `slot + 4 + size` is this position, all of it lies in the current range, and `size` is at
    /// most 127.
    #[expect(clippy::cast_possible_truncation, reason = "the caller promises at most 127")]
    #[inline(always)]
    pub(super) unsafe fn compact(&mut self, slot: *mut u8, size: usize) {
        // SAFETY: the slot has four bytes.
        let (to, from) = unsafe { (slot.add(1), slot.add(LENGTH_FIELD_SIZE)) };
        if self.available() >= BLOCK {
            // Moves forwards in blocks: the bytes that a block overwrites lie before those that are
            // read next. The last block may extend beyond the content by less than a block, where
            // nothing is written yet.
            let mut at = 0;
            while at < size {
                // SAFETY: `at` is less than `size`, and a whole block fits after the content.
                let (from, to) = unsafe { (from.add(at), to.add(at)) };
                // SAFETY: as above; the bytes need not be initialised.
                let block = unsafe { from.cast::<[MaybeUninit<u8>; BLOCK]>().read() };
                // SAFETY: as above.
                unsafe { to.cast::<[MaybeUninit<u8>; BLOCK]>().write(block) };
                at += BLOCK;
            }
        } else {
            // SAFETY: source and destination lie in the current range, by the caller's promise.
            unsafe { ptr::copy(from, to, size) };
        }
        // SAFETY: as above.
        unsafe { slot.write(size as u8) };
        // SAFETY: the position is at least `slot + 4`.
        self.ptr = unsafe { self.ptr.sub(WIDENING) };
    }
}

/// Writes a tag and returns its end. Tags of one and two bytes are one store. If the tag is a
/// constant, so is all of it.
///
/// # Safety
///
/// Five bytes from `ptr` on are valid for writes.
#[inline(always)]
unsafe fn put_tag(ptr: *mut u8, tag: u32) -> *mut u8 {
    if tag < 0x80 {
        // SAFETY: the caller promises five bytes.
        unsafe { ptr.write((tag & 0x7f) as u8) };
        // SAFETY: as above.
        unsafe { ptr.add(1) }
    } else if tag < 0x4000 {
        let bytes = [(tag & 0x7f) as u8 | 0x80, ((tag >> 7) & 0x7f) as u8];
        // SAFETY: as above.
        unsafe { ptr.cast::<[u8; 2]>().write(bytes) };
        // SAFETY: as above.
        unsafe { ptr.add(2) }
    } else {
        // SAFETY: as above.
        unsafe { put_long_tag(ptr, tag) }
    }
}

/// # Safety
///
/// As [`put_tag`].
#[inline(always)]
unsafe fn put_long_tag(mut ptr: *mut u8, mut tag: u32) -> *mut u8 {
    while tag >= 0x80 {
        // SAFETY: a number of 32 bits has at most five groups.
        unsafe { ptr.write((tag & 0x7f) as u8 | 0x80) };
        // SAFETY: as above.
        ptr = unsafe { ptr.add(1) };
        tag >>= 7;
    }
    // SAFETY: as above.
    unsafe { ptr.write((tag & 0x7f) as u8) };
    // SAFETY: as above.
    unsafe { ptr.add(1) }
}
