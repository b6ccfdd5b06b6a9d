//! Our probes and Perfetto's record one workload at the same time, in two instances of tracefs. The
//! real trace processor finds the same in both traces.

use crate::tracefs;
use esatto_tests::Instance;
use esatto_tests::{Harness, Implementation, Peer, Recording, Skip, skip, tp};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// How often each event came: processor, thread, name and arguments.
type Events = BTreeMap<(i64, i64, String, String), usize>;

const ROUNDS: usize = 2000;
const FORKS: usize = 20;
const RENAMES: usize = 50;

/// Events of the schema, and one that it does not know.
const EVENTS: &[&str] = &[
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup_new",
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "task/task_newtask",
    "task/task_rename",
];

#[test]
fn the_same_kernel_events() {
    skip(|| same_events(""));
}

#[test]
fn the_same_compact_kernel_events() {
    skip(|| same_events("compact_sched { enabled: true }"));
}

#[test]
fn the_same_kernel_events_without_the_compact_form() {
    skip(|| same_events("compact_sched { enabled: false }"));
}

fn same_events(options: &str) -> Result<(), Skip> {
    [Peer::Official, Peer::TraceProcessor].into_iter().try_for_each(Peer::require)?;
    let _turn = tracefs()?;
    let events: String = EVENTS.iter().map(|event| format!("ftrace_events: {event:?} ")).collect();
    let mut sides = [Implementation::Ours, Implementation::Theirs].map(|side| {
        let instance = Instance::new(&side.to_string());
        let config = format!(
            "buffers {{ size_kb: 65536 fill_policy: DISCARD }}
            data_sources {{ config {{ name: 'linux.ftrace' ftrace_config {{
              instance_name: '{}' buffer_size_kb: 4096 {events} {options} }} }} }}",
            instance.name()
        );
        (Side::record(side, &config), instance)
    });
    for (_, instance) in &sides {
        instance.wait_until_on("task/task_rename");
    }
    let threads = workload();
    let traces = sides.each_mut().map(|(side, _)| side.recording.stop());
    let tids = threads.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let names = EVENTS.iter().filter_map(|event| event.rsplit('/').next()).map(|name| format!("'{name}'"));
    let names = names.collect::<Vec<_>>().join(",");
    let [ours, theirs] = traces.each_ref().map(|trace| {
        // Tids that do not fit are in both traces: the trace processor does not know of some
        // renumbering.
        let losses = tp::rows(
            trace,
            "select name, value from stats where value > 0 and severity in ('error', 'data_loss')
             and name != 'mismatched_sched_switch_tids'",
        );
        assert!(losses.is_empty(), "{losses:?}");
        let sql = format!(
            "select e.cpu, e.name, t.tid, (
               select group_concat(a.key || '=' || coalesce(a.display_value, 'null'), ' ')
               from (select * from args where arg_set_id = e.arg_set_id order by key) a
             ) as args from ftrace_event e join thread t using (utid) where t.tid in ({tids}) and e.name in ({names});"
        );
        let rows = tp::rows(trace, &sql);
        // Interrupts may come between the two instances, so their order may differ.
        let mut events = Events::new();
        for row in &rows {
            // Each instance reads the state of a thread that ends, and others may collect it
            // between.
            let args = row.text("args").replace("prev_state=16", "prev_state=32");
            let event = (row.int("cpu"), row.int("tid"), row.text("name").to_owned(), args);
            *events.entry(event).or_default() += 1;
        }
        events
    });
    assert!(
        theirs.values().sum::<usize>() > 2 * ROUNDS + 5 * FORKS + RENAMES,
        "the workload is recorded: {}",
        theirs.len()
    );
    let only = |a: &Events, b: &Events| {
        a.iter()
            .filter(|(event, n)| b.get(event) != Some(n))
            .map(|(event, n)| format!("{n} {event:?}"))
            .take(5)
            .collect::<Vec<_>>()
    };
    assert!(ours == theirs, "ours: {:#?}\ntheirs: {:#?}", only(&ours, &theirs), only(&theirs, &ours));
    Ok(())
}

const STATISTICS: &str = r#"
buffers { size_kb: 65536 fill_policy: DISCARD }
duration_ms: 2100
data_sources { config { name: "linux.process_stats" process_stats_config {
  scan_all_processes_on_start: true record_thread_names: true proc_stats_poll_ms: 200 scan_smaps_rollup: true
} } }
data_sources { config { name: "linux.sys_stats" sys_stats_config {
  meminfo_period_ms: 200 vmstat_period_ms: 200 stat_period_ms: 200 buddyinfo_period_ms: 200 diskstat_period_ms: 200
  psi_period_ms: 200 thermal_period_ms: 200 cpuidle_period_ms: 200 devfreq_period_ms: 200 cpufreq_period_ms: 200
} } }
data_sources { config { name: "linux.system_info" } }
"#;

