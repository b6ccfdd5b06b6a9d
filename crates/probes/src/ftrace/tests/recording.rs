//! Data sources that record from a tracefs: a fake one, and the kernel's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use esatto_protozero::Owned as _;
use esatto_schema::ftrace_stats::Phase;
use esatto_schema::{DataSourceConfig, FtraceConfig, FtraceStatsReader, TracePacketReader};

use super::TestFolder;
use crate::data_source::{DataSource as _, Instance, InstanceId, Observations, TracingSession};
use crate::ftrace::{Ftrace, JournalFolder, Places};
use crate::test_writer::TestWriter;
use crate::worker::monotonic_now;

/// Makes the data source of a tracefs.
pub(super) fn ftrace(tracefs: &Path, run: &Path) -> Ftrace {
    Ftrace::new(places(tracefs, run), monotonic_now)
}

pub(super) fn places(tracefs: &Path, run: &Path) -> Places {
    Places {
        mount_points: vec![tracefs.to_owned()],
        proc: "/proc".into(),
        online_cpus: "/sys/devices/system/cpu/online".into(),
        journals: JournalFolder::at(run.to_owned()),
    }
}

fn fake(folder: &TestFolder) -> Ftrace {
    ftrace(folder.path(), &folder.path().join("run"))
}

pub(super) fn instance(id: u64, config: FtraceConfig) -> Instance {
    let config = DataSourceConfig { ftrace_config: Some(Box::new(config)), ..DataSourceConfig::default() };
    Instance { id: InstanceId(id), session: TracingSession(id), config: config.encode() }
}

fn events(events: &[&str]) -> FtraceConfig {
    FtraceConfig { ftrace_events: events.iter().map(|event| (*event).into()).collect(), ..FtraceConfig::default() }
}

/// Content of all files but the journal.
fn state_of(folder: &TestFolder) -> BTreeMap<PathBuf, Vec<u8>> {
    fn visit(folder: &Path, state: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, state);
            } else {
                let content = std::fs::read(&path).expect("a file");
                state.insert(path, content.trim_ascii().to_vec());
            }
        }
    }
    let mut state = BTreeMap::new();
    visit(folder.path(), &mut state);
    state
}

#[test]
fn all_settings_come_back_at_the_end() {
    let folder = TestFolder::new("restore").with_tracefs(2);
    // Kernels show the number that was written.
    folder.write("buffer_size_kb", "7\n");
    let before = state_of(&folder);
    let mut source = fake(&folder);
    let config = FtraceConfig {
        buffer_size_kb: Some(512),
        drain_buffer_percent: Some(30),
        syscall_events: vec!["sys_read".into(), "sys_nothing".into()],
        tids_to_trace: vec![17, 18],
        tracing_cpumask: Some("1".into()),
        ..events(&["sched/sched_switch", "no/event"])
    };
    source.set_up(instance(1, config)).expect("a source");
    assert_eq!(folder.read("trace_clock"), "boot");
    assert_eq!(folder.read("buffer_size_kb"), "512");
    assert_eq!(folder.read("tracing_on"), "0");
    assert_eq!(folder.read("set_event_pid"), "17 18");
    assert_eq!(folder.read("events/sched/sched_switch/enable"), "1");
    assert_eq!(folder.read("events/task/task_newtask/enable"), "1", "task events come with scheduling");
    assert_eq!(folder.read("events/raw_syscalls/sys_enter/filter"), "id == 0");
    let mut test = TestWriter::new();
    source.start(InstanceId(1), test.writer());
    assert_eq!(folder.read("tracing_on"), "1");
    assert_eq!(folder.read("buffer_percent"), "30");
    source.flush(InstanceId(1), &mut Observations::new());
    source.stop(InstanceId(1));
    let mut after = state_of(&folder);
    // The fake has no list to select from.
    let clock = folder.path().join("trace_clock");
    assert_eq!(after.insert(clock.clone(), before[&clock].clone()), Some(b"local".to_vec()));
    let filters =
        ["sys_enter", "sys_exit"].map(|event| folder.path().join(format!("events/raw_syscalls/{event}/filter")));
    for filter in filters {
        assert_eq!(after.insert(filter, b"none".to_vec()), Some(b"0".to_vec()));
    }
    assert_eq!(after, before);
    let packets = test.packets();
    let stats: Vec<_> = packets.iter().filter_map(|packet| TracePacketReader::new(packet).ftrace_stats()).collect();
    assert_eq!(stats.len(), 2);
    assert_eq!((stats[0].phase(), stats[1].phase()), (Some(Phase::START_OF_TRACE), Some(Phase::END_OF_TRACE)));
    let unknown = |stats: &FtraceStatsReader<'_>| stats.unknown_ftrace_events().map(<[u8]>::to_vec).collect::<Vec<_>>();
    assert_eq!(unknown(&stats[1]), [b"no/event".to_vec(), b"sys_nothing".to_vec()]);
    let cpus: Vec<_> = stats[1].cpu_stats().map(|cpu| (cpu.cpu(), cpu.dropped_events(), cpu.now_ts())).collect();
    assert_eq!(cpus, [(Some(0), Some(7), Some(6.25)), (Some(1), Some(7), Some(6.25))]);
    assert_eq!(stats[1].cached_cpu_buffer_size_pages(), Some(128));
    assert_eq!(stats[1].cpu_buffer_size_pages(), Some(128));
}

