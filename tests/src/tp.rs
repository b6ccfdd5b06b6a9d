//! Perfetto's trace processor: SQL on a trace.

use crate::peers;
use serde_json::{Map, Value};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// One row: its columns by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Row(Map<String, Value>);

impl Row {
    /// The integer in `column`.
    ///
    /// # Panics
    ///
    /// It holds none.
    #[must_use]
    pub fn int(&self, column: &str) -> i64 {
        self.0[column].as_i64().unwrap_or_else(|| panic!("no integer in {column} of {self:?}"))
    }

    /// The number in `column`.
    ///
    /// # Panics
    ///
    /// It holds none.
    #[must_use]
    pub fn real(&self, column: &str) -> f64 {
        self.0[column].as_f64().unwrap_or_else(|| panic!("no number in {column} of {self:?}"))
    }

    /// The text in `column`; empty for NULL.
    #[must_use]
    pub fn text(&self, column: &str) -> &str {
        self.0[column].as_str().unwrap_or_default()
    }

    /// True if `column` holds NULL.
    #[must_use]
    pub fn is_null(&self, column: &str) -> bool {
        self.0[column].is_null()
    }
}

/// Runs the statements `sql` on `trace`: one list of rows for each that returns any columns.
///
/// # Panics
///
/// The trace cannot be read to its end, or an SQL error.
#[must_use]
pub fn query(trace: &Path, sql: &str) -> Vec<Vec<Row>> {
    maps(trace, sql).into_iter().map(|rows| rows.into_iter().map(Row).collect()).collect()
}

/// As [`query`], with each row as a map.
///
/// # Panics
///
/// As [`query`].
#[must_use]
pub fn maps(trace: &Path, sql: &str) -> Vec<Vec<Map<String, Value>>> {
    let mut child = Command::new(peers::script("tp"))
        .arg("--json")
        .arg(trace)
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tp starts");
    child.stdin.take().expect("stdin is piped").write_all(sql.as_bytes()).expect("tp reads its SQL");
    let output = child.wait_with_output().expect("tp ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    // On stderr it warns of a file that ends inside a packet.
    assert!(output.status.success() && stderr.is_empty(), "tp on {}: {}\n{stderr}", trace.display(), output.status);
    serde_json::Deserializer::from_slice(&output.stdout).into_iter().map(|rows| rows.expect("tp prints JSON")).collect()
}

/// The rows of a single statement.
///
/// # Panics
///
/// As [`query`], or it is not a single one.
#[must_use]
pub fn rows(trace: &Path, sql: &str) -> Vec<Row> {
    let mut all = query(trace, sql);
    assert_eq!(all.len(), 1, "one statement that returns rows: {sql}");
    all.remove(0)
}

/// Statistics that must be 0: all of severity error and data_loss, and those of severity info that
/// tell of broken track events or clocks (`docs/spec/track-event.md` §24).
pub const COMPLAINTS: &str = "select name, idx, severity, value from stats where value != 0 and (
    severity in ('error', 'data_loss') or name like 'track_event_%' or name like '%_parser_errors'
    or name like '%_tokenizer_errors' or name = 'tokenizer_skipped_packets'
    or name like 'clock_sync_failure%' or name = 'invalid_clock_snapshots')";

/// Checks that the trace processor has nothing to complain of.
///
/// # Panics
///
/// It has; or it cannot read the trace.
pub fn assert_clean(trace: &Path) {
    let complaints = rows(trace, COMPLAINTS);
    assert!(complaints.is_empty(), "{}: {complaints:#?}", trace.display());
}
