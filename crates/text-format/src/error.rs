//! Errors of a text, and their display.

use core::fmt;
use core::ops::Deref;

/// Longest piece of a source line that a report shows, in characters. A config may be one huge
/// line.
const MAX_SHOWN: usize = 160;

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
    /// The part of the line that the report shows.
    source: String,
    /// Characters of `source` before the underline.
    indent: usize,
    /// Characters that are underlined, at least 1.
    width: usize,
}

impl Error {
    /// Creates an error for the `length` bytes of `text` from `offset`.
    pub(crate) fn at(text: &[u8], offset: usize, length: usize, message: String) -> Self {
        let offset = offset.min(text.len());
        let before = &text[..offset];
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let line_end = text[offset..].iter().position(|&b| b == b'\n').map_or(text.len(), |at| offset + at);
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let lead = String::from_utf8_lossy(&text[line_start..offset]).chars().count();
        let token_end = offset.saturating_add(length).min(line_end);
        let width = String::from_utf8_lossy(&text[offset..token_end]).chars().count().max(1);

        let whole = String::from_utf8_lossy(&text[line_start..line_end]);
        let skipped = lead.saturating_sub(MAX_SHOWN / 2);
        let source: String = whole.trim_end().chars().skip(skipped).take(MAX_SHOWN).map(printable).collect();
        let indent = lead - skipped;
        let room = source.chars().count().saturating_sub(indent).max(1);
        Self { line, column: lead + 1, message, source, indent, width: width.min(room) }
    }
}

/// Replaces characters that could change a terminal. Tabs stay, so that the underline can repeat
/// them.
fn printable(c: char) -> char {
    if c == '\t' || !c.is_control() { c } else { '\u{fffd}' }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lead: String = self.source.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).take(self.indent).collect();
        let missing = self.indent - lead.chars().count();
        write!(f, "{}:{} error: {}\n{}\n", self.line, self.column, self.message, self.source)?;
        write!(f, "{lead}{:missing$}^{}", "", "~".repeat(self.width - 1))
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