#[test]
fn other_users_of_tracefs_keep_what_they_have() {
    let folder = TestFolder::new("shared").with_tracefs(1);
    folder.write("events/enable", "X\n");
    folder.write("events/sched/sched_wakeup/enable", "1\n");
    folder.write("events/raw_syscalls/sys_enter/filter", "common_pid == 3\n");
    folder.write("buffer_size_kb", "4096\n");
    folder.write("trace", "events");
    let before = state_of(&folder);
    let mut source = fake(&folder);
    let config = FtraceConfig {
        buffer_size_kb: Some(512),
        syscall_events: vec!["sys_read".into()],
        ..events(&["sched/sched_wakeup", "task/task_rename"])
    };
    source.set_up(instance(1, config)).expect("a source");
    source.start(InstanceId(1), TestWriter::new().writer());
    let mut while_recording = state_of(&folder);
    for event in ["task/task_rename", "raw_syscalls/sys_enter", "raw_syscalls/sys_exit"] {
        let switch = folder.path().join(format!("events/{event}/enable"));
        assert_eq!(while_recording.insert(switch, b"0".to_vec()), Some(b"1".to_vec()), "{event}");
    }
    let exit_filter = folder.path().join("events/raw_syscalls/sys_exit/filter");
    while_recording.insert(exit_filter.clone(), b"none".to_vec());
    while_recording.retain(|path, _| !path.starts_with(folder.path().join("run")));
    assert_eq!(while_recording, before);
    source.stop(InstanceId(1));
    let mut after = state_of(&folder);
    after.insert(exit_filter, b"none".to_vec());
    assert_eq!(after, before);
}

#[test]
fn sessions_share_events_and_the_last_one_switches_off() {
    let folder = TestFolder::new("sessions").with_tracefs(1);
    let mut source = fake(&folder);
    source.set_up(instance(1, events(&["task/task_rename", "sched/sched_wakeup"]))).expect("a source");
    source.set_up(instance(2, events(&["task/task_rename"]))).expect("a source");
    let switch = |event: &str| folder.read(&format!("events/{event}/enable"));
    source.start(InstanceId(1), TestWriter::new().writer());
    source.stop(InstanceId(1));
    assert_eq!((switch("task/task_rename").as_str(), switch("sched/sched_wakeup").as_str()), ("1", "0"));
    assert_eq!(folder.read("tracing_on"), "0", "the other one is not started");
    source.stop(InstanceId(2));
    assert_eq!(switch("task/task_rename"), "0");
    assert_eq!(folder.read("tracing_on"), "1");
}

#[test]
fn a_killed_daemon_is_undone_at_the_next_start() {
    let folder = TestFolder::new("killed").with_tracefs(1);
    let mut killed = fake(&folder);
    killed.set_up(instance(1, events(&["task/task_rename"]))).expect("a source");
    let run = folder.path().join("run");
    let journal = std::fs::read_dir(&run).expect("a folder").flatten().next().expect("a journal").path();
    let content = std::fs::read(&journal).expect("a journal");
    killed.stop(InstanceId(1));
    // As it was while it recorded.
    folder.write("events/task/task_rename/enable", "1");
    folder.write("tracing_on", "0");
    std::fs::write(run.join("ftrace-1-1.undo"), content).expect("a journal");
    drop(fake(&folder));
    assert_eq!(folder.read("events/task/task_rename/enable"), "0");
    assert_eq!(folder.read("tracing_on").trim(), "1");
}

