//! Traces of fake and real processes.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::process::{Command, Stdio};

use esatto_protozero::Owned as _;
use esatto_schema::process_stats_config::Quirks;
use esatto_schema::{ProcessStatsConfig, TracePacketReader};

use super::fake_proc::FakeProc;
use super::*;
use crate::test_writer::TestWriter;

/// An instance with what it has written.
struct Recording {
    source: ProcessStats,
    memory: TestWriter,
    writer: TraceWriter,
}

/// Content of the packets, in short.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trace {
    /// By pid: parent, arguments.
    processes: Vec<(i32, i32, Vec<String>)>,
    /// Tid, pid, name.
    threads: Vec<(i32, i32, Option<String>)>,
    /// By pid: the resident memory, if it was written.
    rss: Vec<(i32, Option<u64>)>,
    packets: usize,
    cleared: usize,
}

impl Recording {
    fn start(path: &Path, config: &ProcessStatsConfig) -> Self {
        let source = ProcessStats::new(path, &ProcessStatsConfigReader::new(&config.encode())).expect("a folder");
        let memory = TestWriter::new();
        let writer = memory.writer();
        let mut recording = Self { source, memory, writer };
        recording.source.start(ms(0), &mut recording.writer);
        recording
    }

    fn tick(&mut self, now: Duration) {
        self.source.tick(now, &mut self.writer);
        while self.source.has_work() {
            self.source.tick(now, &mut self.writer);
        }
    }

    fn observe(&mut self, renamed: &[i32], tids: &[i32]) {
        let observed = Observed { renamed: renamed.to_vec(), tids: tids.to_vec(), inodes: Vec::new() };
        self.source.observe(&observed, &mut self.writer);
    }

    /// Ends the recording. Returns its packets.
    fn packets(mut self) -> Vec<Vec<u8>> {
        self.source.stop(&mut self.writer);
        drop(self.writer);
        self.memory.packets()
    }

    fn trace(self) -> Trace {
        Trace::new(&self.packets())
    }
}

impl Trace {
    fn new(packets: &[Vec<u8>]) -> Self {
        let mut trace = Self { packets: packets.len(), ..Self::default() };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for packet in packets {
            let packet = TracePacketReader::new(packet);
            trace.cleared += usize::from(packet.incremental_state_cleared() == Some(true));
            let begin = packet.timestamp().expect("a time");
            if let Some(tree) = packet.process_tree() {
                assert!(tree.collection_end_timestamp().expect("a time") >= begin);
                for process in tree.processes() {
                    let arguments = process.cmdline().map(text).collect();
                    trace.processes.push((process.pid().expect("a pid"), process.ppid().expect("a pid"), arguments));
                }
                for thread in tree.threads() {
                    let ids = (thread.tid().expect("an id"), thread.tgid().expect("an id"));
                    trace.threads.push((ids.0, ids.1, thread.name().map(text)));
                }
            }
            if let Some(stats) = packet.process_stats() {
                assert!(stats.collection_end_timestamp().expect("a time") >= begin);
                trace.rss.extend(stats.processes().map(|process| (process.pid().expect("a pid"), process.vm_rss_kb())));
            }
        }
        trace.processes.sort();
        trace.threads.sort();
        trace.rss.sort_unstable();
        trace
    }

    fn pids(&self) -> Vec<i32> {
        self.processes.iter().map(|process| process.0).collect()
    }

