//! Encoded bytes on the heap.

use core::ptr;

use super::window::Window;

/// Smallest allocation.
const SLICE_BYTES: usize = 4096;

/// Bytes in slices that never move, so that lengths in them can be filled in later.
#[derive(Default)]
pub(crate) struct Heap {
    slices: Vec<Slice>,
    /// Bytes in all slices but the last.
    before: usize,
}

/// Memory from `Box::into_raw`, because the program writes to it through pointers that it got.
struct Slice {
    bytes: *mut [u8],
    used: usize,
}

impl Heap {
    pub(crate) fn window(&self) -> Window {
        let Some(slice) = self.slices.last() else { return Window::NONE };
        let begin = slice.bytes.cast::<u8>();
        Window {
            begin,
            next: begin.wrapping_add(slice.used),
            end: begin.wrapping_add(slice.bytes.len()),
            before: self.before,
        }
    }

    pub(crate) fn advance(&mut self, n: usize) {
        if let Some(slice) = self.slices.last_mut() {
            slice.used += n;
        }
    }

    pub(crate) fn make_room(&mut self, n: usize) {
        if self.window().room() < n {
            self.before += self.slices.last().map_or(0, |slice| slice.used);
            let bytes = Box::into_raw(vec![0; n.max(SLICE_BYTES)].into_boxed_slice());
            self.slices.push(Slice { bytes, used: 0 });
        }
    }

    /// Copies the first `size` bytes, or as many as there are.
    ///
    /// # Safety
    ///
    /// `dst` is valid for writes of that many.
    pub(super) unsafe fn copy_into(&self, mut dst: *mut u8, mut size: usize) {
        for slice in &self.slices {
            let len = slice.used.min(size);
            // SAFETY: the slice has `used` bytes, and `dst` has room for the rest of `size`.
            unsafe { ptr::copy(slice.bytes.cast::<u8>(), dst, len) };
            dst = dst.wrapping_add(len);
            size -= len;
        }
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw`. The program has destroyed the buffer and does not use its
        // memory any more.
        drop(unsafe { Box::from_raw(self.bytes) });
    }
}
