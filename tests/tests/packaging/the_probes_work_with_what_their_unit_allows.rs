//! `traced_probes` records under the restrictions of `traced-probes.service`: its capabilities, its
//! file system and its system calls. A call that is not allowed kills it.

use crate::sandbox::{allowed_calls, families};
use crate::unit::Unit;
use esatto_tests::{Harness, Implementation, Peer, Signal, Skip, beside_this_test, skip, tp, wait_until};

const CONFIG: &str = r#"
buffers { size_kb: 32768 }
duration_ms: 1500
data_sources { config { name: "linux.ftrace" ftrace_config {
  ftrace_events: "sched/*" ftrace_events: "raw_syscalls/*" symbolize_ksyms: true
} } }
data_sources { config { name: "linux.process_stats" process_stats_config {
  scan_all_processes_on_start: true proc_stats_poll_ms: 200 resolve_process_fds: true
} } }
data_sources { config { name: "linux.sys_stats" sys_stats_config {
  meminfo_period_ms: 200 vmstat_period_ms: 200 stat_period_ms: 200 buddyinfo_period_ms: 200 diskstat_period_ms: 200
  psi_period_ms: 200 thermal_period_ms: 200 cpuidle_period_ms: 200 devfreq_period_ms: 200 cpufreq_period_ms: 200
  slab_period_ms: 200
} } }
data_sources { config { name: "linux.system_info" } }
data_sources { config { name: "linux.systemd_journald" } }
data_sources { config { name: "linux.inode_file_map" } }
data_sources { config { name: "linux.sysfs_power" } }
data_sources { config { name: "perfetto.metatrace" } }
"#;

/// `$1` are the capabilities that stay, `$2` the sandbox program, `$3` and `$4` allowed calls and
/// families of sockets, `$5` the probes.
///
/// ProtectSystem=strict with the paths of the unit, NoNewPrivileges and CapabilityBoundingSet; then
/// the two filters. PrivateNetwork, PrivateIPC and ProtectHostname are the namespaces around it.
const ENTER: &str = r#"
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p -m 700 /run/esatto/probes
mount --bind /run/esatto/probes /run/esatto/probes
mount -o remount,bind,ro /run
mount -o remount,bind,ro /
mount -o remount,bind,ro /sys
if [ -d /sys/kernel/tracing/events ]; then mount -o remount,bind,rw /sys/kernel/tracing; fi
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
exec setpriv --no-new-privs --inh-caps=-all --bounding-set="$1" "$2" "$3" "$4" "$5"
"#;

#[test]
fn all_data_sources_record() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        esatto_tests::mount_tracefs()?;
        let unit = Unit::read("traced-probes.service");
        let calls = allowed_calls(&unit)?.join(",");
        let kept = unit
            .words("CapabilityBoundingSet")
            .into_iter()
            .map(|name| format!(",+{}", name.strip_prefix("CAP_").unwrap_or(name).to_ascii_lowercase()));
        let kept = format!("-all{}", kept.collect::<String>());
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let mut command = harness.command("unshare");
        command.args(["--mount", "--net", "--ipc", "--uts", "sh", "-c", ENTER, "sh", &kept]);
        command.arg(beside_this_test("esatto-sandbox")).args([calls, families(&unit)]);
        let mut probes = harness.start("traced_probes", command.arg(beside_this_test("traced_probes")));
        wait_until("the probes are connected or say why not", || {
            let log = probes.log();
            (log.contains("Connected to the tracing service") || !probes.is_running()).then_some(())
        });
        let log = probes.log();
        if log.contains("unshare failed") || log.contains("mount:") {
            return Err(Skip(format!("no right to make a sandbox: {}", log.trim())));
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", probes.pid())).expect("it runs");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
        };
        // CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE and CAP_SYSLOG.
        for set in ["CapPrm", "CapEff", "CapBnd"] {
            assert_eq!(field(set), "0000000400080004", "{set}");
        }
        assert_eq!((field("NoNewPrivs"), field("Seccomp")), ("1".into(), "2".into()));

        let trace = harness.record(Implementation::Ours, "trace", CONFIG).finish();
        assert!(probes.is_running(), "{}", probes.log());
        let all = tp::query(
            &trace,
            "select count(*) as n from sched_slice;
            select count(*) as n from process where name is not null and pid > 0;
            select count(*) as n from counter join track on track.id = counter.track_id where name = 'MemFree';",
        );
        for rows in &all {
            assert!(rows[0].int("n") > 2, "{all:?}\n{}", probes.log());
        }
        probes.signal(Signal::TERM);
        probes.wait_ok();
        Ok(())
    });
}