    fn thread_ids(&self) -> Vec<(i32, i32)> {
        self.threads.iter().map(|thread| (thread.0, thread.1)).collect()
    }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn scan_all() -> ProcessStatsConfig {
    ProcessStatsConfig { scan_all_processes_on_start: Some(true), ..Default::default() }
}

fn polls(cache_ttl_ms: u32) -> ProcessStatsConfig {
    ProcessStatsConfig {
        proc_stats_poll_ms: Some(100),
        proc_stats_cache_ttl_ms: Some(cache_ttl_ms),
        ..Default::default()
    }
}

/// Two processes, the second with two more threads.
fn two_processes() -> FakeProc {
    let proc = FakeProc::new();
    proc.process(10, "one");
    proc.process(20, "two");
    for tid in [21, 22] {
        proc.thread(20, tid, &format!("worker {tid}"));
    }
    let status = std::fs::read_to_string(proc.path.join("20/status")).expect("a file");
    proc.file("20/status", status.replace("Threads:\t1", "Threads:\t3"));
    proc
}

#[test]
fn a_scan_at_the_start_has_all_processes_and_threads() {
    let proc = two_processes();
    let trace = Recording::start(&proc.path, &scan_all()).trace();
    let arguments = |name: &str, pid| vec![format!("/bin/{name}"), "--pid".into(), format!("{pid}")];
    assert_eq!(trace.processes, [(10, 1, arguments("one", 10)), (20, 1, arguments("two", 20))]);
    assert_eq!(trace.threads, [(10, 10, None), (20, 20, None), (21, 20, None), (22, 20, None)]);
    assert_eq!((trace.packets, trace.cleared), (1, 1), "the first packet needs no earlier ones");
}

#[test]
fn names_of_threads_are_written_if_they_are_wanted() {
    let proc = two_processes();
    let config = ProcessStatsConfig { record_thread_names: Some(true), ..scan_all() };
    let names = |config| {
        let trace = Recording::start(&proc.path, &config).trace();
        trace.threads.into_iter().map(|thread| (thread.0, thread.2.expect("a name"))).collect::<Vec<_>>()
    };
    let [one, two, third, fourth] = ["one", "two", "worker 21", "worker 22"].map(String::from);
    assert_eq!(names(config.clone()), [(10, one), (20, two), (21, third.clone()), (22, fourth.clone())]);
    let without_main = ProcessStatsConfig { skip_main_thread_message: Some(true), ..config };
    assert_eq!(names(without_main), [(21, third), (22, fourth)]);
}

#[test]
fn ids_in_namespaces_come_with_threads_that_have_no_name() {
    let proc = two_processes();
    for (id, nested) in [(20, "20\t5\t1"), (21, "21\t6\t2"), (22, "22\t7\t3")] {
        let path = proc.path.join(format!("{id}/status"));
        let status = std::fs::read_to_string(&path).expect("a file");
        proc.file(&format!("{id}/status"), status.replace(&format!("NSpid:\t{id}"), &format!("NSpid:\t{nested}")));
    }
    let packets = Recording::start(&proc.path, &scan_all()).packets();
    let tree = TracePacketReader::new(&packets[0]).process_tree().expect("a tree");
    let processes = tree.processes().map(|process| (process.pid(), process.nspid().collect::<Vec<_>>()));
    let processes: BTreeMap<_, _> = processes.collect();
    assert_eq!(processes, BTreeMap::from([(Some(10), vec![]), (Some(20), vec![5, 1])]));
    let threads: BTreeMap<_, _> =
        tree.threads().map(|thread| (thread.tid(), thread.nstid().collect::<Vec<_>>())).collect();
    let expected = [(10, vec![]), (20, vec![5, 1]), (21, vec![6, 2]), (22, vec![7, 3])];
    assert_eq!(threads, expected.map(|(tid, nested)| (Some(tid), nested)).into());
}

#[test]
fn a_process_without_arguments_has_its_name_instead() {
    let proc = FakeProc::new();
    proc.process(2, "kthreadd");
    proc.file("2/cmdline", "");
    let packets = Recording::start(&proc.path, &scan_all()).packets();
    let tree = TracePacketReader::new(&packets[0]).process_tree().expect("a tree");
    let process = tree.processes().next().expect("a process");
    assert_eq!(process.cmdline().collect::<Vec<_>>(), [b"kthreadd"]);
    assert_eq!((process.cmdline_is_comm(), process.uid(), process.is_kthread()), (Some(true), Some(1000), Some(false)));
}

#[test]
fn the_start_of_a_process_is_in_nanoseconds() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    proc.file("10/stat", "10 (a) b) S 1 10 10 0 -1 4194560 4 7 0 0 31 12 5 6 20 0 1 0 250 15126528 1847\n");
    let config = ProcessStatsConfig { record_process_age: Some(true), ..scan_all() };
    let packets = Recording::start(&proc.path, &config).packets();
    let tree = TracePacketReader::new(&packets[0]).process_tree().expect("a tree");
    let ns_per_tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    assert_eq!(tree.processes().next().and_then(|one| one.process_start_from_boot()), Some(250 * ns_per_tick));
}

#[test]
fn threads_of_events_are_described_once() {
    let proc = two_processes();
    let mut recording = Recording::start(&proc.path, &ProcessStatsConfig::default());
    recording.observe(&[], &[0, 21, 99, 21]);
    recording.observe(&[], &[20, 21, 22]);
    let trace = recording.trace();
    assert_eq!(trace.pids(), [20], "the process of a thread comes with it");
    assert_eq!(trace.thread_ids(), [(20, 20), (21, 20), (22, 20)]);
    assert_eq!(trace.packets, 2);
}

