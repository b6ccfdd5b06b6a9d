//! Forms of the rows, and the file that they are written to.

use std::sync::Arc;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::Int64Type;
use arrow::ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::{TRACE, error, folder, rows, run, trace};

const SQL: &str = "select name, count(*) as n, null as nothing from slice group by name order by name";

#[test]
fn a_table_is_aligned() {
    let text = rows(&[&trace(TRACE), SQL]);
    let expected = "\
name       n  nothing
-------  ---  -------
details  300  NULL
done       3  NULL
draw     300  NULL
frame    300  NULL
tick     300  NULL
upload   300  NULL
";
    assert_eq!(text, expected);
}

#[test]
fn csv_and_json_have_all_rows() {
    let text = rows(&[&trace(TRACE), SQL, "--format", "csv"]);
    assert!(text.starts_with("name,n,nothing\ndetails,300,\ndone,3,\ndraw,300,\n"), "{text}");
    let text = rows(&[&trace(TRACE), SQL, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(json[0], serde_json::json!({ "name": "details", "n": 300, "nothing": null }));
    assert_eq!(json.as_array().map(Vec::len), Some(6));
    let text = rows(&[&trace(TRACE), SQL, "--format", "jsonl"]);
    assert_eq!(text.lines().count(), 6);
    assert_eq!(text.lines().next(), Some(r#"{"name":"details","n":300,"nothing":null}"#));
}

#[test]
fn no_rows_are_still_a_result() {
    let sql = "select name, dur from slice where name = 'none'";
    assert_eq!(rows(&[&trace(TRACE), sql, "--format", "csv"]), "name,dur\n");
    assert_eq!(rows(&[&trace(TRACE), sql, "--format", "json"]), "[]\n");
    assert_eq!(rows(&[&trace(TRACE), sql, "--format", "jsonl"]), "");
    assert_eq!(rows(&[&trace(TRACE), sql]), "name  dur\n----  ---\n");
}

fn check(batches: &[RecordBatch]) {
    let all = arrow::compute::concat_batches(&batches[0].schema(), batches).expect("the batches have one schema");
    assert_eq!(all.num_rows(), 1503);
    let names: Vec<Arc<str>> = all.schema().fields().iter().map(|field| field.name().as_str().into()).collect();
    assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["id", "ts", "name"]);
    assert_eq!(all.column(0).as_primitive::<Int64Type>().values()[..3], [0, 1, 2]);
    assert_eq!(all.column(2).as_string_view().value(0), "frame");
}

#[test]
fn files_of_parquet_and_arrow_can_be_read() {
    let folder = folder("formats");
    let path = |name: &str| folder.join(name);
    let sql = "select id, ts, name from slice order by id";
    for name in ["rows.parquet", "rows.arrow"] {
        let output = path(name);
        assert_eq!(rows(&[&trace(TRACE), sql, "-o", &output.to_string_lossy()]), "");
    }
    let file = std::fs::File::open(path("rows.parquet")).expect("there is a file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|reader| reader.build()).expect("Parquet");
    check(&reader.map(|batch| batch.expect("a batch")).collect::<Vec<_>>());
    let file = std::fs::File::open(path("rows.arrow")).expect("there is a file");
    let reader = StreamReader::try_new(file, None).expect("Arrow");
    check(&reader.map(|batch| batch.expect("a batch")).collect::<Vec<_>>());
}

#[test]
fn a_file_appears_only_when_it_is_whole() {
    let folder = folder("whole");
    let path = folder.join("rows.csv");
    std::fs::write(&path, "before").expect("a file can be written");
    let message = error(&[&trace(TRACE), "select nmae from slice", "-o", &path.to_string_lossy()]);
    assert!(message.contains("nmae"), "{message}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is still there"), "before");
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "nothing is left over");
    let message = error(&[&trace(TRACE), "select 1", "-o", "/nonexistent/rows.csv"]);
    assert!(message.contains("cannot write /nonexistent/rows.csv"), "{message}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut command = crate::command(&[&trace(TRACE), "select a.id, b.id from slice a, slice b", "--format", "jsonl"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("the program runs");
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_file_has_one_result_unless_the_format_has_room_for_several() {
    let two = "select 1 as a; select 2 as b";
    assert_eq!(rows(&[&trace(TRACE), two, "--format", "csv"]), "a\n1\n\nb\n2\n");
    assert_eq!(rows(&[&trace(TRACE), two, "--format", "json"]), "[{\"a\":1}]\n[{\"b\":2}]\n");
    let folder = folder("several");
    let path = folder.join("rows.parquet");
    let output = run(&[&trace(TRACE), two, "-o", &path.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(crate::stderr(&output).contains("this format can have one result"), "{}", crate::stderr(&output));
    assert!(!path.exists());
}
