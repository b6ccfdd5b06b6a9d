//! [`Times`] and [`Origin`]: the times in `/proc/PID/stat`, and where a process comes from.

use super::number::unsigned;

/// Flag of a process that has not executed a program since its fork.
const FORKED: u64 = 0x40;

/// Origin of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin<'a> {
    /// As the kernel has it, without escapes.
    pub(crate) name: &'a [u8],
    /// The process has executed a program since its fork.
    pub(crate) has_executed: bool,
    /// Start of the process in clock ticks, since boot.
    pub(crate) start: u64,
}

/// Times of a process, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// Time that its threads, also those that ended, ran in user mode.
    pub(crate) user: u64,
    /// The same in kernel mode.
    pub(crate) kernel: u64,
    /// Start of the process, since boot.
    pub(crate) start: u64,
}

/// Number of a field after the name, counted from 0. The manual counts the state as field 3.
const FLAGS: usize = 9 - 3;
const USER: usize = 14 - 3;
const KERNEL: usize = 15 - 3;
const START: usize = 22 - 3;

impl Times {
    /// Parses the file.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let (_, mut fields) = split(text)?;
        let mut number = |skipped| Some(unsigned(fields.nth(skipped)?)?.0);
        Some(Self { user: number(USER)?, kernel: number(KERNEL - USER - 1)?, start: number(START - KERNEL - 1)? })
    }
}

impl<'a> Origin<'a> {
    /// Parses the file.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        let (name, mut fields) = split(text)?;
        let mut number = |skipped| Some(unsigned(fields.nth(skipped)?)?.0);
        Some(Self { name, has_executed: number(FLAGS)? & FORKED == 0, start: number(START - FLAGS - 1)? })
    }
}

/// Returns the name, and the fields after it. The name is in parentheses and may have parentheses,
/// blanks and newlines itself; what follows has none.
fn split(text: &[u8]) -> Option<(&[u8], impl Iterator<Item = &[u8]>)> {
    let end = memchr::memrchr(b')', text)?;
    let begin = memchr::memchr(b'(', &text[..end])? + 1;
    let fields = text[end + 1..].split(|byte| byte.is_ascii_whitespace()).filter(|field| !field.is_empty());
    Some((&text[begin..end], fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let rest =
            " S 1 4154 4154 0 -1 4194560 412 7 0 0 31 12 5 6 20 0 1 0 1983042 15126528 1847 18446744073709551615";
        let expected = Some(Times { user: 31, kernel: 12, start: 1_983_042 });
        for name in ["bash", "a b", ") S 1 2 3 4", "(((", "x\n) y", "\u{fffd}", ""] {
            let text = format!("4154 ({name}){rest}\n");
            assert_eq!(Times::parse(text.as_bytes()), expected, "{name}");
            let origin = Origin { name: name.as_bytes(), has_executed: true, start: 1_983_042 };
            assert_eq!(Origin::parse(text.as_bytes()), Some(origin));
            let forked = text.replace(" 4194560 ", " 4194624 ");
            assert_eq!(Origin::parse(forked.as_bytes()), Some(Origin { has_executed: false, ..origin }));
        }
        assert_eq!(Times::parse([b"1 (\xff\xfe)", rest.as_bytes()].concat().as_slice()), expected);
    }

    #[test]
    fn a_cut_line_has_no_times() {
        assert_eq!(Times::parse(b""), None);
        assert_eq!(Times::parse(b"7 (x) S 1 2 3"), None);
        assert_eq!(Times::parse(b"7 (x"), None);
        assert_eq!([&b"7 (x) S 1 2 3"[..], b"7 x) S", b")("].map(Origin::parse), [None; 3]);
    }
}
