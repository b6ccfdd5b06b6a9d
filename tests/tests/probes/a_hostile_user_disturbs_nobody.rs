//! A user who gives threads and programs strange names and writes whatever he likes into
//! `trace_marker`: the others' data is whole, and terminals show his texts instead of obeying them.

use crate::tracefs;
use esatto_tests::Instance;
use esatto_tests::{Harness, Implementation, Peer, Program, Skip, esatto_bin, skip, tp, wait_until};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Clears the screen, sets the title, reverses the text, forges a line, and is no UTF-8.
const HOSTILE: &[u8] = b"a\x1b[2J\xc2\x9b31m\x1b]0;t\x07\xe2\x80\xaeb\xe2\x81\xa6\xff\xfe\nerror: c\r\x7f";
/// Names of threads, which have at most 15 bytes. The first looks like the end of a name in
/// `/proc/PID/stat`.
const NAMES: [&[u8]; 5] =
    [b"x) R 1 (\x1b[2J", b"\n\nerror: c\r", b"\xff\xfe\xc2\x9b31m", b"\xe2\x80\xae\x07\x7f", b" "];

/// Asserts that a text has no character that controls a terminal.
fn assert_harmless(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let acting = text.chars().find(|c| *c != '\n' && esatto_trace::escape::is_unsafe(*c));
    assert!(acting.is_none(), "{:?} in {text:?}", acting.expect("one"));
    assert!(!text.lines().any(|line| line.trim_start().starts_with("error: c")), "a forged line in\n{text}");
}

fn rename_to(name: &[u8]) {
    rustix::thread::set_name(&CString::new(name).expect("no zero")).expect("a short name");
}

/// Writes a text with one call.
fn mark(instance: &Instance, text: &[u8]) {
    // The kernel takes what it can.
    let _ = std::fs::write(instance.path("trace_marker"), text);
}

fn ftrace(instance: &Instance, events: &[&str]) -> String {
    let events: String = events.iter().map(|event| format!("ftrace_events: {event:?} ")).collect();
    format!(
        "buffers {{ size_kb: 65536 fill_policy: DISCARD }}
        data_sources {{ config {{ name: 'linux.ftrace' ftrace_config {{ instance_name: '{}' {events} }} }} }}\n",
        instance.name()
    )
}

const PROCESSES: &str = "
data_sources { config { name: 'linux.process_stats' process_stats_config {
  scan_all_processes_on_start: true record_thread_names: true proc_stats_poll_ms: 100
} } }
";

#[test]
fn his_texts_are_shown_and_not_obeyed() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let _turn = tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let mut command = harness.command(esatto_bin());
        let mut probes = harness.start("probes", command.args(["probes", "--log-level", "debug"]));
        harness.wait_for_data_source("linux.ftrace");

        let before = hostile_program(&harness);
        let instance = Instance::new("hostile");
        let record = |name: &str, config: &str| harness.record(Implementation::Ours, name, config);
        let all = ftrace(&instance, &["sched/*", "task/*", "ftrace/print"]) + PROCESSES;
        let mut recording = record("trace", &all);
        // Has few processes, so that `esatto info` shows each.
        let seen = "data_sources { config { name: 'linux.process_stats' } }";
        let mut few = record("few", &(ftrace(&instance, &["task/task_rename", "ftrace/print"]) + seen));
        harness.wait_for_sessions(2);
        instance.wait_until_on("task/task_rename");
        let renames = || NAMES.into_iter().for_each(rename_to);
        std::thread::spawn(renames).join().expect("no panic");
        let after = hostile_program(&harness);
        for text in [HOSTILE, b"B|1|", b"E", b"C|-1|\x1b[2J|99999999999999999999\n", b"\0\0", &[0xff; 5000]] {
            mark(&instance, text);
        }
        wait_until("the program is executed", || {
            let name = std::fs::read(format!("/proc/{}/comm", after.pid()));
            name.is_ok_and(|name| name == [NAMES[0], b"\n"].concat()).then_some(())
        });
        let (trace, _) = (recording.stop(), few.stop());

        assert!(probes.is_running(), "{}", probes.log());
        for log in [probes.log(), recording.program.log(), few.program.log()] {
            assert_harmless(log.as_bytes());
        }
        let info = |args: &[&str]| harness.command(esatto_bin()).args(args).output().expect("it runs");
        for file in ["trace", "few"] {
            let text = info(&["info", file]);
            assert!(text.status.success(), "{text:?}");
            assert_harmless(&text.stdout);
            let text = String::from_utf8_lossy(&text.stdout);
            assert!(file == "trace" || text.contains(r"a\u{1b}[2J\u{9b}31m"), "his program is there: {text}");
            let json = info(&["info", "--json", file]);
            assert_harmless(&json.stdout);
            let _: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
        }

        // Each of the names and texts is in the trace.
        let threads = tp::query(
            &trace,
            &format!(
                "select distinct extract_arg(arg_set_id, 'newcomm') as it from ftrace_event where name = 'task_rename';
                select distinct extract_arg(arg_set_id, 'buf') as it from ftrace_event where name = 'print';
                select name as it from process where pid = {};",
                before.pid()
            ),
        );
        let has = |at: usize, part: &str| threads[at].iter().any(|row: &tp::Row| row.text("it").contains(part));
        assert!(has(0, "x) R 1 (\u{1b}[2J") && has(0, "\n\nerror: c\r"), "{:?}", threads[0]);
        assert!(has(1, "error: c\r"), "{:?}", threads[1]);
        assert!(has(2, "error: c\r"), "{:?}", threads[2]);
        Ok(())
    });
}