#[test]
fn a_tracer_of_another_program_is_not_ended() {
    let folder = TestFolder::new("tracer").with_tracefs(1);
    folder.write("current_tracer", "function\n");
    let error = fake(&folder).set_up(instance(1, events(&["task/task_rename"]))).expect_err("in use");
    assert!(error.0.contains("in use by the tracer `function`; end it with `echo nop > "), "{error}");
    assert_eq!(folder.read("tracing_on"), "1\n");
}

#[test]
fn exclusive_features_need_an_instance_of_their_own() {
    let folder = TestFolder::new("exclusive").with_tracefs(1);
    let mut source = fake(&folder);
    source.set_up(instance(1, events(&["task/task_rename"]))).expect("a source");
    let exclusive = FtraceConfig { tids_to_trace: vec![1], ..FtraceConfig::default() };
    let error = source.set_up(instance(2, exclusive)).expect_err("not the only one");
    assert!(error.0.contains("instance_name"), "{error}");
    assert_eq!(folder.read("set_event_pid"), "");
    source.stop(InstanceId(1));
}

#[test]
fn kernel_probes_are_made_and_removed() {
    use esatto_schema::ftrace_config::{KprobeEvent, kprobe_event::KprobeType};
    let folder = TestFolder::new("kprobes").with_tracefs(1);
    let mut source = fake(&folder);
    let probe = KprobeEvent {
        probe: Some("vfs_read".into()),
        r#type: Some(KprobeType::KPROBE_TYPE_BOTH),
        ..KprobeEvent::default()
    };
    source
        .set_up(instance(1, FtraceConfig { kprobe_events: vec![probe], ..FtraceConfig::default() }))
        .expect("a source");
    let made = "p:perfetto_kprobes/vfs_read vfs_read\nr1024:perfetto_kretprobes/vfs_read vfs_read\n";
    assert_eq!(folder.read("kprobe_events"), made);
    source.stop(InstanceId(1));
    let removed = "-:perfetto_kretprobes/vfs_read\n-:perfetto_kprobes/vfs_read\n";
    assert_eq!(folder.read("kprobe_events"), format!("{made}{removed}"));
}

#[test]
fn a_machine_with_512_cpus_is_set_up_and_torn_down_quickly() {
    let folder = TestFolder::new("large").with_tracefs(512);
    let mut source = fake(&folder);
    let begin = Instant::now();
    source.set_up(instance(1, events(&["sched/*", "task/*"]))).expect("a source");
    let mut test = TestWriter::new();
    source.start(InstanceId(1), test.writer());
    source.tick(monotonic_now(), &mut Observations::new());
    source.flush(InstanceId(1), &mut Observations::new());
    source.stop(InstanceId(1));
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let packets = test.packets();
    let stats: Vec<_> = packets.iter().filter_map(|packet| TracePacketReader::new(packet).ftrace_stats()).collect();
    assert_eq!(stats[1].cpu_stats().count(), 512);
}

#[test]
fn ten_thousand_events_that_do_not_exist_are_counted() {
    let folder = TestFolder::new("many").with_tracefs(1);
    let mut source = fake(&folder);
    let names: Vec<_> = (0..10_000).map(|number| format!("no/event{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    source.set_up(instance(1, events(&names))).expect("a source");
    let mut test = TestWriter::new();
    source.start(InstanceId(1), test.writer());
    source.flush(InstanceId(1), &mut Observations::new());
    source.stop(InstanceId(1));
    let packets = test.packets();
    let stats: Vec<_> = packets.iter().filter_map(|packet| TracePacketReader::new(packet).ftrace_stats()).collect();
    let unknown: Vec<_> = stats[1].unknown_ftrace_events().collect();
    assert_eq!(unknown.len(), 1001);
    assert_eq!(unknown[1000], "… and 9000 more".as_bytes());
}

#[test]
fn a_folder_without_tracefs_is_looked_at_again() {
    let folder = TestFolder::new("later");
    let mut source = fake(&folder);
    let error = source.set_up(instance(1, events(&["task/task_rename"]))).expect_err("no tracefs");
    assert!(error.0.contains("no tracefs"), "{error}");
    let folder = folder.with_tracefs(1);
    source.set_up(instance(2, events(&["task/task_rename"]))).expect("it is there now");
    source.stop(InstanceId(2));
    drop(folder);
}
