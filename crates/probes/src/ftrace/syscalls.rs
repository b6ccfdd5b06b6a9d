//! Numbers of system calls, and [`SyscallSet`].

/// Names and numbers, sorted by name, one per line. From the kernel's headers.
#[cfg(target_arch = "x86_64")]
static NAMES: &str = include_str!("syscalls_x86_64.txt");
#[cfg(target_arch = "aarch64")]
static NAMES: &str = include_str!("syscalls_aarch64.txt");
/// The names of other architectures are not known.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
static NAMES: &str = "";

/// Largest number of a system call.
const MAX_NUMBER: u16 = 1023;

/// Returns the number of a system call of this machine, such as `sys_read`.
pub(crate) fn syscall_number(name: &str) -> Option<u16> {
    let name = name.strip_prefix("sys_")?;
    let number = NAMES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    number?.parse().ok()
}

/// The system calls that a data source wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum SyscallSet {
    #[default]
    All,
    /// Those whose bit is set.
    Some(Vec<u64>),
}

impl SyscallSet {
    /// Makes a set of the numbers.
    pub(crate) fn of(numbers: impl IntoIterator<Item = u16>) -> Self {
        let mut bits = vec![0; usize::from(MAX_NUMBER) / 64 + 1];
        for number in numbers {
            if let Some(word) = bits.get_mut(usize::from(number) / 64) {
                *word |= 1 << (number % 64);
            }
        }
        Self::Some(bits)
    }

    #[inline]
    pub(crate) fn contains(&self, number: i64) -> bool {
        match self {
            Self::All => true,
            Self::Some(bits) => {
                let word = usize::try_from(number).ok().and_then(|number| bits.get(number / 64));
                word.is_some_and(|word| word & (1 << (number % 64)) != 0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn names_have_the_number_of_this_machine() {
        let read = if cfg!(target_arch = "x86_64") { 0 } else { 63 };
        assert_eq!(syscall_number("sys_read"), Some(read));
        assert_eq!(syscall_number("sys_openat2"), Some(437));
        for name in ["read", "sys_", "sys_rea", "sys_read 0", "sys_none", ""] {
            assert_eq!(syscall_number(name), None, "{name}");
        }
    }

    #[test]
    fn a_set_has_only_its_numbers() {
        let set = SyscallSet::of([0, 63, 64, 1023, 5000]);
        for (number, expected) in
            [(0, true), (1, false), (63, true), (64, true), (1023, true), (5000, false), (-1, false)]
        {
            assert_eq!(set.contains(number), expected, "{number}");
            assert!(SyscallSet::All.contains(number));
        }
    }
}