#[test]
fn a_renamed_thread_is_described_again() {
    let proc = two_processes();
    let config = ProcessStatsConfig { record_thread_names: Some(true), ..Default::default() };
    let mut recording = Recording::start(&proc.path, &config);
    recording.observe(&[], &[21]);
    proc.thread(20, 21, "other name");
    recording.observe(&[21], &[21]);
    let names: BTreeSet<_> = recording.trace().threads.into_iter().filter(|thread| thread.0 == 21).collect();
    let names: Vec<_> = names.into_iter().filter_map(|thread| thread.2).collect();
    assert_eq!(names, ["other name", "worker 21"]);
}

/// Writes the `stat` of a process that was forked just now.
fn forked(proc: &FakeProc, pid: i32, name: &str, has_executed: bool) {
    let flags = if has_executed { 0x40_0000 } else { 0x40_0040 };
    // It stays young, however slow the test is.
    let start = u64::MAX / 1_000_000_000;
    proc.file(
        &format!("{pid}/stat"),
        format!("{pid} ({name}) S 1 9 9 0 -1 {flags} 4 7 0 0 3 2 5 6 20 0 1 0 {start} 1\n"),
    );
}

#[test]
fn a_process_is_described_again_when_it_has_executed_its_program() {
    let proc = FakeProc::new();
    proc.file("loadavg", "0.00 0.00 0.00 1/80 100\n");
    let config = ProcessStatsConfig { record_thread_names: Some(true), ..scan_all() };
    for (pid, looks_at) in [(99, Some(ms(5))), (101, Some(ms(30))), (101, None)] {
        proc.process(pid, "parent");
        forked(&proc, pid, "parent", false);
        let mut recording = Recording::start(&proc.path, &config);
        assert_eq!(recording.source.deadline(), Some(ms(0)));
        recording.tick(ms(0));
        assert_eq!(recording.source.deadline(), Some(ms(5)), "the first look");
        proc.process(pid, "program");
        forked(&proc, pid, "program", true);
        if let Some(now) = looks_at {
            recording.tick(now);
            assert_eq!(recording.source.deadline(), None, "no further look");
        }
        let trace = recording.trace();
        let names: Vec<_> = trace.processes.iter().map(|process| &*process.2[0]).collect();
        assert_eq!(names, ["/bin/parent", "/bin/program"], "{looks_at:?}");
        let names: Vec<_> = trace.threads.iter().map(|thread| thread.2.as_deref()).collect();
        assert_eq!(names, [Some("parent"), Some("program")]);
        proc.remove(&pid.to_string());
    }
}

#[test]
fn workers_that_execute_no_program_are_looked_at_only_while_they_are_young() {
    let proc = FakeProc::new();
    proc.file("loadavg", "0.00 0.00 0.00 1/80 100\n");
    proc.process(100, "worker");
    forked(&proc, 100, "worker", false);
    let mut recording = Recording::start(&proc.path, &scan_all());
    recording.tick(ms(0));
    for (now, next) in [(5, 15), (15, 35), (35, 75)] {
        recording.tick(ms(now));
        assert_eq!(recording.source.deadline(), Some(ms(next)));
    }
    proc.file("100/stat", "100 (worker) S 1 9 9 0 -1 64 4 7 0 0 3 2 5 6 20 0 1 0 1 1\n");
    recording.tick(ms(75));
    assert_eq!(recording.source.deadline(), None, "it is old");
    // One with a small id has begun long before: nothing but what is written is read of it.
    proc.process(20, "old");
    forked(&proc, 20, "old", false);
    recording.observe(&[], &[20]);
    assert_eq!(recording.source.deadline(), None);
    assert_eq!(recording.trace().pids(), [20, 100]);
}

#[test]
fn a_poll_notices_another_name() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    proc.process(20, "two");
    let mut recording = Recording::start(&proc.path, &polls(0));
    recording.tick(ms(0));
    proc.process(20, "another");
    recording.tick(ms(100));
    recording.tick(ms(200));
    let trace = recording.trace();
    let names: Vec<_> = trace.processes.iter().map(|process| &*process.2[0]).collect();
    assert_eq!(names, ["/bin/one", "/bin/another", "/bin/two"]);
}

