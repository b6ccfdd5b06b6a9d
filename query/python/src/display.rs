//! The first rows of a result, as text and as HTML.

use std::fmt::Write as _;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use esatto_query::printable;

/// Rows that are shown.
pub(crate) const SHOWN_ROWS: usize = 10;

/// Characters of a value that are shown.
const SHOWN_CHARACTERS: usize = 60;

/// The first rows of a result.
pub(crate) struct FirstRows {
    names: Vec<String>,
    is_number: Vec<bool>,
    cells: Vec<Vec<String>>,
    has_more: bool,
}

impl FirstRows {
    pub(crate) fn new(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Self, ArrowError> {
        let options = FormatOptions::new().with_null("NULL");
        let mut cells = Vec::new();
        for batch in batches {
            let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows().min(SHOWN_ROWS - cells.len()) {
                cells.push(columns.iter().map(|column| short(&column.value(row).to_string())).collect());
            }
        }
        Ok(Self {
            names: schema.fields().iter().map(|field| short(field.name())).collect(),
            is_number: schema.fields().iter().map(|field| field.data_type().is_numeric()).collect(),
            has_more: batches.iter().map(RecordBatch::num_rows).sum::<usize>() > SHOWN_ROWS,
            cells,
        })
    }

    pub(crate) fn text(&self) -> String {
        if self.names.is_empty() {
            return "(no columns)".to_owned();
        }
        let table = text_table(&self.names, &self.is_number, &self.cells);
        format!("{table}\n({})", self.count())
    }

    pub(crate) fn html(&self) -> String {
        let mut html = "<table><thead><tr>".to_owned();
        for name in &self.names {
            html += &format!("<th>{}</th>", escaped(name));
        }
        html += "</tr></thead><tbody>";
        for row in &self.cells {
            html += "<tr>";
            for (cell, is_number) in row.iter().zip(&self.is_number) {
                let align = if *is_number { "right" } else { "left" };
                let _infallible = write!(html, "<td style=\"text-align: {align}\">{}</td>", escaped(cell));
            }
            html += "</tr>";
        }
        let _infallible = write!(html, "</tbody></table><p>{}</p>", self.count());
        html
    }

    fn count(&self) -> String {
        match self.cells.len() {
            count if self.has_more => format!("the first {count} rows; there are more"),
            1 => "1 row".to_owned(),
            count => format!("{count} rows"),
        }
    }
}

/// Returns names and rows as columns of text.
pub(crate) fn text_table(names: &[String], is_number: &[bool], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([names[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).zip(is_number).map(|((cell, &width), is_number)| {
            if *is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| line(row));
    [line(names), line(&rules)].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

/// Returns a text without controls, and its beginning if it is long.
fn short(text: &str) -> String {
    let text = printable(text);
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for ch in text.chars() {
        match ch {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            // Notebooks read formulas in tables.
            '$' => html.push_str("&#36;"),
            ch => html.push(ch),
        }
    }
    html
}
