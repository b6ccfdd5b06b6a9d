//! The memory that a program writes to at present.

use core::ptr;

#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) begin: *mut u8,
    /// Address of the next byte, as far as the library knows.
    pub(crate) next: *mut u8,
    pub(crate) end: *mut u8,
    /// Bytes written before `begin`.
    pub(crate) before: usize,
}

impl Window {
    pub(crate) const NONE: Self =
        Self { begin: ptr::null_mut(), next: ptr::null_mut(), end: ptr::null_mut(), before: 0 };

    pub(crate) fn room(&self) -> usize {
        self.end.addr() - self.next.addr()
    }
}
