//! The processor's cycle counter.

/// The time-stamp counter of x86-64, in cycles since some time before now: the clock with number 9 of a trace
/// (`docs/spec/service.md` §16). `None` on machines of other kinds.
#[inline]
pub fn cycles() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction, and it reads a register. A process that forbade it to
        // itself (`PR_SET_TSC`) is ended by a signal, in good order, not led into undefined behaviour.
        Some(unsafe { core::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}
