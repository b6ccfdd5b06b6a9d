//! Copying bytes out of memory that another process may write at the same time.

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use crate::sync::{AtomicU8, AtomicUsize, Ordering};

/// Copies bytes that another process may write meanwhile, with one relaxed load of each byte.
///
/// # Safety
/// `from` is the first of `len` readable bytes to which only atomic references exist. `to` is the
/// first of as many writable bytes that the caller owns. They do not overlap.
///
/// If code of this process may write the bytes at `from`, it has handed them over (acquire of the
/// state, or of the count, that covers them). A store of another process is no data race in this
/// one, and an atomic load beside it is defined.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) unsafe fn copy_racing(from: *const u8, to: *mut u8, len: usize) {
    const STEP: usize = 16;
    let rest = len % STEP;
    let steps = len - rest;
    if steps != 0 {
        // SAFETY: all steps lie within the caller's bytes. Every byte is loaded once, by an
        // instruction that the compiler does not analyse: for the machine this is a relaxed atomic
        // load. A copy word by word, as below, takes twice as long for a chunk.
        unsafe {
            core::arch::asm!(
                "2:",
                "movups {step}, [{from} + {at}]",
                "movups [{to} + {at}], {step}",
                "add {at}, 16",
                "jnz 2b",
                from = in(reg) from.add(steps),
                to = in(reg) to.add(steps),
                at = inout(reg) (steps as isize).wrapping_neg() => _,
                step = out(xmm_reg) _,
                options(nostack),
            );
        }
    }
    if rest != 0 {
        // SAFETY: as above, for the last bytes. The direction flag is clear, as the ABI requires.
        unsafe {
            core::arch::asm!(
                "rep movsb",
                inout("rsi") from.add(steps) => _,
                inout("rdi") to.add(steps) => _,
                inout("rcx") rest => _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// See above; this version is for other machines.
///
/// # Safety
/// As above.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) unsafe fn copy_racing(from: *const u8, to: *mut u8, len: usize) {
    const WORD: usize = size_of::<usize>();
    let byte = |i: usize| {
        // SAFETY: `i` is below `len`, and so many bytes are readable.
        let address = unsafe { from.add(i) };
        // SAFETY: valid, and accessed atomically only: the caller's promise.
        let byte = unsafe { AtomicU8::from_ptr(address.cast_mut()) }.load(Ordering::Relaxed);
        // SAFETY: `i` is below `len`, and so many bytes are the caller's.
        unsafe { to.add(i).write(byte) };
    };
    let head = from.align_offset(WORD).min(len);
    (0..head).for_each(byte);
    let words = (len - head) / WORD;
    for i in 0..words {
        // SAFETY: below `len`.
        let address = unsafe { from.add(head + i * WORD) }.cast_mut().cast();
        // SAFETY: aligned, as `head` bytes lie in front; otherwise as above.
        let word = unsafe { AtomicUsize::from_ptr(address) }.load(Ordering::Relaxed);
        // SAFETY: below `len`.
        let to = unsafe { to.add(head + i * WORD) };
        // SAFETY: so many bytes are the caller's, and alignment is not asked for.
        unsafe { to.cast::<usize>().write_unaligned(word) };
    }
    (head + words * WORD..len).for_each(byte);
}
