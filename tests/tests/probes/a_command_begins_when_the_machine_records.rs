//! `esatto record -- COMMAND` starts the command when the data sources of the machine record.

use std::process::Command;

use esatto_tests::{Harness, beside_this_test, esatto_bin, skip};
use serde_json::Value;

fn ns(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no time"))
}

#[test]
fn also_if_it_is_short() {
    skip(|| {
        let _turn = crate::tracefs()?;
        let harness = Harness::new();
        let mut command = harness.command(esatto_bin());
        command.args(["record", "--preset", "sched", "-o", "trace", "--"]).arg(beside_this_test("esatto-producer"));
        harness.start("record", command.args(["1", "10", "100"])).wait_ok();
        let info = Command::new(esatto_bin()).args(["info", "--json"]).arg(harness.path("trace")).output();
        let info: Value = serde_json::from_slice(&info.expect("it runs").stdout).expect("JSON");
        let events = info["service_events"].as_array().expect("a list");
        let started = events.iter().find(|event| event["name"] == "all_data_sources_started");
        let started = ns(&started.unwrap_or_else(|| panic!("no start in {info}"))["ts_ns"]);
        let processes = info["processes"].as_array().expect("a list");
        let connected = processes.iter().find(|process| !process["connected_ns"].is_null());
        let connected = ns(&connected.expect("the program")["connected_ns"]);
        assert!(connected >= started, "it connected {} ns before the start", started - connected);
        Ok(())
    });
}
