//! The processor's time counter, read without a system call and without the vDSO's overhead.

/// Returns the counter, or 0 on processors without one.
#[inline(always)]
pub(crate) fn read() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction, and it reads a register.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads a register that the systems we know let programs read: their own vDSO does.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}

/// Returns whether the counter always runs at the same speed and shows the same value on all
/// processors. The kernel then uses it for its own clock.
pub(crate) fn is_reliable() -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        /// The kernel's name of the counter.
        const NAME: &str = if cfg!(target_arch = "x86_64") { "tsc" } else { "arch_sys_counter" };
        const FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) && {
            let _uncancelled = esatto_instances::Uncancelled::begin();
            std::fs::read_to_string(FILE).is_ok_and(|name| name.trim_end() == NAME)
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    false
}
