//! Telling the processor what will be needed.

/// Asks for the first bytes (a cache line) of a slice, and does not wait for them. A hint; nothing where the processor has none.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    prefetch_at(bytes.as_ptr());
}

/// Asks for the cache line at an address, which may be anything, to write to it.
#[inline]
pub(crate) fn prefetch_for_write(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        #[allow(unused_unsafe, reason = "safe in newer compilers")]
        // SAFETY: a hint, at whatever address; a processor that does not know this one does nothing.
        unsafe {
            _mm_prefetch::<_MM_HINT_ET0>(address.cast());
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Asks for the cache line at an address, which may be anything.
#[inline]
fn prefetch_at(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[allow(unused_unsafe, reason = "safe in newer compilers")]
        // SAFETY: a hint, at whatever address; every x86-64 has it.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address.cast());
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