#[test]
fn the_same_statistics() {
    skip(|| {
        [Peer::Official, Peer::TraceProcessor].into_iter().try_for_each(Peer::require)?;
        // A process that does not change, with a strange name.
        let mut still = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep is there");
        let mut sides = [Implementation::Ours, Implementation::Theirs].map(|side| Side::record(side, STATISTICS));
        let [ours, theirs] = sides.each_mut().map(|side| side.recording.finish());
        let compare = |sql: &str| {
            let read = |trace: &Path| -> BTreeSet<String> {
                tp::rows(trace, sql).iter().map(|row| row.text("it").to_owned()).collect()
            };
            let (ours, theirs) = (read(&ours), read(&theirs));
            let differing: Vec<_> = ours.symmetric_difference(&theirs).collect();
            assert!(!theirs.is_empty() && differing.is_empty(), "{sql}\ndiffer: {differing:#?}");
        };
        // Counters of the machine. If it has no frequencies, Perfetto's probes write zeros.
        compare(
            "select distinct name || ' ' || coalesce(unit, '') as it from counter_track k where type not like 'process%'
             and (name != 'cpufreq' or exists (select 1 from counter c where c.track_id = k.id and c.value != 0))",
        );
        // Those of the process, with their values, which do not change. Its share of pages (PSS)
        // does: others begin and end to use them.
        let pid = still.id();
        compare(&format!(
            "select distinct t.name || ' ' || iif(t.name like '%pss%', '', c.value) as it
             from counter c join process_counter_track t on t.id = c.track_id
             join process p using (upid) where p.pid = {pid}"
        ));
        // Without names of the main threads, which Perfetto's probes leave out.
        compare(&format!(
            "select p.name || ' ' || coalesce(pp.pid, '') || ' ' || coalesce(p.uid, '') || ' ' || coalesce(p.cmdline, '')
             || ' ' || t.tid as it
             from process p join thread t using (upid) left join process pp on pp.upid = p.parent_upid
             where t.is_main_thread and p.pid in ({pid}, {})",
            std::process::id()
        ));
        compare("select name || ' ' || coalesce(str_value, int_value) as it from metadata where name like 'system_%'");
        // Without `processor`, the name of the CPU: Perfetto knows none on x86.
        compare("select cpu || ' ' || coalesce(capacity, '') as it from cpu");
        let _ = still.kill();
        let _ = still.wait();
        Ok(())
    });
}

/// Probes with a service of the same kind, and a recording.
struct Side {
    recording: Recording,
    _programs: [esatto_tests::Program; 2],
    _harness: Harness,
}

impl Side {
    fn record(side: Implementation, config: &str) -> Self {
        let harness = Harness::new();
        // Both record into our service: what differs is of the probes.
        let service = harness.service(Implementation::Ours);
        let probes = harness.probes(side);
        let recording = harness.record(Implementation::Ours, "trace", config);
        harness.wait_for_sessions(1);
        Self { recording, _programs: [probes, service], _harness: harness }
    }
}

fn pipe() -> (File, File) {
    let (reader, writer) = rustix::pipe::pipe().expect("descriptors");
    (reader.into(), writer.into())
}

/// Two threads that wake each other, children that become other programs, renames and a burst.
/// Returns the threads whose events all lie within.
fn workload() -> Vec<i32> {
    let tid = || rustix::thread::gettid().as_raw_nonzero().get();
    let (mut ping_reader, mut ping) = pipe();
    let (mut pong_reader, mut pong) = pipe();
    let one = std::thread::spawn(move || {
        for _ in 0..ROUNDS {
            ping.write_all(b"x").expect("the other thread reads");
            pong_reader.read_exact(&mut [0]).expect("the other thread writes");
        }
        tid()
    });
    let two = std::thread::spawn(move || {
        for _ in 0..ROUNDS {
            ping_reader.read_exact(&mut [0]).expect("the other thread writes");
            pong.write_all(b"x").expect("the other thread reads");
        }
        tid()
    });
    let forks = std::thread::spawn(move || {
        let mut tids = vec![tid()];
        for _ in 0..FORKS {
            let mut child = Command::new("true").stdin(Stdio::null()).spawn().expect("true is there");
            tids.push(i32::try_from(child.id()).expect("a pid"));
            child.wait().expect("it ends");
        }
        tids
    });
    let renames = std::thread::spawn(move || {
        for number in 0..RENAMES {
            let name = std::ffi::CString::new(format!("a) (b \u{1b}{number}")).expect("no zero");
            rustix::thread::set_name(&name).expect("a short name");
        }
        for _ in 0..ROUNDS {
            std::thread::yield_now();
        }
        tid()
    });
    let mut tids =
        vec![one.join().expect("no panic"), two.join().expect("no panic"), renames.join().expect("no panic")];
    tids.extend(forks.join().expect("no panic"));
    // The last events of the threads come after `join` has returned.
    std::thread::sleep(std::time::Duration::from_millis(200));
    tids
}
