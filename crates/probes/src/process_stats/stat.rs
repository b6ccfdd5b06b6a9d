//! [`Times`]: the times in `/proc/PID/stat`.

use super::number::unsigned;

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
const USER: usize = 14 - 3;
const KERNEL: usize = 15 - 3;
const START: usize = 22 - 3;

impl Times {
    /// Parses the file. The name is in parentheses and may have parentheses, blanks and newlines
    /// itself; what follows has none.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let after_name = memchr::memrchr(b')', text)? + 1;
        let mut fields = text[after_name..].split(|byte| byte.is_ascii_whitespace()).filter(|field| !field.is_empty());
        let mut number = |skipped| Some(unsigned(fields.nth(skipped)?)?.0);
        Some(Self { user: number(USER)?, kernel: number(KERNEL - USER - 1)?, start: number(START - KERNEL - 1)? })
    }
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
        }
        assert_eq!(Times::parse([b"1 (\xff\xfe)", rest.as_bytes()].concat().as_slice()), expected);
    }

    #[test]
    fn a_cut_line_has_no_times() {
        assert_eq!(Times::parse(b""), None);
        assert_eq!(Times::parse(b"7 (x) S 1 2 3"), None);
        assert_eq!(Times::parse(b"7 (x"), None);
    }
}
