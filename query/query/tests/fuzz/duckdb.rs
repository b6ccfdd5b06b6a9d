//! DuckDB over the Parquet of a lake: one process for all queries.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::rows::{Row, of_json};

/// Reads a statement from each line, and prints its rows in a line.
const PROGRAM: &str = r#"
import duckdb, json, os, sys
lake = sys.argv[1]
db = duckdb.connect()
# As `esatto query`: NULL is the least value.
db.sql("set default_null_order = 'nulls_first_on_asc_last_on_desc'")
db.sql("set threads = 1")
# Not an error, as in SQLite.
db.sql("set error_on_division_by_zero = false")
for table in sorted(os.listdir(lake)):
    if os.path.isdir(f"{lake}/{table}") and not table.startswith("_"):
        db.sql(f"""create table {table} as select * from read_parquet('{lake}/{table}/*.parquet', union_by_name = true)""")
for table in sorted(os.listdir(f"{lake}/_schema")):
    name = table.removesuffix(".parquet")
    db.sql(f"create table if not exists {name} as select * from read_parquet('{lake}/_schema/{table}')")

def cell(value):
    match value:
        case None: return None
        case bool(): return f"b{value}"
        case int(): return f"i{value}"
        case float(): return f"f{value!r}"
        case str(): return f"s{value}"
    raise TypeError(f"{type(value)}")

for line in sys.stdin:
    try:
        relation = db.sql(json.loads(line))
        rows = relation.fetchall() if relation is not None else []
        answer = {"rows": [[cell(value) for value in row] for row in rows]}
    except Exception as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
"#;

/// The process.
pub(crate) struct DuckDb {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl DuckDb {
    pub(crate) fn start(readers: &Path, lake: &Path) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", PROGRAM])
            .arg(lake)
            .env("PYTHONPATH", readers)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, input, output }
    }

    pub(crate) fn ask(&mut self, sql: &str) -> Result<Vec<Row>, String> {
        let input = self.input.as_mut().expect("it is open until the end");
        writeln!(input, "{}", Value::from(sql)).expect("DuckDB reads statements");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("DuckDB answers in UTF-8");
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: '{line}' to {sql}"));
        if let Some(error) = answer["error"].as_str() {
            return Err(error.to_owned());
        }
        Ok(answer["rows"].as_array().expect("there are rows").iter().map(of_json).collect())
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        drop(self.input.take());
        let _status = self.child.wait();
    }
}

/// The folder of DuckDB. In CI it must be there.
pub(crate) fn require() -> Result<PathBuf, String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let peers = std::env::var_os("PEERS_DIR").map_or_else(|| home.join(".cache/perfetto-peers"), PathBuf::from);
    if peers.join(".readers").exists() {
        return Ok(peers.join("readers"));
    }
    let ci = std::env::var("CI").unwrap_or_default();
    let reason = "no peers: run 'cargo xtask peers install readers'".to_owned();
    assert!(ci.is_empty() || ci == "false" || ci == "0", "{reason}");
    Err(reason)
}
