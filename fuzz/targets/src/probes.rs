//! Files of `/proc`, `/sys` and the journal.

/// A journal file, after position and length of zeros that are left out.
pub fn probes_journal(bytes: &[u8]) {
    esatto_probes::fuzzing::journal(bytes);
}

/// A text that is read as `/proc/self/mountinfo`.
pub fn probes_mountinfo(bytes: &[u8]) {
    esatto_probes::fuzzing::mountinfo(bytes);
}

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
