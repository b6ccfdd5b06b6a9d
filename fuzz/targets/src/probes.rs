//! Files of `/proc` and `/sys`.

/// A text that is read as each of the files of a process.
pub fn probes_process_stats(bytes: &[u8]) {
    esatto_probes::fuzzing::process_stats(bytes);
}

/// A pattern, a NUL, and the mappings of a process.
pub fn probes_process_smaps(bytes: &[u8]) {
    esatto_probes::fuzzing::process_smaps(bytes);
}

/// A byte that selects a file of `linux.sys_stats`, and its text.
pub fn probes_sys_stats(bytes: &[u8]) {
    esatto_probes::fuzzing::sys_stats(bytes);
}

/// A text that is read as `/proc/cpuinfo` and as `/proc/interrupts`.
pub fn probes_system_info(bytes: &[u8]) {
    esatto_probes::fuzzing::system_info(bytes);
}
