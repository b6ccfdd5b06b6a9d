//! The heap buffer (`docs/spec/c-abi.md` §7).

use core::ptr;

use crate::abi::StreamWriter;
use crate::guard::guard;
use crate::stream::{Target, Window};

/// Bytes that are allocated at a time, at least.
const SLICE_BYTES: usize = 4096;

/// Bytes in pieces that stay where they are, so that lengths in them can be filled in later.
#[derive(Default)]
pub(crate) struct Heap {
    slices: Vec<Slice>,
    /// Bytes in all slices but the last.
    before: usize,
}

/// From `Box::into_raw`: the program writes to it, through pointers that we have given away.
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
    unsafe fn copy_into(&self, mut dst: *mut u8, mut size: usize) {
        for slice in &self.slices {
            let len = slice.used.min(size);
            // SAFETY: the slice has `used` bytes, and `dst` room for what is left of `size`.
            unsafe { ptr::copy(slice.bytes.cast::<u8>(), dst, len) };
            dst = dst.wrapping_add(len);
            size -= len;
        }
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw`; the program does not use it any more.
        drop(unsafe { Box::from_raw(self.bytes) });
    }
}

/// `PerfettoHeapBuffer*` is what `impl` of the stream writer is.
#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoHeapBufferCreate(writer: *mut StreamWriter) -> *mut Target {
    guard(|| {
        if writer.is_null() {
            return ptr::null_mut();
        }
        let target = Box::into_raw(Box::new(Target::Heap(Heap::default())));
        // SAFETY: the contract: a struct of the program, which need not be initialised.
        unsafe { writer.write(StreamWriter::new(target, Window::NONE)) };
        target
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoHeapBufferCopyInto(
    buffer: *mut Target,
    writer: *mut StreamWriter,
    dst: *mut u8,
    size: usize,
) {
    guard(|| {
        // SAFETY: the contract: the struct that create has filled.
        let Some(writer) = (unsafe { writer.as_mut() }) else { return };
        if dst.is_null() || !ptr::eq(writer.target, buffer) {
            return;
        }
        // SAFETY: as above; its target is null or not destroyed.
        if let Some(Target::Heap(heap)) = unsafe { writer.synced() } {
            // SAFETY: the contract: room for `size` bytes.
            unsafe { heap.copy_into(dst, size) };
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoHeapBufferDestroy(buffer: *mut Target, writer: *mut StreamWriter) {
    guard(|| {
        // SAFETY: the contract: the struct that create has filled.
        let Some(writer) = (unsafe { writer.as_mut() }) else { return };
        // Who destroys twice finds nothing the second time.
        if !buffer.is_null() && ptr::eq(writer.target, buffer) {
            *writer = StreamWriter::new(ptr::null_mut(), Window::NONE);
            // SAFETY: from `Box::into_raw` in create.
            drop(unsafe { Box::from_raw(buffer) });
        }
    })
}
