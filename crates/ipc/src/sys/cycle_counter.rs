//! Cycle counter of the processor.

/// Returns the time-stamp counter of x86-64, in cycles since an arbitrary time: clock 9 of a trace
/// (`docs/spec/service.md` §16). Returns `None` on other machines.
#[inline]
pub fn cycles() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction, and it reads a register. If a process
        // has forbidden it (`PR_SET_TSC`), a signal ends the process, without undefined behaviour.
        Some(unsafe { core::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}
