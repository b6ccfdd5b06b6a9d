//! Numbers in the text of `/proc`.

/// Returns the decimal number at the beginning, after blanks, and what follows it. Numbers that do
/// not fit become the largest one.
pub(super) fn unsigned(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = skip_blanks(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at(digits);
    let push = |value: u64, &digit: &u8| value.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    (digits > 0).then(|| (number.iter().fold(0, push), rest))
}

/// As [`unsigned`], for numbers that may be negative.
pub(super) fn signed(text: &[u8]) -> Option<(i64, &[u8])> {
    let text = skip_blanks(text);
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) if digits.first().is_some_and(u8::is_ascii_digit) => (true, digits),
        _ => (false, text),
    };
    let (value, rest) = unsigned(digits)?;
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    Some((if negative { -value } else { value }, rest))
}

/// Returns the id of a process or thread at the beginning, after blanks.
pub(super) fn id(text: &[u8]) -> Option<i32> {
    let (value, _) = unsigned(text)?;
    i32::try_from(value).ok()
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    &text[blanks..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_their_digits_end() {
        assert_eq!(unsigned(b"\t   92 kB"), Some((92, &b" kB"[..])));
        assert_eq!(unsigned(b"kB"), None);
        assert_eq!(unsigned(b"-1"), None);
        assert_eq!(signed(b" -1000\n"), Some((-1000, &b"\n"[..])));
        assert_eq!(signed(b"--1"), None);
        assert_eq!(id(b"4194304"), Some(4_194_304));
        assert_eq!(id(b"2147483648"), None);
    }

    #[test]
    fn a_number_that_does_not_fit_is_the_largest_one() {
        assert_eq!(unsigned(b"99999999999999999999").map(|(value, _)| value), Some(u64::MAX));
        assert_eq!(signed(b"-99999999999999999999").map(|(value, _)| value), Some(-i64::MAX));
    }
}
