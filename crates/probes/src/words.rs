//! [`Words`]: words and numbers of the kernel's text files.

use std::borrow::Cow;

/// Bytes of a name that are written into the trace. The kernel's own names are shorter than 64;
/// names of devices may come from their firmware.
const MAX_NAME_BYTES: usize = 256;

/// The rest of a text: a line of it, or all of it. Words are separated by spaces and tabs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub(crate) const fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// Returns the next word.
    #[inline]
    pub(crate) fn word(&mut self) -> Option<&'a [u8]> {
        self.skip_spaces();
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|&byte| is_space(byte)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(word)
    }

    /// Passes over `count` words.
    #[inline]
    pub(crate) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.word();
        }
    }

    /// Returns the number with which the next word begins. Returns `None` if there is no word, or
    /// it does not begin with a digit; the word is passed over.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        self.skip_spaces();
        let (number, len) = leading_number(self.rest);
        self.rest = &self.rest[len..];
        if self.rest.first().is_some_and(|&byte| !is_space(byte)) {
            self.word();
        }
        (len > 0).then_some(number)
    }

    /// As [`number`](Self::number), for fields of 32 bits. Larger numbers become the largest one.
    #[inline]
    pub(crate) fn number_u32(&mut self) -> Option<u32> {
        self.number().map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Passes over `prefix` if the rest begins with it.
    #[inline]
    pub(crate) fn take(&mut self, prefix: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    #[inline]
    fn skip_spaces(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns the lines of a text without their ends.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = split_line(rest);
        rest = after;
        Some(line)
    })
}

/// Splits a text behind its first line, and returns that line without its end.
#[inline]
pub(crate) fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'\n', text) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &[]),
    }
}

/// Returns the decimal number with which `text` begins, and the number of its digits. A number that
/// does not fit becomes the largest one.
#[inline]
pub(crate) fn leading_number(text: &[u8]) -> (u64, usize) {
    let mut number = 0_u64;
    let mut len = 0;
    while let Some(digit) = text.get(len).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit <= 9) {
        // Up to 19 digits always fit.
        number = if len < 19 {
            number * 10 + u64::from(digit)
        } else {
            number.saturating_mul(10).saturating_add(digit.into())
        };
        len += 1;
    }
    (number, len)
}

/// Returns the number of a file that holds just one, such as those of sysfs.
pub(crate) fn number_of_file(text: &[u8]) -> Option<u64> {
    Words::new(split_line(text).0).number()
}

/// As [`number_of_file`], for numbers that may be negative.
pub(crate) fn signed_number_of_file(text: &[u8]) -> Option<i64> {
    let mut words = Words::new(split_line(text).0);
    words.skip_spaces();
    let is_negative = words.take(b"-");
    let (number, len) = leading_number(words.rest);
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    (len > 0).then_some(if is_negative { -number } else { number })
}

/// Returns a name as UTF-8 of bounded length.
pub(crate) fn name_text(name: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&name[..name.len().min(MAX_NAME_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_are_read_in_turn() {
        let mut words = Words::new(b"  cpu0\t12 x7 34kB -5 18446744073709551616 ");
        assert_eq!(words.word(), Some(&b"cpu0"[..]));
        assert_eq!(words.number(), Some(12));
        assert_eq!(words.number(), None, "not a number, but passed over");
        assert_eq!(words.number(), Some(34));
        assert_eq!(words.number(), None);
        assert_eq!(words.number(), Some(u64::MAX), "too large");
        assert_eq!((words.word(), words.number()), (None, None));
    }

    #[test]
    fn numbers_of_19_and_20_digits_are_exact() {
        assert_eq!(leading_number(b"9999999999999999999"), (9_999_999_999_999_999_999, 19));
        assert_eq!(leading_number(b"18446744073709551615 "), (u64::MAX, 20));
        assert_eq!(leading_number(&[b'9'; 100]), (u64::MAX, 100));
        assert_eq!(leading_number(b""), (0, 0));
    }

    #[test]
    fn a_file_with_one_number_is_that_number() {
        assert_eq!(number_of_file(b"2600000\n"), Some(2_600_000));
        assert_eq!(number_of_file(b"<unknown>\n"), None);
        assert_eq!(signed_number_of_file(b"-5500\n"), Some(-5500));
        assert_eq!(signed_number_of_file(b"-\n"), None);
        assert_eq!(signed_number_of_file(&[b'9'; 30]), Some(i64::MAX));
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let all: Vec<_> = lines(b"a\n\nb").collect();
        assert_eq!(all, [&b"a"[..], b"", b"b"]);
        assert_eq!(lines(b"a\n").count(), 1);
    }

    #[test]
    fn a_strange_name_becomes_short_text() {
        assert_eq!(name_text(b"vda"), "vda");
        assert_eq!(name_text(b"a\xFFb"), "a\u{FFFD}b");
        assert_eq!(name_text(&[b'x'; 1000]).len(), MAX_NAME_BYTES);
    }
}
