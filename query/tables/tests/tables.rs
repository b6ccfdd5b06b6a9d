//! The tables of checked-in traces, and the page that describes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;
use esatto_tables::{ArgTypes, OpenTrace, ReadTables as _, Request, schema, table, tables};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn trace(name: &str, number: u32) -> Arc<OpenTrace> {
    let path = root().join("tests/traces").join(name);
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Arc::new(OpenTrace::read(file, number))
}

fn read(trace: &Arc<OpenTrace>, request: &Request) -> RecordBatch {
    let batches: Vec<RecordBatch> =
        Arc::clone(trace).read_table(request).map(|batch| batch.expect("a batch can be built")).collect();
    let schema = Arc::new(schema(request.table).project(&request.columns).expect("the columns exist"));
    concat_batches(&schema, &batches).expect("the batches have the schema")
}

fn ints(batch: &RecordBatch, column: &str) -> Vec<i64> {
    let column = batch.column_by_name(column).unwrap_or_else(|| panic!("no column {column}"));
    column.as_primitive::<Int64Type>().values().to_vec()
}

const TRACES: [&str; 3] = [
    "official-v56-track-events.pftrace",
    "official-v56-long-two-buffers.pftrace",
    "official-v56-process-and-sys-stats.pftrace",
];

#[test]
fn every_table_has_its_schema_and_its_rows() {
    for name in TRACES {
        let trace = trace(name, 0);
        for table in tables() {
            let batch = read(&trace, &Request::all(table));
            assert_eq!(batch.num_rows(), trace.rows(table), "{} of {name}", table.name);
            for (column, array) in table.columns.iter().zip(batch.columns()) {
                assert!(column.is_nullable || array.null_count() == 0, "{}.{} of {name}", table.name, column.name);
            }
        }
    }
}

#[test]
fn ids_lead_to_rows() {
    for name in TRACES {
        let trace = trace(name, 3);
        for table in tables() {
            let batch = read(&trace, &Request::all(table));
            for column in &table.columns {
                let Some((to, key)) = column.refers_to else { continue };
                let to = esatto_tables::table(to).unwrap_or_else(|| panic!("{}.{}: no {to}", table.name, column.name));
                let keys: std::collections::HashSet<i64> =
                    ints(&read(&trace, &Request::all(to)), key).into_iter().collect();
                let ids = batch.column_by_name(column.name).expect("a column").as_primitive::<Int64Type>();
                let lost = ids.iter().flatten().find(|id| !keys.contains(id));
                assert_eq!(lost, None, "{}.{} of {name}", table.name, column.name);
            }
        }
    }
}

#[test]
fn ids_of_several_traces_differ() {
    let slices = table("slice").expect("there are slices");
    let (first, second) = (trace(TRACES[0], 0), trace(TRACES[0], 1));
    let (first, second) = (read(&first, &Request::all(slices)), read(&second, &Request::all(slices)));
    assert_eq!(ints(&first, "id")[..3], [0, 1, 2]);
    assert_eq!(ints(&second, "id")[..2], [1 << 32, (1 << 32) + 1]);
    assert_eq!(ints(&first, "ts"), ints(&second, "ts"));
    assert_eq!(OpenTrace::number_of_id(ints(&second, "track_id")[0]), Some(1));
}

#[test]
fn columns_times_and_parts_can_be_chosen() {
    let trace = trace(TRACES[0], 0);
    let slices = table("SLICE").expect("names of tables have no case");
    let all = read(&trace, &Request::all(slices));
    let ts = ints(&all, "ts");
    let mut request = Request::all(slices);
    request.columns = vec![slices.column_index("name").unwrap(), slices.column_index("ts").unwrap()];
    request.times = ts[10]..=ts[20];
    let some = read(&trace, &request);
    assert_eq!(some.schema().fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["name", "ts"]);
    let expected: Vec<i64> = ts.iter().copied().filter(|own| request.times.contains(own)).collect();
    assert!(expected.len() >= 11 && expected.len() < ts.len(), "{} of {}", expected.len(), ts.len());
    assert_eq!(ints(&some, "ts"), expected);
    let mut parts = Vec::new();
    for part in 0..3 {
        let mut request = Request::all(slices);
        request.part = (part, 3);
        parts.extend(ints(&read(&trace, &request), "id"));
    }
    assert_eq!(parts, ints(&all, "id"));
    let mut request = Request::all(slices);
    request.columns = vec![];
    assert_eq!(read(&trace, &request).num_rows(), all.num_rows());
}

#[test]
fn arguments_are_found_by_set_and_key() {
    let trace = trace(TRACES[0], 2);
    let batch = read(&trace, &Request::all(table("args").expect("there are arguments")));
    let (sets, keys, types) = (ints(&batch, "arg_set_id"), batch.column_by_name("key").unwrap(), trace.arg_types());
    let keys = keys.as_string_view();
    assert!(batch.num_rows() > 10, "{} arguments", batch.num_rows());
    for (row, set) in sets.iter().enumerate() {
        let found = trace.arg(*set, keys.value(row));
        assert!(found.is_some(), "argument {row}: {} of {}", keys.value(row), set);
        assert_ne!(types.get(keys.value(row)).copied(), Some(ArgTypes::default()));
    }
    assert_eq!(trace.arg(sets[0], "no such key"), None);
    assert_eq!(trace.arg(sets[0] - (2 << 32), keys.value(0)), None, "an id of another trace");
    assert_eq!(trace.arg(i64::MIN, keys.value(0)), None);
    assert_eq!(trace.arg(i64::MAX, keys.value(0)), None);
}

#[test]
fn the_page_describes_the_tables() {
    let path = root().join("docs/reference/tables.md");
    let page = esatto_tables::page();
    if std::env::var_os("ESATTO_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page, "docs/reference/tables.md is not what the tables say; ESATTO_BLESS=1 writes it");
}
