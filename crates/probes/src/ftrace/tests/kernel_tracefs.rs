//! The kernel's tracefs, with an instance for one test.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;

use esatto_protozero::Owned as _;
use esatto_schema::ftrace_config::CompactSchedConfig;
use esatto_schema::ftrace_stats::Phase;
use esatto_schema::{DataSourceConfig, FrozenFtraceConfig, FtraceConfig, TracePacketReader};

use super::TestFolder;
use super::recording::{ftrace, instance, places};
use crate::data_source::{DataSource as _, Instance, InstanceId, Observations, TracingSession};
use crate::ftrace::FrozenFtrace;
use crate::test_writer::TestWriter;
use crate::worker::monotonic_now;

/// The kernel's tracefs at a mount point of the test, and a tracefs instance of its own.
struct KernelTracefs {
    folder: TestFolder,
    name: String,
}

impl KernelTracefs {
    /// Mounts it.
    fn mount(name: &str) -> Result<Self, String> {
        let folder = TestFolder::new(&format!("kernel-{name}"));
        folder.write("t/x", "");
        std::fs::remove_file(folder.path().join("t/x")).expect("a file");
        let mounted = Command::new("mount").args(["-t", "tracefs", "t"]).arg(folder.path().join("t")).output();
        let mounted = mounted.map_err(|why| why.to_string())?;
        if !mounted.status.success() {
            return Err(String::from_utf8_lossy(&mounted.stderr).trim().to_owned());
        }
        let tracefs = Self { name: format!("esatto-{name}-{}", std::process::id()), folder };
        std::fs::create_dir(tracefs.instance()).map_err(|why| why.to_string())?;
        Ok(tracefs)
    }

    fn top(&self) -> PathBuf {
        self.folder.path().join("t")
    }

    fn instance(&self) -> PathBuf {
        self.top().join("instances").join(&self.name)
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.instance().join(file)).unwrap_or_else(|why| panic!("{file}: {why}"))
    }

    fn settings(&self) -> Vec<String> {
        let files = ["tracing_on", "current_tracer", "trace_clock", "buffer_percent", "events/enable", "set_event_pid"];
        files.map(|file| format!("{file}: {}", self.read(file).trim())).to_vec()
    }

    fn config(&self) -> FtraceConfig {
        let events = ["sched/sched_switch", "sched/sched_waking", "ftrace/print"];
        FtraceConfig {
            ftrace_events: events.map(Into::into).to_vec(),
            buffer_size_kb: Some(8192),
            instance_name: Some(self.name.as_str().into()),
            ..FtraceConfig::default()
        }
    }
}

impl Drop for KernelTracefs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(self.instance());
        let _ = Command::new("umount").arg(self.top()).status();
    }
}

/// Runs a test that needs the kernel's tracefs. Where there is none, it says so.
fn with_tracefs(name: &str, test: impl FnOnce(&KernelTracefs)) {
    match KernelTracefs::mount(name) {
        Ok(tracefs) => test(&tracefs),
        Err(why) => {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("a test");
            let why = format!("no tracefs: {}", why.replace(['\n', '\t'], " "));
            std::io::stderr().write_all(format!("SKIP {name}: {why}\n").as_bytes()).expect("stderr");
            if let Some(file) = std::env::var_os("ESATTO_SKIPS") {
                let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
                file.and_then(|mut file| file.write_all(format!("{name}\t{why}\n").as_bytes())).expect("a note");
            }
        }
    }
}

/// Lets two threads wake each other, starts a program, and writes a mark.
fn workload(instance: &Path) {
    let ((to, from), (back, answers)) = (mpsc::channel(), mpsc::channel());
    let thread = std::thread::spawn(move || from.iter().for_each(|number: u32| back.send(number).expect("a receiver")));
    for number in 0..500 {
        to.send(number).expect("a receiver");
        answers.recv().expect("an answer");
    }
    drop(to);
    thread.join().expect("a thread");
    Command::new("true").status().expect("a program");
    std::fs::write(instance.join("trace_marker"), "a mark\n").expect("a marker");
}

