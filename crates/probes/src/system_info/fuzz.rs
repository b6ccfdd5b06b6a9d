//! [`fuzz`]: any bytes in place of the kernel's files.

use super::{parse_cpuinfo, parse_interrupts};

/// Parses a text as `/proc/cpuinfo` and as `/proc/interrupts`.
pub fn fuzz(text: &[u8]) {
    let processors = parse_cpuinfo(text);
    assert!(processors.len() <= text.len() / "processor:0".len());
    let mut names = 0;
    parse_interrupts(text, |_, name| names += name.len());
    assert!(names <= text.len());
}
