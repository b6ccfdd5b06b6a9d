//! Tables of text.

use core::fmt;

/// More rows than this are not shown, only counted.
const MAX_ROWS: usize = 24;
/// Longer cells are cut, in characters.
const MAX_CELL: usize = 60;

/// A table with a title. Columns whose header ends in `#` are aligned to the right.
pub(super) struct Table {
    title: String,
    headers: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(title: impl Into<String>, headers: &[&'static str]) -> Self {
        Self { title: title.into(), headers: headers.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| shorten(&cell)).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            return Ok(());
        }
        let shown = &self.rows[..self.rows.len().min(MAX_ROWS)];
        let width = |column: usize| {
            let cells = shown.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([self.headers[column].trim_end_matches('#').len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.headers.len()).map(width).collect();
        writeln!(f, "\n{}", self.title)?;
        let headers: Vec<String> = self.headers.iter().map(|h| h.trim_end_matches('#').to_owned()).collect();
        for row in core::iter::once(&headers).chain(shown) {
            let mut line = String::from(" ");
            for ((cell, &width), header) in row.iter().zip(&widths).zip(&self.headers) {
                line.push(' ');
                line.push_str(&match header.ends_with('#') {
                    true => format!("{cell:>width$} "),
                    false => format!("{cell:<width$} "),
                });
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        if shown.len() < self.rows.len() {
            writeln!(f, "  … and {} more", self.rows.len() - shown.len())?;
        }
        Ok(())
    }
}

/// One line of bounded length without control characters: what a trace holds may be anything.
fn shorten(cell: &str) -> String {
    let clean: String = cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.chars().count() <= MAX_CELL {
        return clean;
    }
    let mut short: String = clean.chars().take(MAX_CELL - 1).collect();
    short.push('…');
    short
}
