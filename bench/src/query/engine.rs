//! Engines that stay, and answer one statement after the other.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// The last row of each answer.
const END: &str = "end of the answer";

/// DuckDB over all Parquet files of a lake, as CSV.
const DUCKDB: &str = r#"
import duckdb, os, sys
lake = sys.argv[1]
for table in ("slice", "thread", "process", "track", "args"):
    if os.path.isdir(f"{lake}/{table}"):
        duckdb.sql(f"create view {table} as select * from read_parquet('{lake}/{table}/*.parquet')")
for line in sys.stdin:
    relation = duckdb.sql(line)
    print(",".join(relation.columns))
    for row in relation.fetchall():
        print(",".join(str(cell) for cell in row))
    print("end of the answer", flush=True)
"#;

/// An engine.
pub(super) struct Engine {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Follows each statement.
    suffix: String,
}

impl Engine {
    /// Our program over a lake or a trace.
    pub(super) fn esatto(program: &Path, source: &Path) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg("--interactive").arg(source).args(["--format", "csv"]);
        Self::start(&mut command, format!(";\nselect '{END}' as e;\n"))
    }

    /// DuckDB, by its Python package.
    pub(super) fn duckdb(readers: &Path, lake: &Path) -> Result<Self, String> {
        let mut command = Command::new("python3");
        command.args(["-c", DUCKDB]).arg(lake).env("PYTHONPATH", readers);
        Self::start(&mut command, "\n".to_owned())
    }

    fn start(command: &mut Command, suffix: String) -> Result<Self, String> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
        let mut child = child.map_err(|error| format!("{}: {error}", Path::new(command.get_program()).display()))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("stdout is piped")?);
        Ok(Self { child, input, output, suffix })
    }

    /// Returns the lines of an answer, with that of the names first.
    pub(super) fn rows_of(&mut self, sql: &str) -> Result<Vec<String>, String> {
        let input = self.input.as_mut().ok_or("the engine has ended")?;
        let written = write!(input, "{sql}{}", self.suffix).and_then(|()| input.flush());
        written.map_err(|error| format!("the engine: {error}"))?;
        let mut rows = Vec::new();
        loop {
            let mut line = String::new();
            let bytes = self.output.read_line(&mut line).map_err(|error| format!("the engine: {error}"))?;
            let line = line.trim_end();
            match line {
                _ if bytes == 0 => return Err(format!("the engine ends at: {sql}")),
                END => break,
                // The name of our last row.
                "e" | "" => {}
                line => rows.push(line.to_owned()),
            }
        }
        if rows.len() < 2 { Err(format!("no rows: {sql}")) } else { Ok(rows) }
    }

    /// Returns the seconds of an answer.
    pub(super) fn time(&mut self, sql: &str) -> Result<f64, String> {
        let begin = Instant::now();
        self.rows_of(sql)?;
        Ok(begin.elapsed().as_secs_f64())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.input.take());
        let _status = self.child.wait();
    }
}
