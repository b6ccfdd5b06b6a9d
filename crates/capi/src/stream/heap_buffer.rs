//! The functions of the heap buffer (`docs/spec/c-abi.md` §7).

use core::ptr;

use super::heap::Heap;
use super::window::Window;
use super::writer::Target;
use crate::abi::StreamWriter;
use crate::ffi::{Mut, Out, Owned};
use crate::panic_guard::guard;

/// A `PerfettoHeapBuffer` is the [`Target`] that `impl` of its stream writer points to.
#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoHeapBufferCreate(writer: Out<'_, StreamWriter>) -> Owned<Target> {
    guard(|| {
        if writer.is_null() {
            return Owned::NULL;
        }
        let target = Owned::new(Target::Heap(Heap::default()));
        writer.write(StreamWriter::new(target.as_ptr(), Window::NONE));
        target
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoHeapBufferCopyInto(
    buffer: *const Target,
    writer: Mut<'_, StreamWriter>,
    dst: *mut u8,
    size: usize,
) {
    guard(|| {
        let Some(writer) = writer.get() else { return };
        if dst.is_null() || !ptr::eq(writer.target.cast::<Target>(), buffer) {
            return;
        }
        if let Some(Target::Heap(heap)) = writer.sync() {
            // SAFETY: the contract: there is room for `size` bytes.
            unsafe { heap.copy_into(dst, size) };
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoHeapBufferDestroy(buffer: Owned<Target>, writer: Mut<'_, StreamWriter>) {
    guard(|| {
        let Some(writer) = writer.get() else { return };
        // A second destroy does nothing, because the first one has cleared the target.
        if !buffer.as_ptr().is_null() && ptr::eq(writer.target.cast::<Target>(), buffer.as_ptr()) {
            *writer = StreamWriter::new(ptr::null_mut(), Window::NONE);
            drop(buffer.take());
        }
    })
}