#[test]
fn events_are_ignored_if_the_config_says_so() {
    let proc = two_processes();
    let config = ProcessStatsConfig { quirks: vec![Quirks::DISABLE_ON_DEMAND], ..Default::default() };
    let mut recording = Recording::start(&proc.path, &config);
    recording.observe(&[], &[20, 21]);
    assert_eq!(recording.trace(), Trace::default());
}

#[test]
fn an_id_that_was_given_again_is_described_again() {
    let proc = two_processes();
    proc.file("loadavg", "0.00 0.00 0.00 1/80 30\n");
    let mut recording = Recording::start(&proc.path, &scan_all());
    recording.observe(&[], &[10, 20]);
    proc.process(10, "another");
    proc.file("loadavg", "0.00 0.00 0.00 1/80 12\n");
    recording.observe(&[], &[10, 20]);
    let trace = recording.trace();
    assert_eq!(trace.pids(), [10, 10, 20], "the ids began again and reached 12");
    assert_eq!(trace.processes[0].2[0], "/bin/another");
}

#[test]
fn polls_write_all_counters_of_processes_with_memory() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    proc.process(20, "two");
    proc.file("10/oom_score_adj", "-900\n");
    proc.file("10/smaps_rollup", include_bytes!("testdata/smaps_rollup"));
    proc.file("10/stat", "10 (one) S 1 10 10 0 -1 4194560 4 7 0 0 3 2 5 6 20 0 1 0 250 15126528 1847\n");
    proc.file("10/dmabuf_rss", "409600\n");
    proc.file("self/dmabuf_rss", "0\n");
    proc.file("2/status", include_bytes!("testdata/kthread_status"));
    let config = ProcessStatsConfig {
        record_process_runtime: Some(true),
        record_process_dmabuf_rss: Some(true),
        scan_smaps_rollup: Some(true),
        ..polls(0)
    };
    let mut recording = Recording::start(&proc.path, &config);
    recording.tick(ms(0));
    let packets = recording.packets();
    let stats = TracePacketReader::new(&packets[0]).process_stats().expect("counters");
    assert_eq!(stats.processes().count(), 2, "threads of the kernel have no counters");
    let process = stats.processes().find(|process| process.pid() == Some(10)).expect("the process");
    let memory = [
        process.vm_size_kb(),
        process.vm_rss_kb(),
        process.rss_anon_kb(),
        process.rss_file_kb(),
        process.rss_shmem_kb(),
        process.vm_swap_kb(),
        process.vm_locked_kb(),
        process.vm_hwm_kb(),
    ];
    assert_eq!(memory, [8000, 2510, 1000, 1500, 10, 12, 4, 3500].map(Some));
    let rollup = [
        process.smr_rss_kb(),
        process.smr_pss_kb(),
        process.smr_pss_anon_kb(),
        process.smr_pss_file_kb(),
        process.smr_pss_shmem_kb(),
        process.smr_swap_pss_kb(),
    ];
    assert_eq!(rollup, [1756, 264, 100, 164, 0, 0].map(Some));
    let ns_per_tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    let runtime = (process.runtime_user_mode(), process.runtime_kernel_mode());
    assert_eq!(runtime, (Some(3 * ns_per_tick), Some(2 * ns_per_tick)));
    assert_eq!((process.oom_score_adj(), process.dmabuf_rss_kb()), (Some(-900), Some(400)));
    let trace = Trace::new(&packets);
    assert_eq!(trace.pids(), [10, 20], "processes that a poll meets are described");
}

#[test]
fn the_times_of_a_process_that_did_not_run_are_not_read_again() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    let stat = |user: u32| {
        let stat = format!("10 (one) S 1 10 10 0 -1 0 0 0 0 0 {user} 2 0 0 20 0 1 0 100 0 0\n");
        proc.file("10/stat", stat);
    };
    proc.file("10/statm", "10 5 1 1 0 2 0\n");
    proc.file("10/schedstat", "100 20 3\n");
    stat(3);
    let config = ProcessStatsConfig { record_process_runtime: Some(true), ..polls(0) };
    let mut recording = Recording::start(&proc.path, &config);
    // The first polls find out that it has one thread that does not run.
    (0..4).for_each(|poll| recording.tick(ms(poll * 100)));
    stat(9);
    recording.tick(ms(400));
    proc.file("10/schedstat", "101 20 3\n");
    recording.tick(ms(500));
    let packets = recording.packets();
    let stats = packets.iter().filter_map(|packet| TracePacketReader::new(packet).process_stats());
    let times: Vec<_> = stats.flat_map(|stats| stats.processes()).map(|process| process.runtime_user_mode()).collect();
    let ns_per_tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    assert_eq!(times, [3, 3, 3, 3, 3, 9].map(|ticks| Some(ticks * ns_per_tick)));
}

