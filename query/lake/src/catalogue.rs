//! The catalogue: a row for each trace of a lake.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampNanosecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema, SchemaRef, TimeUnit, TimestampNanosecondType};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::layout::{PartitionKey, check_version};
use crate::{EXPORTER, Error};

/// A trace of a lake: a row of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TraceEntry {
    /// The number of the trace in the lake.
    pub trace_number: i64,
    /// The hash of the trace's file.
    pub sha256: String,
    /// The file, as it was named for the export.
    pub trace_file: String,
    /// The bytes of the trace's file.
    pub size: i64,
    /// The first time in the tables, on the trace clock.
    pub start_ts: Option<i64>,
    /// The last time.
    pub end_ts: Option<i64>,
    /// The first time, in nanoseconds since 1970.
    pub start_time: Option<i64>,
    /// The last time.
    pub end_time: Option<i64>,
    /// The value of the partition key.
    pub date: String,
    /// The value of the partition key.
    pub host: String,
    /// The value of the partition key.
    pub version: String,
    /// The UUID of the trace.
    pub trace_uuid: Option<String>,
    /// The name of the session.
    pub session_name: Option<String>,
    /// The operating system.
    pub system_name: Option<String>,
    /// Its release.
    pub system_release: Option<String>,
    /// Its kind of machine.
    pub system_machine: Option<String>,
    /// Packets and events that were lost.
    pub losses: i64,
    /// Mistakes in the file.
    pub errors: i64,
    /// The first mistake.
    pub damage: Option<String>,
    /// The rows of all tables.
    pub rows: i64,
    /// The bytes of all files of the trace.
    pub bytes: i64,
    /// The version of the schema of the files.
    pub schema_version: i64,
    /// The program that wrote them.
    pub exporter: String,
    /// The time of the export, in nanoseconds since 1970.
    pub exported_at: i64,
    /// The files.
    pub tables: Vec<TableFile>,
}

/// A file of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TableFile {
    /// The table.
    pub name: String,
    /// The path in the lake.
    pub path: String,
    /// The number of rows.
    pub rows: i64,
    /// The number of bytes.
    pub size: i64,
    /// The hash of the file.
    pub sha256: String,
}

impl TableFile {
    /// True if the path is one of the table's folder. A foreign catalogue can name any path.
    fn is_inside(&self) -> bool {
        let mut parts = self.path.split('/');
        let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
        parts.next() == Some(&self.name)
            && is_plain(&self.name)
            && !self.name.starts_with('_')
            && self.path.ends_with(".parquet")
            && parts.all(is_plain)
    }
}

impl TraceEntry {
    /// Returns the value of a partition key.
    pub fn partition_value(&self, key: PartitionKey) -> &str {
        match key {
            PartitionKey::Date => &self.date,
            PartitionKey::Host => &self.host,
            PartitionKey::Version => &self.version,
        }
    }

    /// Returns the row as a file.
    pub(crate) fn to_parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let batch =
            to_batch(std::slice::from_ref(self)).map_err(|error| ParquetError::ArrowError(error.to_string()))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_offset_index_disabled(true)
            .set_statistics_enabled(parquet::file::properties::EnabledStatistics::Chunk)
            .set_created_by(EXPORTER.to_owned())
            .build();
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options)?;
        writer.write(&batch)?;
        writer.into_inner()
    }

    /// Reads the row of a file.
    pub(crate) fn parse(bytes: Bytes, place: &str) -> Result<Self, Error> {
        let bad = |why: String| Error::layout(format!("{place}: it is no row of a catalogue: {why}"));
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|error| bad(error.to_string()))?;
        let rows = reader.metadata().file_metadata().num_rows();
        if rows != 1 {
            return Err(bad(format!("it has {rows} rows")));
        }
        let mut reader = reader.build().map_err(|error| bad(error.to_string()))?;
        let batch = reader.next().ok_or_else(|| bad("it has no rows".to_owned()))?;
        let batch = batch.map_err(|error| bad(error.to_string()))?;
        // The version first: the columns of a later one may differ.
        let version = Columns(&batch).integer("schema_version").ok_or_else(|| bad("it has no version".to_owned()))?;
        check_version(version, place)?;
        let entry = Columns(&batch).entry();
        let entry = entry.ok_or_else(|| bad("a column is missing, or has another type".to_owned()))?;
        match entry.tables.iter().find(|file| !file.is_inside()) {
            Some(file) => Err(bad(format!("'{}' is no path of a file of '{}'", file.path, file.name))),
            None => Ok(entry),
        }
    }
}

fn text(name: &str, is_nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, is_nullable)
}

fn integer(name: &str, is_nullable: bool) -> Field {
    Field::new(name, DataType::Int64, is_nullable)
}

fn time(name: &str, is_nullable: bool) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), is_nullable)
}

