//! Perfetto's trace processor. The workspace of the crates has the same in `tests/src/tp.rs`, whose
//! dependencies this workspace does without.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

/// Runs statements on a trace. Returns the rows of each that has columns.
pub(crate) fn maps(trace: &Path, sql: &str) -> Vec<Vec<Map<String, Value>>> {
    let mut child = Command::new(crate::root().join("xtask/peers/tp"))
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
    assert!(output.status.success() && stderr.is_empty(), "tp on {}: {}\n{stderr}", trace.display(), output.status);
    serde_json::Deserializer::from_slice(&output.stdout).into_iter().map(|rows| rows.expect("tp prints JSON")).collect()
}

/// Finds out whether the trace processor is installed. In CI it must be.
pub(crate) fn require() -> Result<(), String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let peers = std::env::var_os("PEERS_DIR").map_or_else(|| home.join(".cache/perfetto-peers"), PathBuf::from);
    if peers.join("ui/version").exists() {
        return Ok(());
    }
    let ci = std::env::var("CI").unwrap_or_default();
    let reason = "no peers: run 'cargo xtask peers ui'".to_owned();
    assert!(ci.is_empty() || ci == "false" || ci == "0", "{reason}");
    Err(reason)
}

/// Runs a test that may find out that it cannot run, as in `tests/src/skip.rs`.
pub(crate) fn skip(test: impl FnOnce() -> Result<(), String>) {
    let Err(reason) = test() else { return };
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    eprintln!("SKIP {name}: {reason}");
    if let Some(file) = std::env::var_os("ESATTO_SKIPS") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
        let line = format!("{name}\t{reason}\n");
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the skip is noted");
    }
}
