//! The sessions that `esatto sessions --json` lists.

use esatto_tests::{Harness, esatto_bin};
use serde_json::Value;

/// Returns the sessions of the harness's service.
pub(crate) fn sessions(harness: &Harness) -> Vec<Value> {
    let output = harness.command(esatto_bin()).args(["sessions", "--json"]).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    list["sessions"].as_array().expect("a list").clone()
}
