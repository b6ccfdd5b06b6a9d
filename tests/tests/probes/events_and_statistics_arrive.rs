//! Our `traced_probes` and Perfetto's give both services the same packets.

use crate::{Pair, tracefs};
use esatto_tests::{Harness, Peer, Skip, tp};

const STATS: &str = r#"
buffers { size_kb: 4096 fill_policy: DISCARD }
duration_ms: 1500
data_sources { config {
  name: "linux.process_stats"
  process_stats_config { scan_all_processes_on_start: true record_thread_names: true proc_stats_poll_ms: 250 }
} }
data_sources { config {
  name: "linux.sys_stats"
  sys_stats_config {
    meminfo_period_ms: 250
    meminfo_counters: MEMINFO_MEM_TOTAL
    meminfo_counters: MEMINFO_MEM_FREE
    stat_period_ms: 250
    stat_counters: STAT_CPU_TIMES
    stat_counters: STAT_FORK_COUNT
  }
} }
"#;

mod process_and_system_statistics_arrive {
    use super::*;

    fn scenario(Pair { probes, service }: Pair) -> Result<(), Skip> {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let _service = harness.service(service);
        let probes = harness.probes(probes);
        let trace = harness.record(service, "trace", STATS).finish();
        let all = tp::query(
            &trace,
            &format!(
                "select name from process where pid = {} or pid = {};
                select t.name, count(*) as n from counter c join track t on c.track_id = t.id
                  where t.name in ('MemTotal', 'MemFree', 'num_forks', 'mem.rss') group by t.name order by t.name;
                select sum(value) as total from counter c join track t on c.track_id = t.id where t.name = 'MemTotal';",
                probes.pid(),
                std::process::id(),
            ),
        );
        assert_eq!(all[0].len(), 2, "processes: {:?}", all[0]);
        let names: Vec<&str> = all[1].iter().map(|row| row.text("name")).collect();
        assert_eq!(names, ["MemFree", "MemTotal", "mem.rss", "num_forks"]);
        assert!(all[1].iter().all(|row| row.int("n") >= 3), "values: {:?}", all[1]);
        assert!(all[2][0].real("total") > 0.0);
        tp::assert_clean(&trace);
        Ok(())
    }
    crate::for_each_pair!(scenario);
}

const FTRACE: &str = r#"
buffers { size_kb: 32768 fill_policy: DISCARD }
duration_ms: 1500
data_sources { config {
  name: "linux.ftrace"
  ftrace_config {
    ftrace_events: "sched/sched_switch"
    ftrace_events: "sched/sched_waking"
    ftrace_events: "sched/sched_process_fork"
    ftrace_events: "sched/sched_process_exec"
    ftrace_events: "task/task_newtask"
    compact_sched { enabled: true }
  }
} }
data_sources { config { name: "linux.process_stats" process_stats_config { scan_all_processes_on_start: true } } }
"#;

mod kernel_events_arrive {
    use super::*;

    fn scenario(Pair { probes, service }: Pair) -> Result<(), Skip> {
        Peer::TraceProcessor.require()?;
        let _turn = tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(service);
        let _probes = harness.probes(probes);
        harness.wait_for_data_source("linux.ftrace");
        let mut recording = harness.record(service, "trace", FTRACE);
        harness.wait_for_sessions(1);
        // Runs to the end of the recording: a session counts as started before the kernel's events
        // are on.
        let mut child = harness.start("sh", harness.command("sh").args(["-c", "while :; do sleep 0.05; done"]));
        let trace = recording.finish();
        child.kill();
        let all = tp::query(
            &trace,
            &format!(
                "select count(*) as n from sched_slice;
                select count(*) as n from sched_slice join thread using (utid) where tid = {};
                select count(distinct cpu) as n from sched_slice;",
                child.pid()
            ),
        );
        assert!(all[0][0].int("n") > 10, "scheduling slices: {:?}", all[0]);
        assert!(all[1][0].int("n") >= 1, "scheduling slices of the child: {:?}", all[1]);
        assert!(all[2][0].int("n") >= 1, "processors: {:?}", all[2]);
        tp::assert_clean(&trace);
        Ok(())
    }
    crate::for_each_pair!(scenario);
}
