//! Files of `/proc` and `/sys`.

/// A byte that selects a file of `linux.sys_stats`, and its text.
pub fn probes_sys_stats(bytes: &[u8]) {
    esatto_probes::fuzzing::sys_stats(bytes);
}

/// A text that is read as `/proc/cpuinfo` and as `/proc/interrupts`.
pub fn probes_system_info(bytes: &[u8]) {
    esatto_probes::fuzzing::system_info(bytes);
}
