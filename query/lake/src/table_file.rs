//! Files of tables: Parquet with the rows of one trace.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use esatto_tables::{BATCH_ROWS, Kind, OpenTrace, ReadTables as _, Request, TableDef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use ring::digest::{Context, SHA256};

use crate::catalogue::TableFile;
use crate::layout::SCHEMA_VERSION;
use crate::{EXPORTER, Error};

/// Rows of a row group.
const ROWS_OF_GROUP: usize = 131_072;

/// Rows from which pages have statistics.
const ROWS_OF_PAGES: usize = 20_000;

/// Rows that take less space than a dictionary.
const ROWS_WITHOUT_DICTIONARY: usize = 8;

/// Columns that tell traces apart, and the facts of the trace that they show. The number of the
/// trace precedes them.
pub const TRACE_COLUMNS: [(&str, Option<&str>); 6] = [
    ("trace_file", None),
    ("trace_uuid", Some("trace_uuid")),
    ("trace_session_name", Some("unique_session_name")),
    ("trace_system_name", Some("system_name")),
    ("trace_system_release", Some("system_release")),
    ("trace_system_machine", Some("system_machine")),
];

/// The column with the number of the trace.
pub const NUMBER_COLUMN: &str = "trace_number";

/// Returns the schema of a table's files.
pub fn file_schema(table: &TableDef) -> SchemaRef {
    let own = esatto_tables::schema(table);
    let number = Arc::new(Field::new(NUMBER_COLUMN, DataType::Int64, false));
    let facts =
        TRACE_COLUMNS.iter().map(|(name, fact)| Arc::new(Field::new(*name, DataType::Utf8View, fact.is_some())));
    Arc::new(Schema::new(own.fields().iter().cloned().chain([number]).chain(facts).collect::<Vec<_>>()))
}

/// The values of the columns that tell traces apart, each as an array for a whole batch.
pub(crate) struct TraceValues(Vec<ArrayRef>);

impl TraceValues {
    pub(crate) fn new(trace: &OpenTrace, trace_file: &str) -> Self {
        let number = Int64Array::from_value(i64::from(trace.number()), BATCH_ROWS);
        let mut values: Vec<ArrayRef> = vec![Arc::new(number)];
        for (_, fact) in TRACE_COLUMNS {
            let value = fact.map_or_else(|| Some(trace_file.to_owned()), |fact| trace.metadata(fact));
            let array: StringViewArray = std::iter::repeat_n(value.as_deref(), BATCH_ROWS).collect();
            values.push(Arc::new(array));
        }
        Self(values)
    }

    fn columns(&self, rows: usize) -> impl Iterator<Item = ArrayRef> {
        self.0.iter().map(move |value| value.slice(0, rows))
    }
}

/// First and last time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times(pub(crate) Option<(i64, i64)>);

impl Times {
    pub(crate) fn add(&mut self, first: i64, last: i64) {
        let (a, b) = self.0.unwrap_or((first, last));
        self.0 = Some((a.min(first), b.max(last)));
    }

    /// Adds the times of a batch's rows.
    fn add_batch(&mut self, batch: &RecordBatch) {
        let integers = |name| batch.column_by_name(name)?.as_any().downcast_ref::<Int64Array>();
        let Some(ts) = integers("ts") else { return };
        let dur = integers("dur");
        for row in 0..batch.num_rows() {
            let start = ts.value(row);
            // An event that did not end has -1.
            let dur = dur.map_or(0, |dur| dur.value(row)).max(0);
            self.add(start, start.saturating_add(dur));
        }
    }
}

