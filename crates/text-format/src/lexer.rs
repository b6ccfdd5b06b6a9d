//! Lexer: splits a text into tokens.

/// A range of bytes in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }

    pub(crate) fn to(self, last: Self) -> Self {
        Self { start: self.start, end: last.end }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or a word such as `true`.
    Ident,
    /// A token that begins with a digit or a dot. It takes all characters that could belong to a
    /// number, so that `10ms` is one token.
    Number,
    /// A string with its quotes.
    String,
    /// A string without a closing quote. It reaches to the end of the text.
    OpenString,
    /// Any other character, complete even if it has several bytes.
    Punct(u8),
    End,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

impl Token {
    pub(crate) fn is(self, punct: u8) -> bool {
        self.kind == Kind::Punct(punct)
    }
}

/// A position in the text. Copy it to look ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Self {
        // Some editors write a byte order mark.
        let at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Self { text, at }
    }

    pub(crate) fn next(&mut self) -> Token {
        self.skip_blank();
        let start = self.at;
        let Some(&first) = self.text.get(start) else {
            return Token { kind: Kind::End, span: Span { start, end: start } };
        };
        let kind = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                self.take_while(|b| b.is_ascii_alphanumeric() || b == b'_');
                Kind::Ident
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.text.get(start + 1).is_some_and(u8::is_ascii_digit) => self.number(),
            b'"' | b'\'' => self.string(first),
            _ => {
                self.at += 1;
                self.take_while(|b| first >= 0xc0 && b & 0xc0 == 0x80);
                Kind::Punct(first)
            }
        };
        Token { kind, span: Span { start, end: self.at } }
    }

    /// Reads the name after an opening bracket, and its closing bracket: an extension, or the URL
    /// of a type.
    ///
    /// White space and comments are skipped. If there is no name, returns `None`, and the lexer is
    /// at the wrong character.
    pub(crate) fn bracketed_name(&mut self) -> Option<(String, Span)> {
        let mut name = String::new();
        self.skip_blank();
        let mut span = Span { start: self.at, end: self.at };
        loop {
            self.skip_blank();
            match *self.text.get(self.at)? {
                b @ (b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'/' | b'-') => {
                    name.push(char::from(b));
                    self.at += 1;
                    span.end = self.at;
                }
                b']' => {
                    self.at += 1;
                    return Some((name, span));
                }
                _ => return None,
            }
        }
    }

    fn skip_blank(&mut self) {
        loop {
            self.take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c));
            if self.text.get(self.at) != Some(&b'#') {
                return;
            }
            self.take_while(|b| b != b'\n');
        }
    }

    fn number(&mut self) -> Kind {
        let hex = matches!(self.text.get(self.at..self.at + 2), Some([b'0', b'x' | b'X']));
        let mut previous = 0;
        self.take_while(|b| {
            let exponent_sign = matches!(b, b'+' | b'-') && matches!(previous, b'e' | b'E') && !hex;
            previous = b;
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.') || exponent_sign
        });
        Kind::Number
    }

    fn string(&mut self, quote: u8) -> Kind {
        self.at += 1;
        while let Some(&b) = self.text.get(self.at) {
            // The character after a backslash is always part of the string.
            self.at += if b == b'\\' { 2 } else { 1 };
            if b == quote {
                return Kind::String;
            }
        }
        self.at = self.text.len();
        Kind::OpenString
    }

    fn take_while(&mut self, mut keep: impl FnMut(u8) -> bool) {
        while self.text.get(self.at).is_some_and(|&b| keep(b)) {
            self.at += 1;
        }
    }
}
