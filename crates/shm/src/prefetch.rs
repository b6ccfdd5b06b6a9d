//! Telling the processor what will be needed.

/// Asks for the first bytes (a cache line) of a slice, and does not wait for them. A hint; nothing where the processor has none.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[allow(unused_unsafe, reason = "safe in newer compilers")]
        // SAFETY: a hint, at whatever address; every x86-64 has it.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().cast());
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = bytes;
}
