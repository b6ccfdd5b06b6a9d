//! Forms in which rows are written.

mod text_table;

pub use self::text_table::printable;

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use self::text_table::TextTable;

/// A form of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Columns for a person
    Table,
    /// Comma-separated values, with a line of names
    Csv,
    /// An array of JSON, an object for each row
    Json,
    /// An object of JSON for each row, one a line
    Jsonl,
    /// A file of Apache Parquet
    Parquet,
    /// A stream of Apache Arrow's IPC format
    Arrow,
}

impl Format {
    /// Returns the form that a file's name asks for.
    pub fn of_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "csv" => Self::Csv,
            "json" => Self::Json,
            "jsonl" | "ndjson" => Self::Jsonl,
            "parquet" => Self::Parquet,
            "arrow" | "arrows" => Self::Arrow,
            "txt" => Self::Table,
            _ => return None,
        })
    }

    /// True if one output can have several results.
    pub fn can_repeat(self) -> bool {
        !matches!(self, Self::Parquet | Self::Arrow)
    }
}

/// An error of writing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The rows cannot be written in this form.
    #[error("{0}")]
    Arrow(#[from] ArrowError),
    /// As above.
    #[error("{0}")]
    Parquet(#[from] ParquetError),
    /// The file or the pipe failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl OutputError {
    /// True if the reader of a pipe has gone.
    pub fn is_broken_pipe(&self) -> bool {
        let io_kind =
            |error: &(dyn std::error::Error + 'static)| error.downcast_ref::<io::Error>().map(io::Error::kind);
        let kind = match self {
            Self::Io(error) => Some(error.kind()),
            Self::Arrow(ArrowError::IoError(_, error)) => Some(error.kind()),
            Self::Arrow(ArrowError::ExternalError(error)) => io_kind(&**error),
            Self::Parquet(ParquetError::External(error)) => io_kind(&**error),
            _ => None,
        };
        // The writer of CSV keeps only the text of an error.
        kind == Some(io::ErrorKind::BrokenPipe) || self.to_string().contains("Broken pipe")
    }
}

/// Writes the rows of one result.
pub struct Output<W: Write + Send>(Writer<W>);

enum Writer<W: Write + Send> {
    Table(TextTable<W>),
    Csv(Box<arrow::csv::Writer<W>>),
    Json(arrow::json::ArrayWriter<W>),
    Jsonl(arrow::json::LineDelimitedWriter<W>),
    Parquet(Box<ArrowWriter<W>>),
    Arrow(Box<StreamWriter<W>>),
}

impl<W: Write + Send> fmt::Debug for Output<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}

impl<W: Write + Send> Output<W> {
    /// Begins a result.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn new(writer: W, format: Format, schema: &SchemaRef) -> Result<Self, OutputError> {
        use arrow::json::writer::{JsonArray, LineDelimited};
        let json = || arrow::json::WriterBuilder::new().with_explicit_nulls(true);
        Ok(Self(match format {
            Format::Table => Writer::Table(TextTable::new(writer, schema)),
            Format::Csv => {
                let mut writer = arrow::csv::Writer::new(writer);
                // The line of names, also if there are no rows.
                writer.write(&flat(&RecordBatch::new_empty(schema.clone()))?)?;
                Writer::Csv(Box::new(writer))
            }
            Format::Json => Writer::Json(json().build::<W, JsonArray>(writer)),
            Format::Jsonl => Writer::Jsonl(json().build::<W, LineDelimited>(writer)),
            Format::Parquet => {
                let compression = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(compression).build();
                Writer::Parquet(Box::new(ArrowWriter::try_new(writer, schema.clone(), Some(properties))?))
            }
            Format::Arrow => Writer::Arrow(Box::new(StreamWriter::try_new(writer, schema)?)),
        }))
    }

    /// Writes rows.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        match &mut self.0 {
            Writer::Table(writer) => writer.write(batch)?,
            Writer::Csv(writer) => writer.write(&flat(batch)?)?,
            Writer::Json(writer) => writer.write(batch)?,
            Writer::Jsonl(writer) => writer.write(batch)?,
            Writer::Parquet(writer) => writer.write(batch)?,
            Writer::Arrow(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    /// Ends the result.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn finish(self) -> Result<W, OutputError> {
        Ok(match self.0 {
            Writer::Table(writer) => writer.finish()?,
            Writer::Csv(writer) => writer.into_inner(),
            Writer::Json(mut writer) => {
                writer.finish()?;
                let mut writer = writer.into_inner();
                writer.write_all(b"\n")?;
                writer
            }
            Writer::Jsonl(mut writer) => {
                writer.finish()?;
                writer.into_inner()
            }
            Writer::Parquet(writer) => writer.into_inner()?,
            Writer::Arrow(writer) => writer.into_inner()?,
        })
    }
}

/// Returns rows with lists and the like as texts, for CSV.
fn flat(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let is_nested = |field: &Arc<Field>| field.data_type().is_nested();
    if !batch.schema().fields().iter().any(is_nested) {
        return Ok(batch.clone());
    }
    let options = FormatOptions::new();
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if !is_nested(field) {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
            continue;
        }
        let formatter = ArrayFormatter::try_new(column, &options)?;
        let text = |row| column.is_valid(row).then(|| formatter.value(row).to_string());
        let texts: StringArray = (0..batch.num_rows()).map(text).collect();
        fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
        columns.push(Arc::new(texts) as ArrayRef);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