#[test]
fn unchanged_values_wait_until_the_cache_period_ends() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    let rss_of = |ttl_ms, polls_until_change: u64| {
        let mut recording = Recording::start(&proc.path, &polls(ttl_ms));
        for poll in 0..polls_until_change {
            recording.tick(ms(poll * 100));
        }
        recording.trace().rss
    };
    assert_eq!(rss_of(0, 3), [(10, Some(2510)); 3]);
    assert_eq!(rss_of(300, 7), [(10, Some(2510)); 3], "polls 1, 4 and 7");
}

#[test]
fn only_changed_values_are_written() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    let mut recording = Recording::start(&proc.path, &polls(10_000));
    recording.tick(ms(0));
    proc.file("10/oom_score_adj", "100\n");
    recording.tick(ms(100));
    recording.tick(ms(150));
    recording.tick(ms(200));
    assert_eq!(recording.trace().rss, [(10, None), (10, Some(2510))], "only the adjustment was written");
}

#[test]
fn a_process_that_ended_is_forgotten_and_its_id_may_come_again() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    proc.process(20, "two");
    let mut recording = Recording::start(&proc.path, &polls(10_000));
    recording.tick(ms(0));
    proc.remove("10");
    recording.tick(ms(100));
    proc.process(10, "one");
    recording.tick(ms(200));
    assert_eq!(recording.trace().rss, [(10, Some(2510)), (10, Some(2510)), (20, Some(2520))]);
}

#[test]
fn a_cleared_instance_begins_again_as_processes_are_met() {
    let proc = two_processes();
    let mut recording = Recording::start(&proc.path, &scan_all());
    recording.source.clear_incremental_state();
    recording.observe(&[], &[10]);
    recording.observe(&[], &[10]);
    let trace = recording.trace();
    assert_eq!(trace.pids(), [10, 10, 20]);
    assert_eq!((trace.packets, trace.cleared), (2, 2));
}

#[test]
fn open_files_are_written_once_per_cache_period() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    proc.folder("10/fd");
    let link = |number: &str, target: &str| {
        std::os::unix::fs::symlink(target, proc.path.join("10/fd").join(number)).expect("a link");
    };
    link("0", "/dev/null");
    link("7", "socket:[123]");
    let config = ProcessStatsConfig { resolve_process_fds: Some(true), ..polls(10_000) };
    let mut recording = Recording::start(&proc.path, &config);
    recording.tick(ms(0));
    link("9", "/tmp/(deleted) \n");
    recording.tick(ms(100));
    recording.tick(ms(200));
    let mut files = Vec::new();
    for packet in recording.packets() {
        let stats = TracePacketReader::new(&packet).process_stats();
        for process in stats.iter().flat_map(|stats| stats.processes()) {
            files.extend(process.fds().map(|file| {
                (file.fd().expect("a number"), String::from_utf8_lossy(file.path().expect("a path")).into_owned())
            }));
        }
    }
    files.sort();
    assert_eq!(files, [(0, "/dev/null".into()), (7, "socket:[123]".into()), (9, "/tmp/(deleted) \n".to_owned())]);
}

#[test]
fn open_files_are_written_at_the_start_without_polls() {
    let proc = FakeProc::new();
    proc.process(10, "one");
    proc.folder("10/fd");
    std::os::unix::fs::symlink("/dev/null", proc.path.join("10/fd/1")).expect("a link");
    let config = ProcessStatsConfig { resolve_process_fds: Some(true), ..scan_all() };
    let packets = Recording::start(&proc.path, &config).packets();
    let stats = packets.iter().find_map(|packet| TracePacketReader::new(packet).process_stats()).expect("counters");
    let process = stats.processes().next().expect("a process");
    assert_eq!((process.fds().count(), process.vm_rss_kb()), (1, None));
}

