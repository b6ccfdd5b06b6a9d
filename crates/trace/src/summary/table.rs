//! Tables for the text of a summary.

use core::fmt;

use crate::escape::Line;

/// Number of rows that are shown; further ones are only counted.
const MAX_ROWS: usize = 24;
/// Number of important rows that are shown beside them. The service writes fewer. A hostile trace
/// can have any number.
const MAX_IMPORTANT_ROWS: usize = 1000;
/// Longest cell in characters; longer ones are cut.
pub(super) const MAX_CELL: usize = 60;

/// A table with a title. Columns whose header ends in `#` are aligned to the right.
pub(super) struct Table {
    title: String,
    headers: Vec<&'static str>,
    /// The rows that are shown.
    rows: Vec<Vec<String>>,
    /// Number of important rows among them.
    important: usize,
    others: usize,
}

impl Table {
    pub(super) fn new(title: impl Into<String>, headers: &[&'static str]) -> Self {
        Self { title: title.into(), headers: headers.to_vec(), rows: Vec::new(), important: 0, others: 0 }
    }

    /// Adds a row. Its cells are only made if it is shown.
    pub(super) fn row<C: IntoIterator<Item = String>>(&mut self, cells: impl FnOnce() -> C) {
        self.row_if(self.rows.len() - self.important < MAX_ROWS, cells);
    }

    /// As [`row`](Self::row), for a row that must be seen. The others do not take its place.
    pub(super) fn important_row<C: IntoIterator<Item = String>>(&mut self, cells: impl FnOnce() -> C) {
        let has_room = self.important < MAX_IMPORTANT_ROWS;
        self.important += usize::from(has_room);
        self.row_if(has_room, cells);
    }

    fn row_if<C: IntoIterator<Item = String>>(&mut self, is_shown: bool, cells: impl FnOnce() -> C) {
        match is_shown {
            true => self.rows.push(cells().into_iter().map(|cell| shorten(&cell)).collect()),
            false => self.others += 1,
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            return Ok(());
        }
        let shown = &self.rows;
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
        if self.others > 0 {
            writeln!(f, "  … and {} more", self.others)?;
        }
        Ok(())
    }
}

/// Returns one line of bounded length, escaped because a trace can hold any text.
fn shorten(cell: &str) -> String {
    // Cut first: a name may be long, and each of its characters can take up to ten columns.
    let start: String = cell.chars().take(MAX_CELL + 1).collect();
    let clean = Line(start).to_string();
    if clean.chars().count() <= MAX_CELL {
        return clean;
    }
    let mut short: String = clean.chars().take(MAX_CELL - 1).collect();
    short.push('…');
    short
}