fn file_fields() -> Fields {
    let fields = ["name", "path", "rows", "size", "sha256"].map(|name| match name {
        "rows" | "size" => integer(name, false),
        _ => text(name, false),
    });
    Fields::from(fields.to_vec())
}

/// Returns the schema of the catalogue.
pub fn catalogue_schema() -> SchemaRef {
    let files = Field::new("element", DataType::Struct(file_fields()), false);
    Arc::new(Schema::new(vec![
        integer("trace_number", false),
        text("sha256", false),
        text("trace_file", false),
        integer("size", false),
        integer("start_ts", true),
        integer("end_ts", true),
        time("start_time", true),
        time("end_time", true),
        text("date", false),
        text("host", false),
        text("version", false),
        text("trace_uuid", true),
        text("session_name", true),
        text("system_name", true),
        text("system_release", true),
        text("system_machine", true),
        integer("losses", false),
        integer("errors", false),
        text("damage", true),
        integer("rows", false),
        integer("bytes", false),
        integer("schema_version", false),
        text("exporter", false),
        time("exported_at", false),
        Field::new("tables", DataType::List(Arc::new(files)), false),
    ]))
}

/// Returns entries as rows.
///
/// # Errors
///
/// There are more files than a list can have.
pub fn to_batch(entries: &[TraceEntry]) -> Result<RecordBatch, arrow::error::ArrowError> {
    let integers = |value: fn(&TraceEntry) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(entries.iter().map(value)))
    };
    let optional = |value: fn(&TraceEntry) -> Option<i64>| -> ArrayRef {
        Arc::new(entries.iter().map(value).collect::<Int64Array>())
    };
    let times = |value: fn(&TraceEntry) -> Option<i64>| -> ArrayRef {
        let times: TimestampNanosecondArray = entries.iter().map(value).collect();
        Arc::new(times.with_timezone("UTC"))
    };
    let texts = |value: fn(&TraceEntry) -> Option<&str>| -> ArrayRef {
        Arc::new(entries.iter().map(value).collect::<StringArray>())
    };
    let files: Vec<&TableFile> = entries.iter().flat_map(|entry| &entry.tables).collect();
    let file_texts = |value: fn(&TableFile) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(files.iter().map(|file| value(file))))
    };
    let file_integers = |value: fn(&TableFile) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(files.iter().map(|file| value(file))))
    };
    let columns = vec![
        file_texts(|file| &file.name),
        file_texts(|file| &file.path),
        file_integers(|file| file.rows),
        file_integers(|file| file.size),
        file_texts(|file| &file.sha256),
    ];
    let structs = StructArray::try_new(file_fields(), columns, None)?;
    let offsets = OffsetBuffer::from_lengths(entries.iter().map(|entry| entry.tables.len()));
    let element = Arc::new(Field::new("element", DataType::Struct(file_fields()), false));
    let lists = ListArray::try_new(element, offsets, Arc::new(structs), None)?;
    RecordBatch::try_new(
        catalogue_schema(),
        vec![
            integers(|entry| entry.trace_number),
            texts(|entry| Some(&entry.sha256)),
            texts(|entry| Some(&entry.trace_file)),
            integers(|entry| entry.size),
            optional(|entry| entry.start_ts),
            optional(|entry| entry.end_ts),
            times(|entry| entry.start_time),
            times(|entry| entry.end_time),
            texts(|entry| Some(&entry.date)),
            texts(|entry| Some(&entry.host)),
            texts(|entry| Some(&entry.version)),
            texts(|entry| entry.trace_uuid.as_deref()),
            texts(|entry| entry.session_name.as_deref()),
            texts(|entry| entry.system_name.as_deref()),
            texts(|entry| entry.system_release.as_deref()),
            texts(|entry| entry.system_machine.as_deref()),
            integers(|entry| entry.losses),
            integers(|entry| entry.errors),
            texts(|entry| entry.damage.as_deref()),
            integers(|entry| entry.rows),
            integers(|entry| entry.bytes),
            integers(|entry| entry.schema_version),
            texts(|entry| Some(&entry.exporter)),
            times(|entry| Some(entry.exported_at)),
            Arc::new(lists),
        ],
    )
}

/// The columns of the only row of a catalogue's file.
struct Columns<'a>(&'a RecordBatch);

