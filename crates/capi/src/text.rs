//! Strings and arrays of C, and the end of programs that break the contract.

use core::ffi::{CStr, c_char};
use core::fmt;
use std::io::Write;

/// The bytes of a string; `None` for null.
///
/// # Safety
///
/// Null, or ends with NUL and is not written to while the result lives.
pub(crate) unsafe fn bytes<'a>(string: *const c_char) -> Option<&'a [u8]> {
    if string.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { CStr::from_ptr(string) }.to_bytes())
}

/// Bytes as a text of ours, if they are one.
#[inline]
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    if bytes.is_ascii() {
        // SAFETY: all ASCII is UTF-8. The check takes fewer instructions, and most texts pass it.
        return Some(unsafe { core::str::from_utf8_unchecked(bytes) });
    }
    core::str::from_utf8(bytes).ok()
}

/// As [`bytes`], as a text of ours; null is empty.
///
/// # Safety
///
/// As [`bytes`].
pub(crate) unsafe fn owned(string: *const c_char) -> String {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(string) }.unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// The bytes of a block of memory. Empty if it is null, whatever its size.
///
/// # Safety
///
/// Null, or valid for reads of `len` bytes that are not written to while the result lives.
pub(crate) unsafe fn block<'a>(begin: *const u8, len: usize) -> &'a [u8] {
    if begin.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(begin, len) }
}

/// The elements of an array of pointers that ends with null; of none if it is null itself. None of them is null.
///
/// # Safety
///
/// Null, or such an array, which stays as it is while the result is used.
pub(crate) unsafe fn pointers<T>(array: *const *const T) -> impl Iterator<Item = *const T> {
    let mut at = array;
    core::iter::from_fn(move || {
        if at.is_null() {
            return None;
        }
        // SAFETY: the caller's promise: we are not behind the null.
        let element = unsafe { *at };
        // SAFETY: as above; after the null the function is not called again, see `fuse`.
        at = unsafe { at.add(1) };
        (!element.is_null()).then_some(element)
    })
    .fuse()
}

/// Says something on stderr, in one write, without a lock that a child of a fork might find taken, and without a panic if it cannot be written.
pub(crate) fn say(message: impl fmt::Display) {
    // SAFETY: not closed, as it is never dropped. If the program has closed it, somebody else's file may get the line, as with any other way.
    #[cfg(unix)]
    let mut stderr = core::mem::ManuallyDrop::new(unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(2) });
    #[cfg(not(unix))]
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(format!("perfetto_c: {message}\n").as_bytes());
}

/// Ends the process: the program did what the contract says it must not.
pub(crate) fn die(message: impl fmt::Display) -> ! {
    say(message);
    std::process::abort();
}
