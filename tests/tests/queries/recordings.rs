//! Queries on traces that the tests record: of the machine by both probes, of programs on both
//! SDKs, of a relayed machine, of clones, of rings that have wrapped, and of Chromium.

use std::path::{Path, PathBuf};
use std::process::Command;

use esatto_tests::workload::{CONFIG, Workload};
use esatto_tests::{Harness, Implementation, Instance, Peer, Signal, Skip, skip, wait_until};
use esatto_trace::Engine;
use esatto_trace::tables::Table as _;

use crate::compare;
use crate::traces::Trace;

const WORKLOAD: Workload = Workload { threads: 2, rounds: 200, pause_us: 200 };
/// Does not end while a test runs.
const ENDLESS: Workload = Workload { threads: 1, rounds: 1_000_000, pause_us: 1000 };

/// Compares all answers, and returns the tables.
fn check(name: &str, path: PathBuf) -> Engine {
    compare(&[Trace { name: name.to_owned(), path: path.clone() }]);
    Engine::read(std::fs::File::open(path).expect("a trace can be read"))
}

/// Returns how many rows of a table have a text in a column.
fn rows_with(engine: &Engine, table: &str, column: &str, text: &str) -> usize {
    let table = engine.tables.all().into_iter().find(|own| own.name() == table).expect("a table");
    let column = table.columns().iter().position(|own| own.trim_start_matches("r#") == column).expect("a column");
    let has_text = |row| table.value(row, column, &engine.tables.strings) == esatto_trace::tables::Value::Text(text);
    (0..table.rows()).filter(|&row| has_text(row)).count()
}

/// Kernel events, and statistics of the machine and of its processes.
fn machine_config(instance: &Instance) -> String {
    let events = [
        "sched/sched_switch",
        "sched/sched_waking",
        "sched/sched_wakeup_new",
        "sched/sched_process_exec",
        "sched/sched_process_exit",
        "sched/sched_process_fork",
        "sched/sched_process_free",
        "task/task_newtask",
        "task/task_rename",
        "raw_syscalls/sys_enter",
        "raw_syscalls/sys_exit",
        "signal/signal_generate",
        "signal/signal_deliver",
        "kmem/rss_stat",
        "irq/irq_handler_entry",
        "irq/irq_handler_exit",
        "irq/softirq_entry",
        "irq/softirq_exit",
        "irq/softirq_raise",
        "timer/hrtimer_expire_entry",
        "timer/hrtimer_expire_exit",
        "workqueue/workqueue_execute_start",
        "workqueue/workqueue_execute_end",
        "oom/oom_score_adj_update",
        "power/cpu_frequency",
        "power/cpu_idle",
        "power/suspend_resume",
        "net/netif_receive_skb",
        "net/net_dev_xmit",
        "sock/inet_sock_set_state",
        "ftrace/print",
    ];
    let events: String = events.map(|event| format!("ftrace_events: {event:?} ")).concat();
    format!(
        r#"buffers {{ size_kb: 65536 fill_policy: DISCARD }}
        data_sources {{ config {{ name: "linux.ftrace" ftrace_config {{
          instance_name: "{}" buffer_size_kb: 8192 symbolize_ksyms: true {events} }} }} }}
        data_sources {{ config {{ name: "linux.process_stats" process_stats_config {{
          scan_all_processes_on_start: true record_thread_names: true proc_stats_poll_ms: 200
          scan_smaps_rollup: true record_process_age: true record_process_runtime: true resolve_process_fds: true
        }} }} }}
        data_sources {{ config {{ name: "linux.sys_stats" sys_stats_config {{
          meminfo_period_ms: 200 vmstat_period_ms: 200 stat_period_ms: 200 buddyinfo_period_ms: 200
          diskstat_period_ms: 200 psi_period_ms: 200 thermal_period_ms: 200 cpuidle_period_ms: 200
          devfreq_period_ms: 200 cpufreq_period_ms: 200
        }} }} }}
        data_sources {{ config {{ name: "linux.system_info" }} }}"#,
        instance.name()
    )
}