/// Starts a program whose names are hostile: as file, as argument, and as its thread.
fn hostile_program(harness: &Harness) -> Program {
    let name = OsStr::from_bytes(HOSTILE);
    let file = harness.path(OsStr::from_bytes(NAMES[0]));
    if !file.exists() {
        std::fs::copy("/bin/sleep", &file).expect("there is /bin/sleep");
    }
    harness.start("hostile", harness.command(&file).arg0(name).arg("60"))
}

#[test]
fn a_flood_of_texts_on_one_processor_loses_nothing_of_another() {
    const RENAMES: usize = 500;
    skip(|| {
        Peer::TraceProcessor.require()?;
        let cpus = sched_getaffinity(None).expect("this thread has processors");
        let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| cpus.is_set(*cpu)).collect();
        let (Some(his), Some(ours)) = (cpus.first(), cpus.last().filter(|_| cpus.len() > 1)) else {
            return Err(Skip("one processor".into()));
        };
        let _turn = tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let mut probes = harness.probes(Implementation::Ours);
        let instance = Instance::new("flood");
        let record = |name: &str, event: &str| {
            harness.record(Implementation::Ours, name, &ftrace(&instance, &[event, "ftrace/print"]))
        };
        let mut flooded = record("flooded", "task/task_rename");
        // This session does not want his texts.
        let mut quiet = harness.record(Implementation::Ours, "quiet", &ftrace(&instance, &["task/task_rename"]));
        harness.wait_for_sessions(2);
        instance.wait_until_on("task/task_rename");
        let is_over = AtomicBool::new(false);
        let pin = |cpu: usize| {
            let mut only = CpuSet::new();
            only.set(cpu);
            sched_setaffinity(None, &only).expect("a processor of this thread");
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pin(*his);
                while !is_over.load(Ordering::Relaxed) {
                    mark(&instance, &HOSTILE.repeat(40));
                }
            });
            scope.spawn(|| {
                pin(*ours);
                for number in 0..RENAMES {
                    rename_to(format!("victim-{number}").as_bytes());
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                is_over.store(true, Ordering::Relaxed);
            });
        });
        let traces = [quiet.stop(), flooded.stop()];
        assert!(probes.is_running(), "{}", probes.log());
        for trace in &traces {
            let all = tp::query(
                trace,
                "select count(distinct extract_arg(arg_set_id, 'newcomm')) as n from ftrace_event
                where name = 'task_rename' and extract_arg(arg_set_id, 'newcomm') glob 'victim-*';
                select count(*) as n from ftrace_event where name = 'print';",
            );
            let is_flooded = trace == &traces[1];
            // The buffer of the session may be full of his texts.
            if !is_flooded {
                assert_eq!(all[0][0].int("n"), RENAMES as i64, "{}", trace.display());
            }
            assert_eq!(all[1][0].int("n") > 1000, is_flooded, "{}", trace.display());
        }
        Ok(())
    });
}
