//! A filter of system calls, as programs install it to protect themselves.

use std::ffi::{c_int, c_long, c_ulong};

use linux_raw_sys::general::{__NR_membarrier, __NR_seccomp};

/// Makes `membarrier` fail on all threads of this process, for ever.
pub(crate) fn lose_membarrier() {
    /// `struct sock_filter`.
    #[repr(C)]
    struct Instruction {
        code: u16,
        if_true: u8,
        if_false: u8,
        operand: u32,
    }
    /// `struct sock_fprog`.
    #[repr(C)]
    struct Program {
        len: u16,
        instructions: *const Instruction,
    }
    unsafe extern "C" {
        fn prctl(option: c_int, ...) -> c_int;
        fn syscall(number: c_long, ...) -> c_long;
    }
    const PR_SET_NO_NEW_PRIVS: c_int = 38;
    const SECCOMP_SET_MODE_FILTER: c_ulong = 1;
    const SECCOMP_FILTER_FLAG_TSYNC: c_ulong = 1;
    const EPERM: u32 = 1;
    let instructions = [
        // The number of the system call.
        Instruction { code: 0x20, if_true: 0, if_false: 0, operand: 0 },
        Instruction { code: 0x15, if_true: 0, if_false: 1, operand: __NR_membarrier },
        // SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW.
        Instruction { code: 0x06, if_true: 0, if_false: 0, operand: 0x0005_0000 | EPERM },
        Instruction { code: 0x06, if_true: 0, if_false: 0, operand: 0x7fff_0000 },
    ];
    let program = Program { len: instructions.len() as u16, instructions: instructions.as_ptr() };
    let (one, none): (c_ulong, c_ulong) = (1, 0);
    // SAFETY: an option that takes numbers only.
    assert_eq!(unsafe { prctl(PR_SET_NO_NEW_PRIVS, one, none, none, none) }, 0);
    // SAFETY: the program and its instructions are there during the call, which copies them.
    let result = unsafe {
        syscall(__NR_seccomp as c_long, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &raw const program)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: takes numbers only.
    let result = unsafe { syscall(__NR_membarrier as c_long, none, none, none) };
    assert_eq!((result, std::io::Error::last_os_error().raw_os_error()), (-1, Some(EPERM as i32)));
}
