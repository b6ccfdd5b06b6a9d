//! Tables for people.

use core::fmt::Write as _;

use esatto_trace::escape::Line;

/// Longest cell of a table in characters. Longer ones are cut, because all cells of a column are as
/// wide as the longest one.
pub(crate) const MAX_CELL_CHARS: usize = 120;

/// Formats a text for one line, cut and escaped.
pub(crate) fn cell(text: &str) -> String {
    // Cut first: each character can take up to ten columns.
    let start: String = text.chars().take(MAX_CELL_CHARS + 1).collect();
    let safe = Line(start).to_string();
    if safe.chars().count() <= MAX_CELL_CHARS {
        return safe;
    }
    safe.chars().take(MAX_CELL_CHARS - 1).chain(['…']).collect()
}

/// Formats a table of cells. A column without any content is left out.
pub(crate) fn table<const COLUMNS: usize>(head: &[&str; COLUMNS], rows: Vec<[String; COLUMNS]>) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let columns: Vec<(usize, usize)> = (0..COLUMNS)
        .map(|column| (column, width(column)))
        .filter(|(_, width)| *width > 0)
        .map(|(column, width)| (column, width.max(head[column].len())))
        .collect();
    let mut text = String::new();
    let head = head.map(str::to_owned);
    for row in core::iter::once(&head).chain(&rows) {
        let mut line = String::new();
        for &(column, width) in &columns {
            // Writing to a string never fails.
            let _ = write!(line, "  {:<width$}", row[column]);
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let row = |cells: [&str; 3]| cells.map(cell);
        let rows = vec![row(["1", "", "a\u{1b}"]), row(["20", "", "b"])];
        assert_eq!(table(&["pid", "tags", "name"], rows), "  pid  name\n  1    a\\u{1b}\n  20   b\n");
    }
}
