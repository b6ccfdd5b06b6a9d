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

#[test]
fn also_if_the_recording_is_short() {
    skip(|| {
        let _turn = crate::tracefs()?;
        let harness = Harness::new();
        let config = |source: &str| {
            let machine = format!("data_sources {{ config {{ name: \"{source}\" }} }}");
            let ours = "data_sources { config { name: \"track_event\" } }";
            format!("buffers {{ size_kb: 1024 }}\n{ours}\n{machine}\nduration_ms: 1000\n")
        };
        for source in ["linux.system_info", "linux.process_stats"] {
            let file = harness.write("config", config(source));
            let mut command = harness.command(esatto_bin());
            command.args(["record", "--force", "-o", "trace", "-c"]).arg(file).arg("--");
            command.arg(beside_this_test("esatto-producer")).args(["1", "10", "100"]);
            let output = command.output().expect("it runs");
            assert!(output.status.success(), "{source}: {output:?}");
            let info = Command::new(esatto_bin()).args(["info", "--json"]).arg(harness.path("trace")).output();
            let info: Value = serde_json::from_slice(&info.expect("it runs").stdout).expect("JSON");
            assert_ne!(info["slices"]["count"], 0, "{source}: {output:?}");
        }
        Ok(())
    });
}

/// The kernel's ring takes longer to start than the recording lasts.
#[test]
fn but_not_after_the_recording() {
    skip(|| {
        let _turn = crate::tracefs()?;
        let harness = Harness::new();
        let events = "ftrace_config { ftrace_events: \"sched/sched_switch\" }";
        let ftrace = format!("data_sources {{ config {{ name: \"linux.ftrace\" {events} }} }}");
        let file = harness.write("config", format!("buffers {{ size_kb: 1024 }}\n{ftrace}\nduration_ms: 1\n"));
        let mut command = harness.command(esatto_bin());
        command.args(["record", "-o", "trace", "-c"]).arg(file).args(["--", "touch"]).arg(harness.path("begun"));
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("so the command was not started. Give the recording more time."), "{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(!harness.path("begun").exists(), "{said}");
        Ok(())
    });
}
