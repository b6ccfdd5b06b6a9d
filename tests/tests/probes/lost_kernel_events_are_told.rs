//! Events that the kernel's buffer has no room for: `record`, `info` and the log of the probes say
//! so, and the log of the service does not deny it.

use crate::tracefs;
use esatto_tests::Instance;
use esatto_tests::{Harness, Implementation, Signal, Skip, esatto_bin, skip};
use std::io::Write as _;
use std::process::Command;

/// The probes read rarely, and the kernel has room for a few pages.
fn config(instance: &Instance, buffer_kb: u32) -> String {
    format!(
        r#"
buffers {{ size_kb: 65536 fill_policy: DISCARD }}
data_sources {{ config {{ name: "linux.ftrace" ftrace_config {{
  instance_name: "{}" ftrace_events: "ftrace/print" ftrace_events: "oom/mark_victim"
  buffer_size_kb: {buffer_kb} drain_period_ms: 60000
}} }} }}
"#,
        instance.name()
    )
}

/// Records many events. Returns what `record`, `info`, the probes and the service say.
fn record(probes: Implementation, buffer_kb: u32) -> Result<[String; 4], Skip> {
    if probes == Implementation::Theirs {
        esatto_tests::Peer::Official.require()?;
    }
    let _turn = tracefs()?;
    let instance = Instance::new("lost");
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    let mut probes = harness.probes(probes);
    let mut recording = harness.record(Implementation::Ours, "trace", &config(&instance, buffer_kb));
    instance.wait_until_on("oom/mark_victim");
    let mut marker = std::fs::File::create(instance.path("trace_marker")).expect("the kernel has it");
    for number in 0..5000 {
        marker.write_all(format!("line {number}, long enough to fill a page soon\n").as_bytes()).expect("it takes it");
    }
    let trace = recording.stop();
    service.wait_for_log(" ended after ");
    probes.signal(Signal::TERM);
    let _ = probes.wait();
    let info = Command::new(esatto_bin()).arg("info").arg(&trace).output().expect("it runs");
    let info = String::from_utf8(info.stdout).expect("text");
    Ok([recording.program.log(), info, probes.log(), service.log()])
}

#[test]
fn a_kernel_buffer_that_is_too_small() {
    skip(|| -> Result<(), Skip> {
        let [said, info, probes, service] = record(Implementation::Ours, 8)?;
        assert!(said.contains("The kernel lost ") && said.contains("buffer_size_kb"), "{said}");
        let lost = info.lines().find(|line| line.trim_start().starts_with("kernel  lost_events"));
        assert!(lost.is_some_and(|line| line.contains("drain_period_ms")), "{info}");
        // 5000 events were written, and some pages of them are in the trace.
        let number = |text: &str, before: &str| -> u64 {
            let rest = text.split_once(before).map(|(_, rest)| rest).unwrap_or_default();
            rest.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        let told =
            [number(&said, "The kernel lost "), number(&info, "lost_events"), number(&probes, "the kernel lost ")];
        assert!(told[0] > 4000 && told[0] < 5000 && told == [told[0]; 3], "{told:?}\n{said}\n{info}\n{probes}");
        assert!(probes.contains("session 1: the kernel lost "), "{probes}");
        assert!(service.contains("the service lost nothing"), "{service}");
        Ok(())
    });
}

#[test]
fn a_kernel_buffer_that_is_too_small_for_probes_of_perfetto() {
    skip(|| -> Result<(), Skip> {
        let [said, info, ..] = record(Implementation::Theirs, 8)?;
        assert!(said.contains("The kernel lost ") && info.contains("lost_events"), "{said}\n{info}");
        Ok(())
    });
}

#[test]
fn a_kernel_buffer_that_is_large_enough() {
    skip(|| -> Result<(), Skip> {
        let [said, info, probes, _] = record(Implementation::Ours, 4096)?;
        for text in [said, info, probes] {
            assert!(!text.contains("kernel lost") && !text.contains("lost_events"), "{text}");
        }
        Ok(())
    });
}
