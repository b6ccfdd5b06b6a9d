//! The queries of `tests/queries/*.sql` on DataFusion beside Perfetto's trace processor.
//!
//! `tests/queries/README.md` lists the traces and the intended differences.

mod lake;
mod peer;
mod traces;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use esatto_query::{Broken, Format, Options, Output, Session, Traces};
use futures::StreamExt as _;
use serde_json::{Map, Value};

/// Queries in whose answers numbers may be texts, with the reason.
const NUMBERS_AS_TEXT: &[(&str, &str)] = &[(
    "kernel_events: system calls",
    "'ret' is a number in some rows and a text in others; a column of DataFusion has one type",
)];

/// Queries whose answers on a trace differ, with the reason.
const DIFFERENCES: &[(&str, &str, &str)] = &[(
    "trees: descendants of a slice",
    "instants",
    "the trace processor takes the times of slices, so an instant is inside of one at the same time",
)];

/// A query of a file: its name and its text.
struct Query {
    name: String,
    sql: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads all queries. A query follows a line `-- name`, and ends with a semicolon. Those of
/// `stdlib` use the standard library of the trace processor, and may have several statements.
fn queries() -> Vec<Query> {
    let folder = root().join("tests/queries");
    let mut files: Vec<PathBuf> = [folder.clone(), folder.join("stdlib")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("the folder of queries is there"))
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
    let cell = |value: &Value| match value {
        // The trace processor has numbers for truth values.
        Value::Bool(truth) => u8::from(*truth).to_string(),
        // It prints whole floating point numbers as integers.
        value if value.is_f64() => value.as_f64().map(|number| number.to_string()).unwrap_or_default(),
        value => value.to_string(),
    };
    let line = |row: &Map<String, Value>| {
        let cells: Vec<String> = row.iter().map(|(name, value)| format!("{name}={}", cell(value))).collect();
        cells.join(" ")
    };
    rows.iter().map(line).collect()
}

fn ask(runtime: &tokio::runtime::Runtime, session: &Session, sql: &str) -> Result<Vec<Map<String, Value>>, String> {
    let statements = session.prepare(sql).map_err(|error| error.to_string())?;
    let rows = runtime.block_on(async {
        let mut answer = None;
        for statement in &statements {
            answer = session.run(statement).await.map_err(|error| error.to_string())?;
        }
        let mut answer = answer.ok_or("no rows")?;
        let mut output = Output::new(Vec::new(), Format::Json, &answer.schema).map_err(|error| error.to_string())?;
        while let Some(batch) = answer.rows.next().await {
            let batch = batch.map_err(|error| session.sql_error(&error).to_string())?;
            output.write(&batch).map_err(|error| error.to_string())?;
        }
        output.finish().map_err(|error| error.to_string())
    })?;
    serde_json::from_slice(&rows).map_err(|error| error.to_string())
}

/// Compares the answers to all queries on a trace. Returns the differences, and the queries that
/// have rows.
fn compare(trace: &traces::Trace, queries: &[Query], threads: usize) -> (Vec<String>, Vec<String>) {
    // The trace processor crashes if it is asked about slices that do not exist.
    let file = std::fs::File::open(&trace.path).expect("a trace can be read");
    let slices = esatto_trace::Engine::read(file).tables.slice.depth.len();
    let has_tree = |query: &&Query| slices > 12 || !query.name.starts_with("trees: ");
    let is_equal = |query: &&Query| !DIFFERENCES.iter().any(|(name, of, _)| query.name == *name && trace.name == *of);
    let queries: Vec<&Query> = queries.iter().filter(has_tree).filter(is_equal).collect();
    let sql: String = queries.iter().map(|query| format!("{};\n", query.sql)).collect();
    let expected = peer::maps(&trace.path, &sql);
    assert_eq!(expected.len(), queries.len(), "each query returns rows: {}", trace.name);
    let list = Traces::new(vec![trace.path.clone()], Broken::Keep, 1 << 30).expect("one trace");
    let mut options = Options::default();
    options.threads = threads;
    let session = Session::new(list, &options).expect("a session");
    // It gets only statements for which the trace is read without kernel events.
    let list = Traces::new(vec![trace.path.clone()], Broken::Keep, 1 << 30).expect("one trace");
    let part = Session::new(list, &options).expect("a session");
    let mut parts = 0;
    // Plans are deep in a build without optimization.
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (mut differences, mut answered) = (Vec::new(), Vec::new());
    for (query, expected) in queries.iter().zip(&expected) {
        let place = format!("{} on {}", query.name, trace.name);
        if !expected.is_empty() {
            answered.push(query.name.clone());
        }
        let is_loose = NUMBERS_AS_TEXT.iter().any(|(name, _)| query.name == *name);
        let lines = |rows: &[Map<String, Value>]| {
            let lines = lines(rows);
            if is_loose { lines.into_iter().map(|line| line.replace('"', "")).collect() } else { lines }
        };
        let expected = lines(expected);
        let found = match ask(&runtime, &session, &query.sql) {
            Ok(rows) => lines(&rows),
            Err(error) => {
                differences.push(format!("{place}: {error}"));
                continue;
            }
        };
        if part.prepare(&query.sql).is_ok_and(|statements| part.expect(&statements)) {
            parts += 1;
            let of_part = ask(&runtime, &part, &query.sql).map(|rows| lines(&rows));
            let sorted = |lines: &Vec<String>| lines.iter().cloned().collect::<std::collections::BTreeSet<String>>();
            if of_part.as_ref().map(sorted) != Ok(sorted(&found)) {
                differences.push(format!("{place}: without kernel events: {of_part:?}\n  with them: {found:?}"));
            }
        }
        // Rows with equal keys of ORDER BY have any order.
        let sorted = |lines: &[String]| {
            let mut lines = lines.to_vec();
            lines.sort();
            lines
        };
        if found != expected && sorted(&found) != sorted(&expected) {
            let (found, expected) = (sorted(&found), sorted(&expected));
            let at = found.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
            differences.push(format!(
                "{place}: {} rows, expected {}; row {at}:\n  found    {}\n  expected {}",
                found.len(),
                expected.len(),
                found.get(at).map_or("nothing", String::as_str),
                expected.get(at).map_or("nothing", String::as_str),
            ));
        }
    }
    assert!(parts > queries.len() / 4, "{parts} of {} queries need no kernel events", queries.len());
    (differences, answered)
}

fn compare_all(threads: usize) {
    let queries: Vec<Query> = queries();
    assert!(queries.len() >= 150, "{} queries", queries.len());
    let is_query = |name: &str| queries.iter().any(|query| query.name == name);
    assert!(NUMBERS_AS_TEXT.iter().all(|(name, _)| is_query(name)), "each stated difference is a query");
    assert!(DIFFERENCES.iter().all(|(name, ..)| is_query(name)), "each stated difference is a query");
    let found = Mutex::new((Vec::new(), HashSet::new()));
    let traces = traces::all();
    std::thread::scope(|scope| {
        for part in traces.chunks(traces.len().div_ceil(2)) {
            let (queries, found) = (&queries, &found);
            let work = move || {
                for trace in part {
                    let (differences, answered) = compare(trace, queries, threads);
                    let mut found = found.lock().expect("no thread panics");
                    found.0.extend(differences);
                    found.1.extend(answered);
                }
            };
            std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, work).expect("a thread");
        }
    });
    let (differences, answered) = found.into_inner().expect("no thread panics");
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
    // `esatto-tests` checks that the others have rows: it has more traces.
    let is_ours = |query: &&Query| query.name.starts_with("modules: ") || query.name.starts_with("trees: ");
    let silent: Vec<&str> =
        queries.iter().filter(is_ours).map(|query| &*query.name).filter(|name| !answered.contains(*name)).collect();
    assert!(silent.is_empty(), "queries without rows in any trace: {silent:?}");
}

#[test]
fn all_queries_give_the_rows_of_the_trace_processor() {
    peer::skip(|| {
        peer::require()?;
        compare_all(1);
        Ok(())
    });
}