/// Writes the rows of a table into a file.
pub(crate) fn write(
    trace: &Arc<OpenTrace>,
    table: &'static TableDef,
    values: &TraceValues,
    path: &Path,
    times: &mut Times,
) -> Result<TableFile, Error> {
    let rows = trace.rows(table);
    let file = File::create_new(path).map_err(Error::io("create", path))?;
    let parquet = |error| Error::parquet("write", path.display().to_string())(error);
    let arrow = |error: ArrowError| match error {
        ArrowError::IoError(_, source) => Error::Io { action: "write", path: path.display().to_string(), source },
        error => Error::parquet("write", path.display().to_string())(ParquetError::ArrowError(error.to_string())),
    };
    let schema = file_schema(table);
    let mut writer = writer(HashedFile::new(file), table, &schema, rows).map_err(parquet)?;
    let mut request = Request::all(table);
    request.is_by_time = true;
    for batch in Arc::clone(trace).read_table(&request) {
        let batch = batch.map_err(arrow)?;
        if table.name != "clock_snapshot" {
            times.add_batch(&batch);
        }
        let columns = batch.columns().iter().cloned().chain(values.columns(batch.num_rows())).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(arrow)?;
        writer.write(&batch).map_err(parquet)?;
    }
    let file = writer.into_inner().map_err(parquet)?;
    let (size, sha256) = file.finish().map_err(Error::io("write", path))?;
    let rows = i64::try_from(rows).expect("a table has less than 2^32 rows");
    Ok(TableFile { name: table.name.to_owned(), path: String::new(), rows, size, sha256 })
}

/// Returns the bytes of a file of a table without rows.
pub(crate) fn empty_file(table: &TableDef) -> Vec<u8> {
    let schema = file_schema(table);
    let written = writer(Vec::new(), table, &schema, 0).and_then(ArrowWriter::into_inner);
    written.expect("memory can be written")
}

fn writer<W: Write + Send>(
    sink: W,
    table: &TableDef,
    schema: &SchemaRef,
    rows: usize,
) -> Result<ArrowWriter<W>, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(COMPRESSION)?))
        .set_max_row_group_row_count(Some(ROWS_OF_GROUP))
        .set_created_by(EXPORTER.to_owned())
        .set_key_value_metadata(Some(vec![
            KeyValue::new("esatto.schema_version".to_owned(), SCHEMA_VERSION.to_string()),
            KeyValue::new("esatto.table".to_owned(), table.name.to_owned()),
        ]));
    let has_pages = rows > ROWS_OF_PAGES;
    properties = properties.set_dictionary_enabled(rows > ROWS_WITHOUT_DICTIONARY);
    properties = properties.set_statistics_enabled(EnabledStatistics::Chunk).set_offset_index_disabled(!has_pages);
    for column in &table.columns {
        let path = ColumnPath::from(column.name);
        if has_pages && column.kind != Kind::Text {
            properties = properties.set_column_statistics_enabled(path.clone(), EnabledStatistics::Page);
        }
        if !matches!(column.kind, Kind::Text | Kind::Real) {
            // For values beyond the dictionary. Neighbours differ little.
            properties = properties
                .set_column_dictionary_page_size_limit(path.clone(), DICTIONARY_BYTES)
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        if column.is_key || HAVE_NO_DICTIONARY.contains(&column.name) {
            properties = properties.set_column_dictionary_enabled(path, false);
        }
    }
    if let Some(ts) = table.column_index("ts") {
        let column_idx = i32::try_from(ts).expect("there are few columns");
        let order = SortingColumn { column_idx, descending: false, nulls_first: true };
        properties = properties.set_sorting_columns(Some(vec![order]));
    }
    // The types of Arrow are not written: readers take those that they find best for the types of
    // Parquet.
    let options = ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
    ArrowWriter::try_new_with_options(sink, Arc::clone(schema), options)
}

/// Level of zstd.
const COMPRESSION: i32 = 3;

/// Bytes of different integers of a column for which a dictionary is worth its work.
const DICTIONARY_BYTES: usize = 1 << 16;

/// Columns whose values mostly differ from each other.
const HAVE_NO_DICTIONARY: [&str; 4] = ["ts", "ts_end", "parent_id", "slice_out"];

/// A file whose bytes are hashed while they are written.
struct HashedFile {
    file: BufWriter<File>,
    hash: Context,
    size: i64,
}

impl HashedFile {
    fn new(file: File) -> Self {
        Self { file: BufWriter::with_capacity(1 << 18, file), hash: Context::new(&SHA256), size: 0 }
    }

    /// Makes the bytes durable. Returns their number and their hash.
    fn finish(self) -> io::Result<(i64, String)> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        Ok((self.size, hex(self.hash.finish().as_ref())))
    }
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.size += i64::try_from(count).expect("a slice is smaller");
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
