//! Probes that end while they record: `record`, `info` and the log of the service name them.

use esatto_tests::{Harness, Implementation, Skip, esatto_bin, skip};
use std::process::Command;

const CONFIG: &str = r#"
buffers { size_kb: 4096 }
data_sources { config { name: "linux.sys_stats" sys_stats_config { meminfo_period_ms: 50 } } }
data_sources { config { name: "linux.process_stats" process_stats_config { scan_all_processes_on_start: true } } }
"#;

/// Kills the probes in a recording. Returns what `record`, `info` and the service say.
fn record(probes: Implementation, comes_back: bool) -> Result<[String; 3], Skip> {
    if probes == Implementation::Theirs {
        esatto_tests::Peer::Official.require()?;
    }
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    let mut first = harness.probes(probes);
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    harness.wait_for_sessions(1);
    // The data sources have started.
    std::thread::sleep(core::time::Duration::from_millis(300));
    first.kill();
    harness.wait_for_producers(0);
    let _second = comes_back.then(|| harness.probes(probes));
    let trace = recording.stop();
    service.wait_for_log(" ended after ");
    let info = Command::new(esatto_bin()).arg("info").arg(&trace).output().expect("it runs");
    let info = String::from_utf8(info.stdout).expect("text");
    Ok([recording.program.log(), info, service.log()])
}

fn scenario(probes: Implementation) {
    skip(|| -> Result<(), Skip> {
        let [said, info, service] = record(probes, false)?;
        let line = said.lines().find(|line| line.contains("perfetto.traced_probes ended after "));
        let tells = |line: &str| line.ends_with(" linux.process_stats, linux.sys_stats: their later data is missing.");
        assert!(line.is_some_and(tells), "{said}");
        let lost = info.lines().find(|line| line.trim_start().starts_with("service  ended_data_sources"));
        assert!(lost.is_some_and(|line| line.contains("perfetto.traced_probes ended early")), "{info}");
        assert!(info.contains("linux.sys_stats of perfetto.traced_probes"), "{info}");
        let told = " ended while it recorded \"linux.process_stats\", \"linux.sys_stats\"; their later data is missing";
        assert!(service.contains(told), "{service}");
        assert!(service.contains("lost: 2 data sources that ended early"), "{service}");
        Ok(())
    });
}

#[test]
fn ours_for_good() {
    scenario(Implementation::Ours);
}

#[test]
fn theirs_for_good() {
    scenario(Implementation::Theirs);
}

#[test]
fn until_they_are_back() {
    skip(|| -> Result<(), Skip> {
        let [said, ..] = record(Implementation::Ours, true)?;
        assert!(said.contains("perfetto.traced_probes ended after "), "{said}");
        assert!(said.contains("their data until it was back is missing"), "{said}");
        Ok(())
    });
}

/// The session itself cannot be read. Its snapshots tell.
#[test]
fn a_recording_of_snapshots_tells_it() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut probes = harness.probes(Implementation::Ours);
    let triggers =
        "trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 600000 triggers { name: \"now\" } }";
    let mut recording = harness.record(Implementation::Ours, "trace", &format!("{CONFIG} {triggers}"));
    harness.wait_for_sessions(1);
    std::thread::sleep(core::time::Duration::from_millis(300));
    probes.kill();
    harness.wait_for_producers(0);
    let triggered = harness.command(esatto_bin()).args(["trigger", "now"]).status().expect("it runs");
    assert!(triggered.success());
    recording.program.wait_for_log("trigger \"now\"");
    recording.program.signal(esatto_tests::Signal::INT);
    recording.program.wait_ok();
    let said = recording.program.log();
    let line = said.lines().find(|line| line.contains("perfetto.traced_probes ended after "));
    let tells = |line: &str| line.ends_with(" linux.process_stats, linux.sys_stats: their later data is missing.");
    assert!(line.is_some_and(tells), "{said}");
}

/// Programs that record themselves end at any time.
#[test]
fn no_program_that_records_itself_is_told() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    let config = r#"
buffers { size_kb: 4096 }
data_sources { config { name: "linux.sys_stats" } }
data_sources { config { name: "track_event" track_event_config { enabled_categories: "*" } } }
"#;
    let mut recording = harness.record(Implementation::Ours, "trace", config);
    harness.wait_for_sessions(1);
    let workload = esatto_tests::workload::Workload { threads: 1, rounds: 10, pause_us: 100 };
    harness.application(Implementation::Ours, workload).wait_ok();
    recording.stop();
    service.wait_for_log(" ended after ");
    assert!(!recording.program.log().contains(" ended after "), "{}", recording.program.log());
    assert!(service.log().contains("the service lost nothing"), "{}", service.log());
}