impl Columns<'_> {
    fn column(&self, name: &str, data_type: &DataType) -> Option<ArrayRef> {
        cast(self.0.column_by_name(name)?, data_type).ok()
    }

    fn optional_integer(&self, name: &str) -> Option<Option<i64>> {
        let column = self.column(name, &DataType::Int64)?;
        Some(column.is_valid(0).then(|| column.as_primitive::<Int64Type>().value(0)))
    }

    fn integer(&self, name: &str) -> Option<i64> {
        self.optional_integer(name)?
    }

    fn time(&self, name: &str) -> Option<Option<i64>> {
        let column = self.column(name, time(name, true).data_type())?;
        Some(column.is_valid(0).then(|| column.as_primitive::<TimestampNanosecondType>().value(0)))
    }

    fn optional_text(&self, name: &str) -> Option<Option<String>> {
        let column = self.column(name, &DataType::Utf8)?;
        Some(column.is_valid(0).then(|| column.as_string::<i32>().value(0).to_owned()))
    }

    fn text(&self, name: &str) -> Option<String> {
        self.optional_text(name)?
    }

    fn files(&self) -> Option<Vec<TableFile>> {
        let lists = self.0.column_by_name("tables")?.as_list_opt::<i32>()?;
        if !lists.is_valid(0) {
            return None;
        }
        let files = lists.value(0);
        let files = files.as_struct_opt()?;
        let texts = |name| -> Option<StringArray> {
            Some(cast(files.column_by_name(name)?, &DataType::Utf8).ok()?.as_string::<i32>().clone())
        };
        let integers = |name| files.column_by_name(name)?.as_primitive_opt::<Int64Type>().cloned();
        let (names, paths, hashes) = (texts("name")?, texts("path")?, texts("sha256")?);
        let (rows, sizes) = (integers("rows")?, integers("size")?);
        let file = |at| TableFile {
            name: names.value(at).to_owned(),
            path: paths.value(at).to_owned(),
            rows: rows.value(at),
            size: sizes.value(at),
            sha256: hashes.value(at).to_owned(),
        };
        Some((0..files.len()).map(file).collect())
    }

    fn entry(&self) -> Option<TraceEntry> {
        Some(TraceEntry {
            trace_number: self.integer("trace_number")?,
            sha256: self.text("sha256")?,
            trace_file: self.text("trace_file")?,
            size: self.integer("size")?,
            start_ts: self.optional_integer("start_ts")?,
            end_ts: self.optional_integer("end_ts")?,
            start_time: self.time("start_time")?,
            end_time: self.time("end_time")?,
            date: self.text("date")?,
            host: self.text("host")?,
            version: self.text("version")?,
            trace_uuid: self.optional_text("trace_uuid")?,
            session_name: self.optional_text("session_name")?,
            system_name: self.optional_text("system_name")?,
            system_release: self.optional_text("system_release")?,
            system_machine: self.optional_text("system_machine")?,
            losses: self.integer("losses")?,
            errors: self.integer("errors")?,
            damage: self.optional_text("damage")?,
            rows: self.integer("rows")?,
            bytes: self.integer("bytes")?,
            schema_version: self.integer("schema_version")?,
            exporter: self.text("exporter")?,
            exported_at: self.time("exported_at")?.unwrap_or_default(),
            tables: self.files()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> TraceEntry {
        let file = |name: &str| TableFile {
            name: name.to_owned(),
            path: format!("{name}/x.parquet"),
            rows: 3,
            size: 4,
            sha256: "ab".to_owned(),
        };
        TraceEntry {
            trace_number: 7,
            sha256: "cd".to_owned(),
            start_ts: Some(-1),
            start_time: Some(5),
            host: "ü".to_owned(),
            damage: Some("torn".to_owned()),
            schema_version: 1,
            tables: vec![file("slice"), file("thread")],
            ..TraceEntry::default()
        }
    }

    #[test]
    fn a_row_survives_its_file() {
        let bytes = entry().to_parquet().expect("memory can be written");
        assert_eq!(TraceEntry::parse(bytes.into(), "x").expect("it is a row"), entry());
    }

    #[test]
    fn paths_outside_of_the_lake_are_refused() {
        for path in ["../x.parquet", "slice/../../x.parquet", "/etc/x.parquet", "thread/x.parquet", "slice//x.parquet"]
        {
            let mut entry = entry();
            path.clone_into(&mut entry.tables[0].path);
            let bytes = entry.to_parquet().expect("memory can be written");
            let error = TraceEntry::parse(bytes.into(), "x").expect_err("it is outside").to_string();
            assert!(error.contains("is no path of a file of 'slice'"), "{error}");
        }
    }

    #[test]
    fn rows_of_later_versions_and_other_files_are_refused() {
        let later = TraceEntry { schema_version: 2, ..entry() };
        let bytes = later.to_parquet().expect("memory can be written");
        let error = TraceEntry::parse(bytes.into(), "x").expect_err("it is later").to_string();
        assert!(error.contains("version 2") && error.contains("newer Esatto"), "{error}");
        let error = TraceEntry::parse(Bytes::from_static(b"no parquet"), "x").expect_err("it is none").to_string();
        assert!(error.starts_with("x: it is no row of a catalogue"), "{error}");
    }
}
