//! The engine of `esatto-trace` beside Perfetto's trace processor: the same SQL on the same traces.
//!
//! The queries are in `tests/queries/*.sql`; README.md beside them lists the intended differences.

mod database;
mod kernel_track_events;
mod namespaces;
mod recordings;
mod traces;

use traces::Trace;

use esatto_tests::{Peer, skip, tp};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// A query of a file: its name and its text.
struct Query {
    name: String,
    sql: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("queries")
}

/// Reads all queries of a folder. A query follows a line `-- name`, and ends with a semicolon.
fn queries(folder: &Path) -> Vec<Query> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of queries is there")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .collect();
    files.sort();
    let mut queries = Vec::new();
    for file in files {
        let stem = file.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).expect("a query can be read");
        for part in text.split(";\n").filter(|part| !part.trim().is_empty()) {
            let (comment, sql) = part.trim().split_once('\n').expect("a name and a query");
            let name = comment.strip_prefix("-- ").expect("a query has a name");
            queries.push(Query { name: format!("{stem}: {name}"), sql: sql.to_owned() });
        }
    }
    queries
}

/// Returns rows as text, one a line.
fn lines(rows: &[Map<String, Value>]) -> Vec<String> {
    // tp prints whole floating point numbers as integers.
    let cell = |value: &Value| match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) => format!("{number}"),
        None => value.to_string(),
    };
    let line = |row: &Map<String, Value>| {
        let cells: Vec<String> = row.iter().map(|(name, value)| format!("{name}={}", cell(value))).collect();
        cells.join(" ")
    };
    rows.iter().map(line).collect()
}

/// Asks all queries about traces. Returns whether each one had rows in any of them.
fn compare(traces: &[Trace]) -> Vec<bool> {
    ask(&queries(&folder()), traces)
}

/// Asks queries about traces. Returns whether each one had rows in any of them.
fn ask(queries: &[Query], traces: &[Trace]) -> Vec<bool> {
    let sql: String = queries.iter().map(|query| format!("{};\n", query.sql)).collect();
    let mut failures = Vec::new();
    let mut answered = vec![false; queries.len()];
    for trace in traces {
        let expected = tp::maps(&trace.path, &sql);
        assert_eq!(expected.len(), queries.len(), "each query returns rows: {}", trace.name);
        let bytes = std::fs::File::open(&trace.path).expect("a trace can be read");
        let engine = esatto_trace::Engine::read(bytes);
        assert!(engine.errors.is_empty(), "{}: {:?}", trace.name, engine.errors);
        let database = database::Database::new(&engine.tables);
        for ((query, expected), answered) in queries.iter().zip(&expected).zip(&mut answered) {
            let (found, expected) = (lines(&database.rows(&query.sql)), lines(expected));
            *answered |= !expected.is_empty();
            if found != expected {
                let at = found.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
                failures.push(format!(
                    "{} on {}: {} rows, expected {}; row {at}:\n  found    {}\n  expected {}",
                    query.name,
                    trace.name,
                    found.len(),
                    expected.len(),
                    found.get(at).map_or("nothing", String::as_str),
                    expected.get(at).map_or("nothing", String::as_str),
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    answered
}

#[test]
fn all_queries_give_the_rows_of_the_trace_processor() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let queries = queries(&folder());
        assert!(queries.len() >= 80, "{} queries", queries.len());
        let answered = compare(&traces::all());
        let silent: Vec<&str> =
            queries.iter().zip(answered).filter(|(_, answered)| !answered).map(|(query, _)| &*query.name).collect();
        assert!(silent.is_empty(), "queries without rows in any trace: {silent:?}");
        Ok(())
    });
}