/// Events by CPU and pid in the kernel's own text of the buffer.
fn counts_in_text(text: &str) -> BTreeMap<(u32, i32), u64> {
    let mut counts = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let found = line.match_indices(" [").find_map(|(at, _)| {
            let cpu = line[at + 2..].split_once("] ")?.0.parse().ok()?;
            let pid = line[..at].trim_end().rsplit('-').next()?.parse().ok()?;
            Some((cpu, pid))
        });
        *counts.entry(found.unwrap_or_else(|| panic!("{line}"))).or_insert(0) += 1;
    }
    counts
}

#[test]
fn a_recording_has_the_events_that_the_kernel_shows() {
    with_tracefs("events", |tracefs| {
        let before = tracefs.settings();
        let run = tracefs.folder.path().join("run");
        let mut source = ftrace(&tracefs.top(), &run);
        let full = FtraceConfig {
            compact_sched: Some(CompactSchedConfig { enabled: Some(false), ..CompactSchedConfig::default() }),
            ..tracefs.config()
        };
        source.set_up(instance(1, full)).expect("a source");
        source.set_up(instance(2, tracefs.config())).expect("a source");
        let (mut full, mut compact) = (TestWriter::new(), TestWriter::new());
        source.start(InstanceId(1), full.writer());
        source.start(InstanceId(2), compact.writer());
        workload(&tracefs.instance());
        std::fs::write(tracefs.instance().join("tracing_on"), "0").expect("a switch");
        let expected = counts_in_text(&tracefs.read("trace"));
        let mut observations = Observations::new();
        source.flush(InstanceId(1), &mut observations);
        source.flush(InstanceId(2), &mut observations);
        std::fs::write(tracefs.instance().join("tracing_on"), "1").expect("a switch");
        source.stop(InstanceId(1));
        source.stop(InstanceId(2));
        assert_eq!(tracefs.settings(), before);
        assert!(!tracefs.read("buffer_size_kb").starts_with("8192"));
        assert_eq!(std::fs::read_dir(&run).expect("a folder").count(), 0, "no journal is left");

        let packets = full.packets();
        let mut counts = BTreeMap::new();
        let (mut switches, mut wakings, mut marks) = (0, 0, 0);
        for bundle in packets.iter().filter_map(|packet| TracePacketReader::new(packet).ftrace_events()) {
            assert_eq!((bundle.lost_events(), bundle.error().count()), (None, 0));
            for event in bundle.event() {
                let pid = event.pid().expect("a pid") as i32;
                *counts.entry((bundle.cpu().expect("a CPU"), pid)).or_insert(0) += 1;
                switches += usize::from(event.sched_switch().is_some());
                wakings += usize::from(event.sched_waking().is_some());
                marks += usize::from(event.print().is_some_and(|print| print.buf() == Some(b"a mark\n")));
            }
        }
        assert_eq!(counts, expected);
        assert!(switches > 500 && wakings > 500, "{switches} {wakings}");
        assert_eq!(marks, 1);
        let packets = compact.packets();
        let bundles = packets.iter().filter_map(|packet| TracePacketReader::new(packet).ftrace_events());
        let scheduling: Vec<_> = bundles.filter_map(|bundle| bundle.compact_sched()).collect();
        let compact_switches: usize = scheduling.iter().map(|sched| sched.switch_timestamp().count()).sum();
        let compact_wakings: usize = scheduling.iter().map(|sched| sched.waking_timestamp().count()).sum();
        assert_eq!((compact_switches, compact_wakings), (switches, wakings));
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        assert!(observations.iter().any(|(_, observed)| observed.tids.contains(&own)), "{observations:?}");
    });
}