/// Does a little of everything: processes, signals, memory, the network, a name.
fn busy_script() -> &'static str {
    "trap : USR1; for i in 1 2 3; do kill -USR1 $$; (sleep 0.02; true) & wait; done
     head -c 8000000 /dev/zero | tail -c 10 > /dev/null; printf 300 > /proc/$$/oom_score_adj; sleep 0.4"
}

fn machine(probes: Implementation, service: Implementation) -> Result<(), Skip> {
    [Peer::Official, Peer::TraceProcessor].into_iter().try_for_each(Peer::require)?;
    esatto_tests::mount_tracefs()?;
    let harness = Harness::new();
    let _service = harness.service(service);
    let _probes = harness.probes(probes);
    let instance = Instance::new(&format!("queries-{probes}"));
    let mut recording = harness.record(service, "trace", &machine_config(&instance));
    instance.wait_until_on("task/task_rename");
    let status = Command::new("sh").args(["-c", busy_script()]).status().expect("sh is there");
    assert!(status.success(), "{status}");
    let engine = check(&format!("the machine by {probes} probes"), recording.stop());
    let tables = &engine.tables;
    assert!(tables.sched.rows() > 100 && tables.thread_state.rows() > 100 && tables.ftrace_event.rows() > 1000);
    for name in ["signal_generate", "signal_deliver", "sys_kill"] {
        assert!(rows_with(&engine, "slice", "name", name) >= 3, "{name}");
    }
    for kind in ["process_memory", "oom_score_adj", "proc_stat_runtime", "smaps", "meminfo", "vmstat", "cpustat"] {
        assert!(rows_with(&engine, "track", "type", kind) > 0, "{kind}");
    }
    Ok(())
}

#[test]
fn the_machine_by_our_probes() {
    skip(|| machine(Implementation::Ours, Implementation::Ours));
}

#[test]
fn the_machine_by_perfettos_probes() {
    skip(|| machine(Implementation::Theirs, Implementation::Theirs));
}

fn programs(service: Implementation, config: &str) -> Result<(Harness, PathBuf), Skip> {
    [Peer::Official, Peer::Producer, Peer::TraceProcessor].into_iter().try_for_each(Peer::require)?;
    let harness = Harness::new();
    let _service = harness.service(service);
    let mut recording = harness.record(service, "trace", config);
    harness.wait_for_sessions(1);
    let mut programs = [Implementation::Ours, Implementation::Theirs].map(|it| harness.application(it, WORKLOAD));
    programs.iter_mut().for_each(esatto_tests::Program::wait_ok);
    let trace = harness.stop(&mut recording);
    Ok((harness, trace))
}

#[test]
fn programs_on_both_sdks() {
    skip(|| {
        let (_harness, trace) = programs(Implementation::Theirs, CONFIG)?;
        let engine = check("programs on both SDKs", trace);
        assert!(rows_with(&engine, "slice", "name", "upload") >= 800, "both programs are there");
        Ok(())
    });
}

#[test]
fn rings_that_have_wrapped() {
    skip(|| {
        let config = r#"buffers { size_kb: 64 fill_policy: RING_BUFFER }
            data_sources { config { name: "track_event"
              track_event_config { enabled_categories: "rendering" enabled_categories: "debug" } } }
            incremental_state_config { clear_period_ms: 20 }"#;
        for service in [Implementation::Ours, Implementation::Theirs] {
            let (_harness, trace) = programs(service, config)?;
            let engine = check(&format!("a wrapped ring of {service} service"), trace);
            let slices = engine.tables.slice.rows();
            assert!((1..2000).contains(&slices), "the ring has wrapped: {slices}");
        }
        Ok(())
    });
}

#[test]
fn clones_of_a_session() {
    skip(|| {
        [Peer::Official, Peer::Producer, Peer::TraceProcessor].into_iter().try_for_each(Peer::require)?;
        for service in [Implementation::Ours, Implementation::Theirs] {
            let harness = Harness::new();
            let _service = harness.service(service);
            let config = format!("{CONFIG} unique_session_name: \"mine\"");
            let mut recording = harness.record(service, "trace", &config);
            harness.wait_for_sessions(1);
            harness.application(Implementation::Ours, WORKLOAD).wait_ok();
            let _second = harness.application(Implementation::Theirs, ENDLESS);
            let clone = harness.path("clone");
            let target = clone.display().to_string();
            let (code, log) = harness.run_perfetto(&["--clone-by-name", "mine", "-o", &target]);
            assert_eq!(code, 0, "{log}");
            let engine = check(&format!("a clone by {service} service"), clone);
            assert!(rows_with(&engine, "slice", "name", "upload") >= 400, "the first program is there");
            recording.stop();
        }
        Ok(())
    });
}

