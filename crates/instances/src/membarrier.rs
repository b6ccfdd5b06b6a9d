//! The system call `membarrier`: a memory barrier on all threads of this process.

use core::ffi::{c_int, c_long};

use linux_raw_sys::general::{__NR_membarrier, membarrier_cmd};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// Registers this process for [`make_barrier`]. Returns false if the system has no such barrier.
pub(crate) fn register() -> bool {
    membarrier(membarrier_cmd::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
}

/// Makes a full barrier on each thread of this process that runs. Fails if the process has not
/// [registered](register).
pub(crate) fn make_barrier() -> bool {
    membarrier(membarrier_cmd::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}

fn membarrier(command: membarrier_cmd) -> bool {
    // SAFETY: takes three `int`s, and touches no memory.
    unsafe { syscall(__NR_membarrier as c_long, command as c_int, 0 as c_int, 0 as c_int) == 0 }
}
