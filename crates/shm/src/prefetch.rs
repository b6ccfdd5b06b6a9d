//! Prefetch hints for the processor.

/// Loads the first cache line of a slice without waiting for it. This is a hint. It does nothing on
/// processors that have no such instruction.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    prefetch_at(bytes.as_ptr());
}

/// Loads the cache line at an address, for a write to it. The address may be invalid.
#[inline]
pub(crate) fn prefetch_for_write(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        #[allow(unused_unsafe, reason = "safe in newer compilers")]
        // SAFETY: a hint, allowed at any address; a processor that does not know the instruction
        // does nothing.
        unsafe {
            _mm_prefetch::<_MM_HINT_ET0>(address.cast());
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Loads the cache line at an address. The address may be invalid.
#[inline]
fn prefetch_at(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[allow(unused_unsafe, reason = "safe in newer compilers")]
        // SAFETY: a hint, allowed at any address; every x86-64 has it.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(address.cast());
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