#[test]
fn programs_of_a_relayed_machine() {
    skip(|| {
        [Peer::Official, Peer::Producer, Peer::TraceProcessor].into_iter().try_for_each(Peer::require)?;
        let harness = Harness::new();
        let relayed = |command: &mut Command| {
            command.arg("--enable-relay-endpoint");
        };
        let (_service, port) = harness.service_with_tcp(Implementation::Ours, relayed);
        let socket = harness.path("guest.sock");
        let mut command = harness.command(esatto_tests::esatto_bin());
        command.args(["relay", "-v"]).env("PERFETTO_RELAY_SOCK_NAME", format!("127.0.0.1:{port}"));
        command.env("PERFETTO_MACHINE_NAME", "guest").env("ESATTO_MACHINE_ID_HINT", "guest");
        let mut relay = harness.start("relay", command.env("PERFETTO_PRODUCER_SOCK_NAME", &socket));
        relay.wait_for_log("The service knows this machine and its clocks");
        let mut recording =
            harness.record(Implementation::Ours, "trace", &format!("{CONFIG}trace_all_machines: true\n"));
        harness.wait_for_sessions(1);
        let mut programs = vec![harness.application(Implementation::Ours, WORKLOAD)];
        for implementation in [Implementation::Ours, Implementation::Theirs] {
            let mut command = harness.application_command(implementation, WORKLOAD);
            command.env("PERFETTO_PRODUCER_SOCK_NAME", &socket);
            programs.push(harness.start(&format!("guest-{implementation}"), &mut command));
        }
        programs.iter_mut().for_each(esatto_tests::Program::wait_ok);
        let engine = check("programs of a relayed machine", harness.stop(&mut recording));
        assert_eq!(engine.tables.machine.rows(), 2);
        assert!(rows_with(&engine, "slice", "name", "upload") >= 1200, "all programs are there");
        Ok(())
    });
}

/// A page that keeps the browser at work.
const PAGE: &str = "data:text/html,<div id=a></div><script>let n=0;setInterval(()=>{n++;\
    document.getElementById('a').textContent=n;performance.mark('round '+n);fetch('data:,x')},20)</script>";

#[test]
fn a_browser() {
    skip(|| {
        [Peer::Browser, Peer::TraceProcessor].into_iter().try_for_each(Peer::require)?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let program = std::env::var_os("CHROMIUM").unwrap_or_else(|| "/usr/bin/chromium".into());
        let mut command = harness.command(Path::new(&program));
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]);
        command.arg("--enable-features=EnablePerfettoSystemTracing");
        command.arg(format!("--user-data-dir={}", harness.path("profile").display()));
        let mut browser = harness.start("chromium", command.arg(PAGE));
        wait_until("the browser is connected", || {
            assert!(browser.is_running(), "{}", browser.log());
            (harness.state().producers.len() > 3).then_some(())
        });
        let config = r#"buffers { size_kb: 65536 fill_policy: DISCARD }
            data_sources { config { name: "track_event" track_event_config { enabled_categories: "*" } } }
            data_sources { config { name: "org.chromium.trace_metadata2" } }"#;
        let mut recording = harness.record(Implementation::Ours, "trace", config);
        harness.wait_for_sessions(1);
        std::thread::sleep(std::time::Duration::from_millis(600));
        let trace = recording.stop();
        browser.signal(Signal::TERM);
        let engine = check("a browser", trace);
        assert!(engine.tables.slice.rows() > 1000, "the browser was at work: {}", engine.tables.slice.rows());
        assert!(rows_with(&engine, "thread", "name", "CrRendererMain") > 0, "a renderer is there");
        Ok(())
    });
}
