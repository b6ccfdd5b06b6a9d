//! Letters of the state that a thread has when it stops to run.

/// A version of Linux: major and minor number.
pub(crate) type KernelVersion = (u32, u32);

/// Version that is assumed if the trace has none: tracers that did not write it ran on such ones.
const DEFAULT_VERSION: KernelVersion = (4, 4);
/// First version that reports the flags of [`SINCE_4_14`].
const REORDERED: KernelVersion = (4, 14);
/// First version with a flag for new tasks, which moved the flag of preempted tasks.
const WITH_NEW_TASKS: KernelVersion = (4, 8);
/// Letters that the trace processor keeps.
const KEPT_LETTERS: usize = 3;

/// Flags that all versions have.
const COMMON: [(u16, char); 6] = [(1, 'S'), (2, 'D'), (4, 'T'), (8, 't'), (0x10, 'X'), (0x20, 'Z')];
/// Further flags, in the order in which they are printed.
const SINCE_4_14: [(u16, char); 2] = [(0x40, 'P'), (0x80, 'I')];
const BEFORE_4_14: [(u16, char); 5] = [(0x200, 'P'), (0x40, 'x'), (0x80, 'K'), (0x100, 'W'), (0x400, 'N')];
/// Flags of a sleep that does not count as load.
const IDLE_BEFORE_4_14: u16 = 0x400 | 2;

/// Reads the release of a Linux kernel, such as `6.1.0-18-amd64`.
pub(crate) fn kernel_version(sysname: &str, release: &str) -> Option<KernelVersion> {
    let mut parts = release.split('.');
    let (major, minor) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    (sysname == "Linux").then_some((major, minor))
}

/// Returns the letters of a state; `None` if no such state is known.
pub(crate) fn letters(raw: u16, version: Option<KernelVersion>) -> Option<String> {
    let version = version.unwrap_or(DEFAULT_VERSION);
    let is_new = version >= REORDERED;
    let preempted = if is_new {
        0x100
    } else if version >= WITH_NEW_TASKS {
        0x1000
    } else {
        0x800
    };
    if is_new && raw & 0xfe00 != 0 {
        return None;
    }
    let further: &[(u16, char)] = if is_new { &SINCE_4_14 } else { &BEFORE_4_14 };
    let known = COMMON.iter().chain(further);
    let text: String = if !is_new && raw & 0x7ff == IDLE_BEFORE_4_14 {
        "I".to_owned()
    } else {
        known.filter(|(flag, _)| raw & flag != 0).map(|(_, letter)| *letter).take(KEPT_LETTERS).collect()
    };
    Some(match (text.is_empty(), raw & preempted != 0) {
        (true, false) => "R".to_owned(),
        (true, true) => "R+".to_owned(),
        (false, _) => text,
    })
}

#[cfg(test)]
mod tests {
    use super::{kernel_version, letters};

    #[test]
    fn flags_depend_on_the_version_of_the_kernel() {
        let new = Some((6, 1));
        for (raw, version, expected) in [
            (0, new, Some("R")),
            (0x100, new, Some("R+")),
            (1, new, Some("S")),
            (0x82, new, Some("DI")),
            (0x80, new, Some("I")),
            (0x40, new, Some("P")),
            (0x200, new, None),
            (0x7f, new, Some("SDT")),
            (0x800, None, Some("R+")),
            (0x100, None, Some("W")),
            (0x402, None, Some("I")),
            (0x82, None, Some("DK")),
            (0x1000, Some((4, 9)), Some("R+")),
        ] {
            assert_eq!(letters(raw, version).as_deref(), expected, "{raw:#x} {version:?}");
        }
    }

    #[test]
    fn releases_begin_with_two_numbers() {
        assert_eq!(kernel_version("Linux", "6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(kernel_version("Linux", "5.10"), Some((5, 10)));
        assert_eq!(kernel_version("Linux", "six"), None);
        assert_eq!(kernel_version("Darwin", "22.1.0"), None);
    }
}