#[test]
fn a_large_machine_is_scanned_in_slices() {
    let proc = FakeProc::new();
    for pid in 1..=1000 {
        proc.process(pid, "many");
    }
    let config = ProcessStatsConfig { scan_all_processes_on_start: Some(true), ..polls(0) };
    let mut recording = Recording::start(&proc.path, &config);
    assert_eq!(recording.source.deadline(), Some(Duration::ZERO), "the next turn goes on");
    recording.tick(ms(1));
    recording.tick(ms(2));
    assert_eq!(recording.source.deadline(), Some(ms(100)), "the next poll");
    let trace = recording.trace();
    assert!(trace.pids().into_iter().eq(1..=1000));
    assert!(trace.rss.iter().map(|process| process.0).eq(1..=1000));
    assert!(trace.packets > 4, "{} packets", trace.packets);
    assert_eq!(trace.cleared, 1);
}

#[test]
fn odd_files_do_no_harm() {
    let proc = FakeProc::new();
    for (pid, status) in [
        (1, &b""[..]),
        (2, b"\xff\xff\n:\n::\n"),
        (3, b"Tgid:\t-3\nPid:\t3\n"),
        (4, b"Name:\tx\nTgid:\t5\nPid:\t4\n"),
        (6, b"Tgid:\t99999999999\nPid:\t6\nVmSize:\n"),
    ] {
        proc.file(&format!("{pid}/status"), status);
        proc.file(&format!("{pid}/stat"), b")");
        proc.folder(&format!("{pid}/task/{pid}"));
    }
    proc.folder("7");
    let config = ProcessStatsConfig {
        scan_all_processes_on_start: Some(true),
        record_process_runtime: Some(true),
        record_process_age: Some(true),
        resolve_process_fds: Some(true),
        ..polls(0)
    };
    let mut recording = Recording::start(&proc.path, &config);
    recording.tick(ms(0));
    recording.observe(&[-1, i32::MAX], &[-5, 1, 2, 3, 4, 5, 6, 7, i32::MAX]);
    assert_eq!(recording.trace().pids(), []);
}

/// The real `/proc`, while programs begin and end.
#[test]
fn processes_that_vanish_do_no_harm() {
    let config = ProcessStatsConfig {
        scan_all_processes_on_start: Some(true),
        record_thread_names: Some(true),
        record_process_age: Some(true),
        record_process_runtime: Some(true),
        scan_smaps_rollup: Some(true),
        resolve_process_fds: Some(true),
        ..polls(0)
    };
    let mut recording = Recording::start(Path::new("/proc"), &config);
    let script = "i=0; while [ $i -lt 300 ]; do (exit 0) & i=$((i+1)); done; wait; echo done";
    let mut shell = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("a shell");
    let pid = i32::try_from(shell.id()).expect("a pid");
    for poll in 0..10 {
        recording.tick(ms(poll * 100));
        recording.observe(&[], &(pid..pid + 300).collect::<Vec<_>>());
    }
    let mut text = String::new();
    shell.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
    shell.wait().expect("its end");
    assert_eq!(text, "done\n");
    recording.tick(ms(2000));
    let trace = recording.trace();
    let own = i32::try_from(std::process::id()).expect("a pid");
    assert!(trace.processes.iter().any(|process| process.0 == own));
    assert!(trace.rss.iter().filter(|process| process.0 == own).count() > 5);
    let pids: BTreeSet<i32> = trace.pids().into_iter().collect();
    assert!(trace.threads.iter().all(|thread| thread.0 != thread.1 || pids.contains(&thread.1)));
}

/// Names are those of the threads, whatever bytes they have.
#[test]
fn strange_names_of_threads_come_as_they_are() {
    let names = ["a b", "(x) S 1", "new\nline", "back\\slash", "\u{1b}[31m", "\\n"];
    let (stop, threads): (Vec<_>, Vec<_>) = names
        .iter()
        .map(|name| {
            let (stop, wait) = std::sync::mpsc::channel::<()>();
            let name = (*name).to_owned();
            (stop, std::thread::Builder::new().name(name).spawn(move || wait.recv()).expect("a thread"))
        })
        .unzip();
    let config = ProcessStatsConfig { record_thread_names: Some(true), ..scan_all() };
    let own = i32::try_from(std::process::id()).expect("a pid");
    // A new thread names itself.
    for _ in 0..1000 {
        let trace = Recording::start(Path::new("/proc"), &config).trace();
        let found = trace.threads.iter().filter(|thread| thread.1 == own);
        let found: BTreeSet<_> = found.filter_map(|thread| thread.2.as_deref()).collect();
        if names.iter().all(|name| found.contains(name)) {
            drop(stop);
            assert!(threads.into_iter().all(|thread| thread.join().is_ok()));
            return;
        }
    }
    panic!("not all names came");
}
