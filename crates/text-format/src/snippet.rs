//! A piece of a text as a report shows it.

use core::fmt;
use core::ops::Range;

/// Longest piece of a source line that a report shows, in characters. A config may be one huge
/// line.
const MAX_SHOWN: usize = 160;

/// A line of a text with an underlined part.
///
/// Displays two lines: the source line, and the underline.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snippet {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1, in characters.
    pub column: usize,
    /// The part of the line that the report shows.
    source: String,
    /// Characters of `source` before the underline.
    indent: usize,
    /// Characters that are underlined, at least 1.
    width: usize,
}

impl Snippet {
    /// Makes the snippet of these bytes of `text`. The underline ends with the line.
    pub fn of(text: &[u8], part: Range<usize>) -> Self {
        let offset = part.start.min(text.len());
        let before = &text[..offset];
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let line_end = text[offset..].iter().position(|&b| b == b'\n').map_or(text.len(), |at| offset + at);
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let lead = String::from_utf8_lossy(&text[line_start..offset]).chars().count();
        let part_end = part.end.clamp(offset, line_end);
        let width = String::from_utf8_lossy(&text[offset..part_end]).chars().count().max(1);

        let whole = String::from_utf8_lossy(&text[line_start..line_end]);
        let skipped = lead.saturating_sub(MAX_SHOWN / 2);
        let source: String = whole.trim_end().chars().skip(skipped).take(MAX_SHOWN).map(printable).collect();
        let indent = lead - skipped;
        let room = source.chars().count().saturating_sub(indent).max(1);
        Self { line, column: lead + 1, source, indent, width: width.min(room) }
    }
}

/// Replaces characters that could change a terminal. Tabs stay, so that the underline can repeat
/// them.
fn printable(c: char) -> char {
    if c == '\t' || !c.is_control() { c } else { '\u{fffd}' }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lead: String = self.source.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).take(self.indent).collect();
        let missing = self.indent - lead.chars().count();
        write!(f, "{}\n{lead}{:missing$}^{}", self.source, "", "~".repeat(self.width - 1))
    }
}
