//! Events that do not exist and periods that are too short are named in the trace; the rest of the
//! config is recorded.

use crate::tracefs;
use esatto_tests::Instance;
use esatto_tests::{Harness, Implementation, Peer, skip, tp, wire};

const EVENTS: usize = 10_000;
/// Entries of a list in the statistics, and one that says how many are left out.
const LISTED: usize = 1001;

#[test]
fn ten_thousand_events_and_periods_of_a_millisecond() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let _turn = tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let mut probes = harness.probes(Implementation::Ours);
        let instance = Instance::new("odd");
        let ftrace = |fields: &str| {
            format!(
                "buffers {{ size_kb: 65536 }} data_sources {{ config {{ name: 'linux.ftrace' ftrace_config {{
                  instance_name: '{}' ftrace_events: 'task/task_rename' {fields} }} }} }}\n",
                instance.name()
            )
        };
        // A name that could mean another file refuses the data source.
        for (name, field) in [
            ("../../etc/passwd", "ftrace_events: '../../etc/passwd'"),
            ("sched/", "ftrace_events: 'sched/'"),
            ("a b;c", "kprobe_events { probe: 'a b;c' type: KPROBE_TYPE_KPROBE }"),
        ] {
            let config = ftrace(field) + "duration_ms: 100";
            let refused = std::fs::read(harness.record(Implementation::Ours, "refused", &config).finish());
            let texts: Vec<String> = problems(&refused.expect("the trace"));
            assert!(texts.iter().any(|text| text.contains(name)), "{name}: {texts:?}");
        }

        let events: String = (0..EVENTS).map(|number| format!("ftrace_events: 'x/{number}' ")).collect();
        let config = ftrace(&format!("drain_period_ms: 1 {events}"))
            + "data_sources { config { name: 'linux.process_stats' process_stats_config { proc_stats_poll_ms: 1 } } }
            data_sources { config { name: 'linux.sys_stats' sys_stats_config { meminfo_period_ms: 1 } } }";
        let mut recording = harness.record(Implementation::Ours, "trace", &config);
        instance.wait_until_on("task/task_rename");
        crate::rename("among odd ones");
        harness.wait_for_sessions(1);
        let trace = recording.stop();
        assert!(probes.is_running(), "{}", probes.log());

        let bytes = std::fs::read(&trace).expect("the trace");
        let statistics: Vec<&[u8]> =
            wire::all(&bytes, 1).into_iter().flat_map(|packet| wire::all(packet, 34)).collect();
        let unknown = wire::all(statistics.last().expect("statistics"), 6);
        assert_eq!(unknown.len(), LISTED);
        let last = String::from_utf8_lossy(unknown[LISTED - 1]);
        assert!(last.contains("more"), "{last}");
        let rows = tp::rows(
            &trace,
            "select count(*) as n from ftrace_event where name = 'task_rename'
              and extract_arg(arg_set_id, 'newcomm') = 'among odd ones'",
        );
        assert_eq!(rows[0].int("n"), 1);
        let meminfo = wire::all(&bytes, 1).into_iter().filter(|packet| wire::last(packet, 7).is_some()).count();
        assert!(meminfo > 0, "counters");
        Ok(())
    });
}

/// The end of a recording of the kernel takes longer, unless the machine is very fast.
#[test]
fn a_time_to_stop_of_a_millisecond_blames_no_file() {
    skip(|| {
        let _turn = tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let probes = harness.probes(Implementation::Ours);
        let instance = Instance::new("short");
        let config = format!(
            "buffers {{ size_kb: 4096 }} data_source_stop_timeout_ms: 1
            data_sources {{ config {{ name: 'linux.ftrace' ftrace_config {{
              instance_name: '{}' ftrace_events: 'task/task_rename' }} }} }}",
            instance.name()
        );
        let mut recording = harness.record(Implementation::Ours, "trace", &config);
        instance.wait_until_on("task/task_rename");
        let trace = std::fs::read(recording.stop()).expect("the trace");
        // The problem may come after the last packet of the trace. It always is in the log.
        let told = format!("{}{}", problems(&trace).join("\n"), probes.log());
        assert!(!told.contains("may hang"), "{told}");
        if told.contains("did not stop within") {
            assert!(told.contains("because the config has `data_source_stop_timeout_ms: 1`"), "{told}");
        }
        Ok(())
    });
}

/// Reasons why data sources do not record, from the field of the trace that has them.
fn problems(trace: &[u8]) -> Vec<String> {
    let reasons = wire::all(trace, 1).into_iter().flat_map(|packet| wire::all(packet, 4001));
    reasons.flat_map(|problem| wire::all(problem, 2)).map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}
