//! Errors of a text.

use core::fmt;
use core::ops::Deref;

use crate::snippet::Snippet;

/// One mistake in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
    /// The mistake and the expected form.
    pub message: String,
    snippet: Snippet,
}

impl Error {
    /// Returns the line with the mistake, underlined.
    pub fn snippet(&self) -> &Snippet {
        &self.snippet
    }

    /// Creates an error for the `length` bytes of `text` from `offset`.
    pub(crate) fn at(text: &[u8], offset: usize, length: usize, message: String) -> Self {
        let snippet = Snippet::of(text, offset..offset.saturating_add(length));
        Self { line: snippet.line, column: snippet.column, message, snippet }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} error: {}\n{}", self.line, self.column, self.message, self.snippet)
    }
}

/// All mistakes of one text, ordered by their position; never empty.
///
/// Displays one block per mistake: `FILE:LINE:COLUMN error: MESSAGE`, the source line, and an
/// underline, in the layout of `docs/spec/cli.md §16`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errors {
    file: String,
    list: Vec<Error>,
}

impl Errors {
    pub(crate) fn new(file: String, mut list: Vec<Error>) -> Self {
        list.sort_by_key(|error| (error.line, error.column));
        Self { file, list }
    }

    /// Returns the file name that begins each block.
    pub fn file(&self) -> &str {
        &self.file
    }
}

impl Deref for Errors {
    type Target = [Error];

    fn deref(&self) -> &[Error] {
        &self.list
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.list.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}:{error}", self.file)?;
        }
        Ok(())
    }
}

impl core::error::Error for Errors {}
