//! An event that the kernel does not have: `record`, `info` and the log of the probes name it, with
//! the one that was probably meant.

use crate::tracefs;
use esatto_tests::Instance;
use esatto_tests::{Harness, Implementation, Skip, esatto_bin, skip};
use std::process::Command;

/// Records these events. Returns the exit code of `record`, and what `record`,
/// `info` and the probes say.
fn record(events: &[&str]) -> Result<(Option<i32>, [String; 3]), Skip> {
    record_fields(&events.iter().map(|event| format!("ftrace_events: \"{event}\" ")).collect::<String>())
}

/// As [`record`], with fields of the `FtraceConfig`.
fn record_fields(events: &str) -> Result<(Option<i32>, [String; 3]), Skip> {
    let _turn = tracefs()?;
    let instance = Instance::new("mistyped");
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let probes = harness.probes(Implementation::Ours);
    let config = format!(
        "buffers {{ size_kb: 4096 }} duration_ms: 500 data_sources {{ config {{ name: \"linux.ftrace\" ftrace_config \
         {{ instance_name: \"{}\" buffer_size_kb: 256 {events} }} }} }}",
        instance.name()
    );
    let mut recording = harness.record(Implementation::Ours, "trace", &config);
    let status = recording.program.wait();
    let info = Command::new(esatto_bin()).arg("info").arg(recording.trace()).output().expect("it runs");
    let info = String::from_utf8(info.stdout).expect("text");
    Ok((status.code(), [recording.program.log(), info, probes.log()]))
}

#[test]
fn alone_in_the_config() {
    skip(|| -> Result<(), Skip> {
        let (code, [said, info, probes]) = record(&["sched/sched_swich"])?;
        assert_eq!(code, Some(3), "{said}");
        let told = "\"sched/sched_swich\" (did you mean \"sched/sched_switch\"?)";
        assert!(said.contains("No event was recorded: ") && said.contains(told), "{said}");
        assert!(!said.contains("the config fits"), "{said}");
        assert!(info.contains("sched/sched_swich: the kernel has no such event"), "{info}");
        assert!(probes.contains("sched/sched_swich (did you mean sched/sched_switch?)"), "{probes}");
        Ok(())
    });
}

#[test]
fn beside_others() {
    skip(|| -> Result<(), Skip> {
        let (code, [said, ..]) = record(&["sched/sched_switch", "sched_wakin"])?;
        assert_eq!(code, Some(0), "{said}");
        let told = "the kernel has no ftrace event \"sched_wakin\" (did you mean \"sched/sched_waking\"?)";
        assert!(said.contains("Some events were not recorded: ") && said.contains(told), "{said}");
        let (_, [said, info, probes]) = record(&["sched/sched_switch", "sched/sched_waking"])?;
        for text in [said, info, probes] {
            assert!(!text.contains("no ftrace event") && !text.contains("no such event"), "{text}");
        }
        Ok(())
    });
}

#[test]
fn a_category_of_atrace() {
    skip(|| -> Result<(), Skip> {
        let (_, [said, info, probes]) =
            record_fields("ftrace_events: \"sched/sched_switch\" atrace_categories: \"schedd\"")?;
        assert!(
            said.contains("Some events were not recorded: ") && said.contains("schedd (atrace category)"),
            "{said}"
        );
        assert!(
            info.contains("schedd (atrace category)") && probes.contains("schedd (atrace category)"),
            "{info}{probes}"
        );
        let (_, [said, ..]) = record_fields("atrace_categories: \"freq\" atrace_categories: \"am\"")?;
        assert!(!said.contains("atrace category"), "{said}");
        Ok(())
    });
}