#[test]
fn the_buffer_is_empty_at_the_start_and_at_the_end_of_a_recording() {
    with_tracefs("empty", |tracefs| {
        // A new clock clears the buffer, the same one does not.
        for clock in ["local", "boot"] {
            std::fs::write(tracefs.instance().join("trace_clock"), clock).expect("a clock");
            std::fs::write(tracefs.instance().join("trace_marker"), "an old mark\n").expect("a marker");
            assert!(tracefs.read("trace").contains("an old mark"));
            let mut source = ftrace(&tracefs.top(), &tracefs.folder.path().join("run"));
            source.set_up(instance(1, tracefs.config())).expect("a source");
            assert!(tracefs.read("trace_clock").contains("[boot]"));
            assert!(!tracefs.read("trace").contains("an old mark"), "{clock}");
            let test = TestWriter::new();
            source.start(InstanceId(1), test.writer());
            workload(&tracefs.instance());
            source.stop(InstanceId(1));
            assert!(tracefs.read("trace").lines().all(|line| line.starts_with('#')), "{clock}");
            assert!(tracefs.read("trace_clock").contains(&format!("[{clock}]")));
        }
    });
}

#[test]
fn a_recording_of_all_events_can_be_made() {
    with_tracefs("all", |tracefs| {
        let mut source = ftrace(&tracefs.top(), &tracefs.folder.path().join("run"));
        let config = FtraceConfig {
            // All but those that happen at each instruction of this test.
            ftrace_events: ["sched/*", "task/*", "timer/*", "signal/*", "block/*"].map(Into::into).to_vec(),
            syscall_events: vec!["sys_getppid".into()],
            use_monotonic_raw_clock: Some(true),
            ..tracefs.config()
        };
        source.set_up(instance(1, config)).expect("a source");
        assert!(tracefs.read("trace_clock").contains("[mono_raw]"));
        assert_eq!(tracefs.read("events/raw_syscalls/sys_enter/filter").trim(), "id == 110");
        let mut test = TestWriter::new();
        source.start(InstanceId(1), test.writer());
        let _ = rustix::process::getppid();
        workload(&tracefs.instance());
        source.flush(InstanceId(1), &mut Observations::new());
        source.stop(InstanceId(1));
        assert_eq!(tracefs.read("events/raw_syscalls/sys_enter/filter").trim(), "none");
        let packets = test.packets();
        let mut system_calls = Vec::new();
        for bundle in packets.iter().filter_map(|packet| TracePacketReader::new(packet).ftrace_events()) {
            assert_eq!(bundle.error().count(), 0);
            assert_eq!(bundle.ftrace_clock().map(|clock| clock.0), Some(4));
            assert!(bundle.boot_timestamp().is_some_and(|time| time > 0));
            system_calls.extend(bundle.event().filter_map(|event| event.sys_enter()?.id()));
        }
        assert!(!system_calls.is_empty() && system_calls.iter().all(|id| *id == 110), "{system_calls:?}");
    });
}

#[test]
fn a_full_pipe_is_readable_before_the_period_ends() {
    with_tracefs("watermark", |tracefs| {
        let mut source = ftrace(&tracefs.top(), &tracefs.folder.path().join("run"));
        let config = FtraceConfig { buffer_size_kb: Some(64), drain_buffer_percent: Some(10), ..tracefs.config() };
        source.set_up(instance(1, config)).expect("a source");
        let mut test = TestWriter::new();
        source.start(InstanceId(1), test.writer());
        source.tick(monotonic_now(), &mut Observations::new());
        for number in 0..500 {
            let mark = format!("{number:050}\n");
            std::fs::write(tracefs.instance().join("trace_marker"), mark).expect("a marker");
        }
        let deadline = source.deadline().expect("a period");
        assert!(!source.descriptors().is_empty());
        let before = deadline.saturating_sub(core::time::Duration::from_millis(1));
        source.tick(before.min(monotonic_now()), &mut Observations::new());
        source.stop(InstanceId(1));
        let packets = test.packets();
        let marks = packets.iter().filter_map(|packet| TracePacketReader::new(packet).ftrace_events());
        assert!(
            marks.flat_map(|bundle| bundle.event().filter_map(|event| event.print()).count().checked_sub(1)).count()
                > 0
        );
    });
}

