//! `perfetto.metatrace` shows where the time of the probes goes: each read is a slice of its
//! thread.

use crate::tracefs;
use esatto_tests::Instance;
use esatto_tests::{Harness, Implementation, Peer, skip, tp};
use std::collections::{BTreeMap, BTreeSet};

const CONFIG: &str = r#"
buffers { size_kb: 32768 fill_policy: DISCARD }
duration_ms: 1000
data_sources { config { name: "perfetto.metatrace" } }
data_sources { config { name: "linux.process_stats" process_stats_config {
  scan_all_processes_on_start: true record_thread_names: true proc_stats_poll_ms: 100
} } }
data_sources { config { name: "linux.sys_stats" sys_stats_config { meminfo_period_ms: 100 stat_period_ms: 100 } } }
"#;

#[test]
fn reads_are_slices_of_their_threads() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let _turn = tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let _probes = harness.probes(Implementation::Ours);
        let instance = Instance::new("metatrace");
        let ftrace = format!(
            "data_sources {{ config {{ name: 'linux.ftrace' ftrace_config {{
              instance_name: '{}' ftrace_events: 'sched/*' ftrace_events: 'task/*'
            }} }} }}",
            instance.name()
        );
        // New threads, which the kernel's events name.
        let mut child = harness.start("sh", harness.command("sh").args(["-c", "while :; do sleep 0.05; done"]));
        let trace = harness.record(Implementation::Ours, "trace", &(CONFIG.to_owned() + &ftrace)).finish();
        child.kill();
        let rows = tp::rows(
            &trace,
            "select s.name, t.name as thread, s.dur,
              (select group_concat(key || '=' || display_value) from args a where a.arg_set_id = s.arg_set_id) as args
            from slice s join thread_track k on s.track_id = k.id join thread t using (utid)",
        );
        let mut found: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        for row in &rows {
            assert!(row.int("dur") >= 0, "{row:?}");
            found.entry((row.text("name"), row.text("thread"))).or_default().insert(row.text("args"));
        }
        for name in [
            "ftrace drain",
            "ftrace statistics",
            "process_stats scan",
            "process_stats poll",
            "process_stats on demand",
            "sys_stats meminfo",
            "sys_stats stat",
            "linux.ftrace",
        ] {
            assert!(found.contains_key(&(name, "probes")), "{name} among {found:#?}");
        }
        let cpus = &found[&("ftrace drain", "probes")];
        assert!(cpus.iter().all(|cpu| cpu.contains("cpu=")), "{cpus:?}");
        Ok(())
    });
}
