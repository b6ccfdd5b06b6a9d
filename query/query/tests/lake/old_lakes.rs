//! Lakes that earlier versions have written are read. `v1` was written by the first version with
//! lakes, and is never written again: a new version gets a folder of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use esatto_lake::{Lake, TraceEntry};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use crate::{TRACE, check, csv, export, folder, ok, trace};

fn v1() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lake/v1")
}

#[test]
fn a_lake_of_version_1_is_read() {
    let lake = v1();
    let report = check(&lake);
    assert_eq!((report.traces, &report.problems[..]), (2, &[][..]));
    let place = lake.to_string_lossy();
    // Each table with its rows, and the sum of its ids, as they were when it was written.
    let expected = std::fs::read_to_string(lake.with_file_name("v1.csv")).expect("the expectation is there");
    let mut tables = 0;
    for line in expected.lines() {
        let (table, numbers) = line.split_once(',').expect("a table and its numbers");
        let key = esatto_tables::table(table).expect("no table goes away").column_index("id").map_or("1", |_| "id");
        let sql = format!("select count(*), sum({key}) from {table}");
        assert_eq!(csv(&[&place], &sql).trim_end(), numbers, "{table}");
        tables += 1;
    }
    assert!(tables >= 37, "{tables}");
    let sql = "select date, host, version, schema_version, losses from traces order by trace_number";
    assert_eq!(csv(&[&place], sql), "1970-01-01,build-7,1.0,1,1\nunknown,build-7,1.0,1,0\n");
}

#[test]
fn traces_are_added_to_a_lake_of_version_1() {
    let copy = folder("old").join("lake");
    copy_folder(&v1(), &copy);
    export(&[&trace(TRACE)], &copy, &[]);
    let report = check(&copy);
    assert_eq!((report.traces, &report.problems[..]), (3, &[][..]));
    let sql = "select count(*) from slice where trace_host = 'unknown'";
    assert_eq!(csv(&[&copy.to_string_lossy()], sql), "1503\n");
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder can be made");
    for entry in std::fs::read_dir(from).expect("a folder can be listed") {
        let path = entry.expect("a folder can be listed").path();
        let copy = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            copy_folder(&path, &copy);
        } else {
            std::fs::copy(&path, &copy).expect("a file can be copied");
        }
    }
}

/// Columns are only added: a file without a column has NULL there, one with a column of a later
/// version is read without it.
#[test]
fn files_with_fewer_and_with_more_columns_are_read() {
    let lake = folder("columns").join("lake");
    export(&[&trace(TRACE), &trace("official-v56-deflate.pftrace")], &lake, &["--jobs", "1"]);
    let place = lake.to_string_lossy();
    let mut entry = Lake::open(&place).and_then(|lake| lake.entries()).expect("it is a lake").remove(0);
    rewrite(&lake, &mut entry);
    let row = lake.join(format!("traces/0000000-{}.parquet", entry.sha256));
    let batch = esatto_lake::to_batch(&[entry]).expect("it is a row");
    write(&row, &batch);
    assert!(check(&lake).problems.iter().all(|problem| problem.text.contains("its content has changed")));
    let counts = "select count(*), count(category), count(name) from slice";
    let (first, second) = (csv(&[&trace(TRACE)], counts), csv(&[&trace("official-v56-deflate.pftrace")], counts));
    assert_eq!((&*first, &*second), ("1503,1503,1503\n", "5002,5002,5002\n"));
    let sql = "select trace_number, count(*), count(category), count(name) from slice group by 1 order by 1";
    assert_eq!(csv(&[&place], sql), "0,1503,0,1503\n1,5002,5002,5002\n");
    assert_eq!(csv(&[&place], "select count(*) from slice where category is null"), "1503\n");
    let text = ok(&[&place, "select * from slice limit 1", "--format", "csv"]);
    assert!(text.contains("category") && !text.contains("later_column"), "{text}");
}

/// Writes the file of slices again, without `category`, and with a column of a later version.
fn rewrite(lake: &Path, entry: &mut TraceEntry) {
    let file = entry.tables.iter_mut().find(|file| file.name == "slice").expect("there are slices");
    let path = lake.join(&file.path);
    let opened = File::open(&path).expect("a file can be opened");
    let reader = ParquetRecordBatchReader::try_new(opened, 1 << 20).expect("it is Parquet");
    let batch = reader.into_iter().next().expect("there are rows").expect("they can be read");
    let mut fields: Vec<Field> = batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    let category = fields.iter().position(|field| field.name() == "category").expect("it has the column");
    fields.remove(category);
    columns.remove(category);
    fields.insert(0, Field::new("later_column", DataType::Int64, false));
    columns.insert(0, Arc::new(Int64Array::from_value(7, batch.num_rows())));
    write(&path, &RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("they fit"));
    file.size = i64::try_from(path.metadata().expect("it is there").len()).expect("it is small");
}

fn write(path: &Path, batch: &RecordBatch) {
    let file = File::create(path).expect("a file can be written");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("it can be written");
    writer.write(batch).expect("it can be written");
    writer.close().expect("it can be written");
}
