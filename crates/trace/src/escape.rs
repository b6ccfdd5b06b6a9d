//! Escapes for text from traces, so that it is safe to show.
//!
//! A trace can hold any bytes in its names. On a terminal, some of them are commands (escape
//! sequences). Some characters change the order in which others are shown (bidirectional controls),
//! so that the text reads differently. All of these are shown as `\u{202e}`.

use core::fmt::{self, Write as _};

/// Returns whether `c` acts on a terminal or a reader instead of being visible.
///
/// These are control characters (C0, C1, DEL), line and paragraph separators, and characters that
/// control the direction of text.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Shows a text on one line, with [unsafe](is_unsafe) characters and newlines escaped.
#[derive(Debug, Clone, Copy)]
pub struct Line<T>(pub T);

/// Like [`Line`], but keeps newlines.
#[derive(Debug, Clone, Copy)]
pub struct Lines<T>(pub T);

impl<T: fmt::Display> fmt::Display for Line<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { f, newlines: false }, "{}", self.0)
    }
}

impl<T: fmt::Display> fmt::Display for Lines<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { f, newlines: true }, "{}", self.0)
    }
}

struct Escaping<'f, 'b> {
    f: &'f mut fmt::Formatter<'b>,
    newlines: bool,
}

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        let harmful = |c: char| is_unsafe(c) && !(self.newlines && c == '\n');
        while let Some((at, c)) = rest.char_indices().find(|&(_, c)| harmful(c)) {
            self.f.write_str(&rest[..at])?;
            write!(self.f, "{}", c.escape_default())?;
            rest = &rest[at + c.len_utf8()..];
        }
        self.f.write_str(rest)
    }
}

/// Returns encoded JSON in which all remaining [unsafe](is_unsafe) characters are escaped as
/// `\uXXXX`.
pub fn json(encoded: &str) -> String {
    let mut safe = String::with_capacity(encoded.len());
    for c in encoded.chars() {
        // Outside of strings, JSON contains no unsafe characters but newlines.
        if is_unsafe(c) && c != '\n' {
            // All unsafe characters have four hexadecimal digits.
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_commands_are_escaped_and_text_stays() {
        let text = "a\u{1b}[31m\u{7f}\u{9b}2J\u{202e}b\u{2066}\u{200f}\u{61c}\u{2028}\nc";
        let line = r"a\u{1b}[31m\u{7f}\u{9b}2J\u{202e}b\u{2066}\u{200f}\u{61c}\u{2028}\nc";
        assert_eq!(Line(text).to_string(), line);
        assert_eq!(Lines(text).to_string(), line.replace(r"\n", "\n"));
        let harmless = "Grüße, привет, 你好, שלום, e\u{301}, 👩\u{200d}👩";
        assert_eq!(Line(harmless).to_string(), harmless);
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({ "a\u{202e}b": ["\u{9b}\u{7f}\u{1b}", "\u{2066}\n\"\\"] });
        let text = json(&format!("{value:#}"));
        assert!(text.chars().all(|c| !is_unsafe(c) || c == '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
