//! `esatto probes` is killed while it records. Its next start sets tracefs back to what it was, and
//! what another program has switched on stays on.

use crate::mount_namespace::probes_in_namespace;
use crate::tracefs;
use esatto_tests::Instance;
use esatto_tests::{Harness, Implementation, Peer, skip, tp, wait_until};
use std::collections::BTreeMap;

/// Settings that the recording changes, and some that it must not change.
const SETTINGS: &[&str] = &[
    "tracing_on",
    "trace_clock",
    "buffer_size_kb",
    "buffer_percent",
    "current_tracer",
    "events/enable",
    "events/raw_syscalls/sys_enter/filter",
    "set_event",
    "set_event_pid",
];

fn settings(instance: &Instance) -> BTreeMap<&'static str, String> {
    SETTINGS.iter().map(|file| (*file, instance.read(file))).collect()
}

fn config(instance: &Instance) -> String {
    format!(
        "buffers {{ size_kb: 32768 }}
        data_sources {{ config {{ name: 'linux.ftrace' ftrace_config {{
          instance_name: '{}' buffer_size_kb: 2048 drain_buffer_percent: 30
          ftrace_events: 'sched/*' ftrace_events: 'task/task_rename' syscall_events: 'sys_prctl'
        }} }} }}",
        instance.name()
    )
}

/// A /run that only the programs of a harness see. There the probes leave word of their changes,
/// and probes of other tests must not act on it.
const ENTER: &str = r#"mkdir -p run; mount --bind run /run; exec "$0" probes"#;

#[test]
fn settings_come_back_at_the_next_start() {
    skip(|| {
        let _turn = tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let instance = Instance::new("killed");
        instance.write("tracing_on", "0");
        instance.write("trace_clock", "global");
        instance.write("buffer_size_kb", "64");
        let before = settings(&instance);

        let mut killed = probes_in_namespace(&harness, ENTER)?;
        let mut recording = harness.record(Implementation::Ours, "trace", &config(&instance));
        instance.wait_until_on("task/task_rename");
        killed.kill();
        harness.wait_for_producers(0);
        recording.stop();
        let left = settings(&instance);
        for file in SETTINGS.iter().filter(|file| !matches!(**file, "current_tracer" | "set_event_pid")) {
            assert_ne!(left[file], before[file], "{file} was changed");
        }

        let next = probes_in_namespace(&harness, ENTER)?;
        assert_eq!(settings(&instance), before);
        assert!(next.log().contains("changes that a killed process has left"), "{}", next.log());
        Ok(())
    });
}

#[test]
fn what_was_on_before_stays_on() {
    skip(|| {
        let _turn = tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let instance = Instance::new("shared");
        instance.write("trace_clock", "mono");
        instance.write("events/sched/sched_process_fork/enable", "1");
        let before = settings(&instance);

        let mut killed = probes_in_namespace(&harness, ENTER)?;
        let mut recording = harness.record(Implementation::Ours, "trace", &config(&instance));
        instance.wait_until_on("task/task_rename");
        killed.kill();
        harness.wait_for_producers(0);
        recording.stop();
        assert_ne!(settings(&instance), before);

        let _next = probes_in_namespace(&harness, ENTER)?;
        assert_eq!(settings(&instance), before);
        assert_eq!(instance.read("set_event"), "sched:sched_process_fork\n");
        Ok(())
    });
}

#[test]
fn a_running_session_goes_on_with_the_next_program() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let _turn = tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let instance = Instance::new("again");
        instance.write("tracing_on", "0");
        let before = settings(&instance);

        // The events that the file does not have yet go with the killed program.
        let config = config(&instance)
            + "write_into_file: true file_write_period_ms: 100 flush_period_ms: 100 write_flush_mode: WRITE_FLUSH_DISABLED";
        let mut killed = probes_in_namespace(&harness, ENTER)?;
        let mut recording = harness.record(Implementation::Ours, "trace", &config);
        instance.wait_until_on("task/task_rename");
        crate::rename("before the kill");
        wait_until("the event is in the file", || {
            let file = std::fs::read(recording.trace()).unwrap_or_default();
            file.windows(15).any(|part| part == b"before the kill").then_some(())
        });
        killed.kill();
        harness.wait_for_producers(0);

        let next = probes_in_namespace(&harness, ENTER)?;
        assert!(next.log().contains("changes that a killed process has left"), "{}", next.log());
        instance.wait_until_on("task/task_rename");
        crate::rename("after the kill");
        let trace = recording.stop();
        let names = tp::rows(
            &trace,
            "select distinct extract_arg(arg_set_id, 'newcomm') as name from ftrace_event where name = 'task_rename'",
        );
        for name in ["before the kill", "after the kill"] {
            assert!(names.iter().any(|row| row.text("name") == name), "{name}: {names:?}");
        }
        wait_until("the settings come back", || (settings(&instance) == before).then_some(()));
        Ok(())
    });
}
