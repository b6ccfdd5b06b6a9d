//! Stock readers of Parquet: the same queries give equal rows in DuckDB, pyarrow and
//! `esatto query`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use esatto_lake::Lake;
use serde_json::Value;

use crate::peer::skip;
use crate::{all_traces, export, folder, ok};

/// The folder of DuckDB, pyarrow and pandas. In CI they must be there.
pub(crate) fn require() -> Result<PathBuf, String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let peers = std::env::var_os("PEERS_DIR").map_or_else(|| home.join(".cache/perfetto-peers"), PathBuf::from);
    if peers.join(".readers").exists() {
        return Ok(peers.join("readers"));
    }
    let ci = std::env::var("CI").unwrap_or_default();
    let reason = "no peers: run 'cargo xtask peers readers'".to_owned();
    assert!(ci.is_empty() || ci == "false" || ci == "0", "{reason}");
    Err(reason)
}

/// Runs a program of Python with the readers, and returns its output.
pub(crate) fn python(readers: &Path, program: &str, args: &[&str]) -> String {
    let mut child = Command::new("python3")
        .arg("-")
        .args(args)
        .env("PYTHONPATH", readers)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    child.stdin.take().expect("stdin is piped").write_all(program.as_bytes()).expect("it reads its program");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

/// Defines `views`, the tables of a lake in DuckDB.
const VIEWS: &str = r#"
import duckdb, json, os, sys
lake = sys.argv[1]
duckdb.sql("set timezone = 'UTC'")
for table in sorted(os.listdir(lake)):
    if os.path.isdir(f"{lake}/{table}") and not table.startswith("_"):
        duckdb.sql(f"""create view {table} as select * from read_parquet('{lake}/{table}/**/*.parquet',
            hive_partitioning = true, hive_types_autocast = false, union_by_name = true)""")

def show(rows):
    print(json.dumps(rows))
"#;

/// Queries that DuckDB and `esatto query` understand.
const QUERIES: &[&str] = &[
    "select count(*) as n from slice",
    "select trace_file, count(*) as n, min(ts) as first, max(ts) as last from slice group by trace_file",
    "select name, count(*) as n, cast(sum(dur) as bigint) as total from slice group by name",
    "select s.name, t.name as thread, count(*) as n from slice s join thread_track tt on s.track_id = tt.id
        join thread t on tt.utid = t.utid group by s.name, t.name",
    "select p.name, p.pid, t.tid, t.name as thread from thread t left join process p on t.upid = p.upid",
    "select a.key, count(*) as n, cast(sum(a.int_value) as bigint) as total from slice s
        join args a on s.arg_set_id = a.arg_set_id group by a.key",
    "select t.name, count(*) as n, sum(c.value) as total from counter c join counter_track t on c.track_id = t.id
        group by t.name",
    "select cpu, end_state, count(*) as n, cast(sum(dur) as bigint) as total from sched group by cpu, end_state",
    "select state, io_wait, count(*) as n from thread_state group by state, io_wait",
    "select name, trace_number, count(*) as n from ftrace_event group by name, trace_number",
    "select o.name as a, i.name as b from flow f join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id",
    "select name, str_value, int_value, trace_file from metadata",
    "select trace_date, trace_host, count(*) as n from slice group by trace_date, trace_host",
    "select count(*) as n from slice where trace_date >= '2026-01-01' and trace_host <> 'unknown'",
    "select id, ts, row_number() over (partition by track_id order by ts, id) as place from slice where depth = 0",
    "select trace_number, trace_file, sha256, size, start_ts, date, host, losses, errors, bytes from traces",
    "select count(*) as n from slice where trace_number in (select trace_number from traces where losses = 0)",
];

/// Rows in an order that does not depend on the engine.
fn sorted(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().expect("it is a list of rows");
    let mut rows: Vec<String> = rows.iter().map(normal).collect();
    rows.sort();
    rows
}

/// A row with its numbers in one form, and its columns in one order.
fn normal(row: &Value) -> String {
    let cells: BTreeMap<&String, String> =
        row.as_object().expect("a row").iter().map(|(name, value)| (name, cell(value))).collect();
    format!("{cells:?}")
}

fn cell(value: &Value) -> String {
    match value {
        // 3 and 3.0 are equal, and sums of floating point numbers depend on the order.
        Value::Number(number) if number.is_f64() => format!("{:.9e}", number.as_f64().expect("a number")),
        Value::Number(number) if number.as_i64().is_some_and(|whole| whole.unsigned_abs() < 1_000_000_000) => {
            format!("{:.9e}", number.as_f64().expect("a number"))
        }
        other => other.to_string(),
    }
}

fn new_lake(name: &str) -> PathBuf {
    let lake = folder(&format!("readers-{name}")).join("lake");
    let traces: Vec<&str> = all_traces().iter().map(String::as_str).collect();
    let (left, right) = traces.split_at(3);
    export(left, &lake, &["--partition", "date,host", "--attribute", "host=left machine"]);
    export(right, &lake, &[]);
    lake
}

#[test]
fn duckdb_and_this_program_agree() {
    skip(|| {
        let readers = require()?;
        let lake = new_lake("duckdb");
        let place = lake.to_string_lossy();
        let mut program = VIEWS.to_owned();
        let queries = serde_json::to_string(QUERIES).expect("they are texts");
        program += &format!(
            "for query in json.loads({queries:?}):\n    relation = duckdb.sql(query)\n    names = relation.columns\n    \
             show([dict(zip(names, row)) for row in relation.fetchall()])\n"
        );
        let text = python(&readers, &program, &[&place]);
        let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
        assert_eq!(answers.len(), QUERIES.len());
        let mut rows = 0;
        for (query, theirs) in QUERIES.iter().zip(&answers) {
            let ours: Value = serde_json::from_str(&ok(&[&place, query, "--format", "json"])).expect("it is JSON");
            assert_eq!(sorted(&ours), sorted(theirs), "{query}");
            rows += sorted(&ours).len();
            assert!(!sorted(&ours).is_empty(), "{query}: no rows show nothing");
        }
        assert!(rows > 1000, "{rows}");
        Ok(())
    });
}

#[test]
fn pyarrow_and_pandas_and_this_program_agree() {
    skip(|| {
        let readers = require()?;
        let lake = new_lake("pyarrow");
        let place = lake.to_string_lossy();
        let entries = Lake::open(&place).and_then(|lake| lake.entries()).expect("it is a lake");
        let mut tables: Vec<&str> = entries.iter().flat_map(|entry| &entry.tables).map(|file| &*file.name).collect();
        tables.sort_unstable();
        tables.dedup();
        assert!(tables.len() >= 25, "{tables:?}");
        let program = r#"
import json, sys
import pyarrow.dataset as ds, pandas as pd
lake, tables = sys.argv[1], sys.argv[2:]
for table in tables:
    rows = ds.dataset(f"{lake}/{table}", partitioning="hive").to_table().to_pylist()
    print(json.dumps(rows))
    frame = pd.read_parquet(f"{lake}/{table}")
    assert len(frame) == len(rows), (table, len(frame), len(rows))
counts = pd.read_parquet(f"{lake}/slice").groupby("trace_file").size()
print(json.dumps([{"trace_file": name, "n": int(n)} for name, n in counts.items()]))
late = ds.dataset(f"{lake}/slice", partitioning="hive").filter(ds.field("dur") > 1000000)
print(json.dumps([{"n": late.count_rows()}]))
"#;
        let args: Vec<&str> = std::iter::once(&*place).chain(tables.iter().copied()).collect();
        let text = python(&readers, program, &args);
        let mut answers = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
        let mut compare = |query: &str| {
            let ours: Value = serde_json::from_str(&ok(&[&place, query, "--format", "json"])).expect("it is JSON");
            let theirs = answers.next().expect("there are as many answers");
            assert!(!sorted(&ours).is_empty(), "{query}: no rows show nothing");
            assert_eq!(sorted(&ours), sorted(&theirs), "{query}");
        };
        for table in tables {
            compare(&format!("select * from {table}"));
        }
        compare("select trace_file, count(*) as n from slice group by trace_file");
        compare("select count(*) as n from slice where dur > 1000000");
        Ok(())
    });
}
