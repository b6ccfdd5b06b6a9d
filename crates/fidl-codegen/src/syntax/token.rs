//! [`Token`]: a word, number, string or sign of a file.

use crate::source::Span;

/// Word, number, string or sign.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Name or keyword. Keywords are names where no keyword fits.
    Name(String),
    /// Number as it is written.
    Number(String),
    /// Value of a string literal.
    Text(String),
    /// Text of a line after `///`.
    Doc(String),
    /// `;`, `:`, `,`, `.`, `=`, `|`, `<`, `>`, `(`, `)`, `{`, `}`, `[`, `]`, `@`, `?`
    Sign(char),
    /// `->`
    Arrow,
    /// End of the file.
    End,
}

impl TokenKind {
    /// Returns the token as messages name it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Name(name) => format!("`{name}`"),
            Self::Number(number) => format!("`{number}`"),
            Self::Text(_) => "a string".to_owned(),
            Self::Doc(_) => "a doc comment".to_owned(),
            Self::Sign(sign) => format!("`{sign}`"),
            Self::Arrow => "`->`".to_owned(),
            Self::End => "the end of the file".to_owned(),
        }
    }
}
