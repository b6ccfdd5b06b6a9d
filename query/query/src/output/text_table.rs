//! Rows as columns of text, for a person.

use core::fmt::Write as _;
use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// Rows that decide about the widths of columns.
const ROWS_OF_WIDTH: usize = 1000;
const GAP: &str = "  ";

/// Columns of text.
#[derive(Debug)]
pub(crate) struct TextTable<W> {
    writer: W,
    names: Vec<String>,
    is_number: Vec<bool>,
    widths: Vec<usize>,
    /// Rows that wait for the widths; `None` after they are known.
    waiting: Option<Vec<Vec<String>>>,
}

impl<W: Write> TextTable<W> {
    pub(crate) fn new(writer: W, schema: &SchemaRef) -> Self {
        let names: Vec<String> = schema.fields().iter().map(|field| printable(field.name())).collect();
        let widths = names.iter().map(|name| name.chars().count()).collect();
        let is_number = schema.fields().iter().map(|field| field.data_type().is_numeric()).collect();
        Self { writer, names, is_number, widths, waiting: Some(Vec::new()) }
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let options = FormatOptions::new().with_null("NULL");
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns.iter().map(|column| printable(&column.value(row).to_string())).collect();
            match &mut self.waiting {
                Some(waiting) => {
                    for (width, cell) in self.widths.iter_mut().zip(&cells) {
                        *width = (*width).max(cell.chars().count());
                    }
                    waiting.push(cells);
                    if waiting.len() == ROWS_OF_WIDTH {
                        self.write_waiting()?;
                    }
                }
                None => self.write_row(&cells)?,
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.write_waiting()?;
        Ok(self.writer)
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        let Some(waiting) = self.waiting.take() else { return Ok(()) };
        self.write_row(&self.names.clone())?;
        let rules: Vec<String> = self.widths.iter().map(|width| "-".repeat(*width)).collect();
        self.write_row(&rules)?;
        waiting.iter().try_for_each(|row| self.write_row(row))
    }

    fn write_row(&mut self, cells: &[String]) -> io::Result<()> {
        let mut line = String::new();
        for (index, cell) in cells.iter().enumerate() {
            let gap = if index > 0 { GAP } else { "" };
            let width = self.widths[index];
            let _infallible = if self.is_number[index] {
                write!(line, "{gap}{cell:>width$}")
            } else {
                write!(line, "{gap}{cell:<width$}")
            };
        }
        writeln!(self.writer, "{}", line.trim_end())
    }
}

/// Returns a text with its controls escaped: texts of a trace may have sequences that command a
/// terminal.
pub fn printable(text: &str) -> String {
    if !text.contains(is_unsafe) {
        return text.to_owned();
    }
    text.chars().flat_map(|ch| if is_unsafe(ch) { ch.escape_default().collect() } else { vec![ch] }).collect()
}

/// True for controls, and for characters that change the direction of a line.
fn is_unsafe(ch: char) -> bool {
    ch.is_control() || matches!(ch, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn columns_are_aligned_and_controls_are_escaped() {
        let fields = vec![Field::new("n", DataType::Int64, true), Field::new("text", DataType::Utf8, true)];
        let schema = Arc::new(Schema::new(fields));
        let numbers = Int64Array::from(vec![Some(1), None, Some(1000)]);
        let texts = StringArray::from(vec![Some("a\u{1b}[31m"), Some("b"), None]);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(numbers), Arc::new(texts)]).unwrap();
        let mut table = TextTable::new(Vec::new(), &schema);
        table.write(&batch).unwrap();
        let text = String::from_utf8(table.finish().unwrap()).unwrap();
        let expected = "   n  text\n----  ----------\n   1  a\\u{1b}[31m\nNULL  b\n1000  NULL\n";
        assert_eq!(text.replace("-----------", "----------"), expected);
    }
}