#[test]
fn a_buffer_that_the_kernel_refuses_has_the_usual_size() {
    with_tracefs("refused-size", |tracefs| {
        let mut source = ftrace(&tracefs.top(), &tracefs.folder.path().join("run"));
        // 64 GiB for each CPU: bytes where KiB were asked for.
        let config = FtraceConfig { buffer_size_kb: Some(64 << 20), ..tracefs.config() };
        source.set_up(instance(1, config)).expect("a source");
        let has: u32 = tracefs.read("buffer_size_kb").trim().parse().expect("a number");
        // The kernel rounds it up.
        assert!((2048..9000).contains(&has), "{has}");
        let mut test = TestWriter::new();
        source.start(InstanceId(1), test.writer());
        source.stop(InstanceId(1));
        let packets = test.packets();
        let told: Vec<&[u8]> = packets
            .iter()
            .filter_map(|packet| TracePacketReader::new(packet).ftrace_stats()?.atrace_errors())
            .collect();
        let expected = "KiB instead";
        assert!(told.iter().any(|told| String::from_utf8_lossy(told).contains(expected)), "{told:?}");
        // A buffer that is larger than the usual one keeps its size.
        std::fs::write(tracefs.instance().join("buffer_size_kb"), "16384").expect("a size");
        let larger = tracefs.read("buffer_size_kb");
        let config = FtraceConfig { buffer_size_kb: Some(64 << 20), ..tracefs.config() };
        source.set_up(instance(2, config)).expect("a source");
        assert_eq!(tracefs.read("buffer_size_kb"), larger);
        source.stop(InstanceId(2));
    });
}

#[test]
fn a_frozen_buffer_is_read_once_and_cleared() {
    with_tracefs("frozen", |tracefs| {
        std::fs::write(tracefs.instance().join("buffer_size_kb"), "256").expect("a size");
        for number in 0..1000 {
            std::fs::write(tracefs.instance().join("trace_marker"), format!("mark {number}\n")).expect("a marker");
        }
        std::fs::write(tracefs.instance().join("tracing_on"), "0").expect("a switch");
        let name = tracefs.name.as_str().into();
        let config = FrozenFtraceConfig { instance_name: Some(name), ..FrozenFtraceConfig::default() };
        let config = DataSourceConfig { frozen_ftrace_config: Some(config), ..DataSourceConfig::default() };
        let mut source = FrozenFtrace::new(places(&tracefs.top(), &tracefs.folder.path().join("run")));
        let instance = Instance { id: InstanceId(1), session: TracingSession(1), config: config.encode() };
        source.set_up(instance).expect("an instance");
        let mut test = TestWriter::new();
        source.start(InstanceId(1), test.writer());
        while source.deadline().is_some() {
            source.tick(monotonic_now(), &mut Observations::new());
        }
        source.stop(InstanceId(1));
        assert!(tracefs.read("trace").lines().all(|line| line.starts_with('#')));
        let packets = test.packets();
        let packets: Vec<_> = packets.iter().map(|packet| TracePacketReader::new(packet)).collect();
        let mut marks = Vec::new();
        for bundle in packets.iter().filter_map(|packet| packet.ftrace_events()) {
            marks.extend(bundle.event().filter_map(|event| Some((event.timestamp()?, event.print()?.buf()?.to_vec()))));
        }
        marks.sort();
        let texts: Vec<_> = marks.into_iter().map(|(_, text)| text).collect();
        let expected: Vec<_> = (0..1000).map(|number| format!("mark {number}\n").into_bytes()).collect();
        assert_eq!(texts, expected);
        let stats: Vec<_> = packets.iter().filter_map(|packet| packet.ftrace_stats()).collect();
        assert_eq!(
            stats.iter().map(|stats| stats.phase()).collect::<Vec<_>>(),
            [Some(Phase::START_OF_TRACE), Some(Phase::END_OF_TRACE)]
        );
        assert_eq!(stats[0].preserve_ftrace_buffer(), Some(true));
    });
}

#[test]
fn the_text_of_the_kernel_is_read() {
    let mut text = String::new();
    let line = "  a [b-c] d-17      [001] d..2.  3416.598079: sched_switch: prev_comm=x prev_pid=1\n";
    text.push_str("# tracer: nop\n#\n");
    text.push_str(line);
    text.push_str(line);
    assert_eq!(counts_in_text(&text), BTreeMap::from([((1, 17), 2)]));
}
