//! Programs in pid namespaces. The trace processor finds the threads of their events, but takes the
//! names in their descriptors for those of other threads. So only some queries can be compared.

use std::process::Command;
use std::time::Duration;

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Peer, Skip, skip};
use esatto_trace::Engine;
use esatto_trace::tables::{Table as _, Tables};

use crate::traces::{Trace, written};
use crate::{ask, folder, queries};

/// Does not end while a test runs.
const ENDLESS: Workload = Workload { threads: 1, rounds: 1_000_000, pause_us: 1000 };

const CONFIG: &str = r#"
buffers { size_kb: 32768 fill_policy: DISCARD }
data_sources { config {
  name: "track_event"
  track_event_config { enabled_categories: "rendering" }
} }
data_sources { config {
  name: "linux.process_stats"
  process_stats_config { scan_all_processes_on_start: true record_thread_names: true }
} }
"#;

/// Asks the queries about namespaces; each one has rows.
fn compare(trace: &Trace) {
    let answered = ask(&queries(&folder().join("namespaces")), core::slice::from_ref(trace));
    assert!(answered.iter().all(|answered| *answered), "{}: all queries have rows: {answered:?}", trace.name);
}

#[test]
fn ids_of_a_trace_that_is_written_by_hand() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        compare(&written("namespaces/trace"));
        Ok(())
    });
}

/// Returns the pids and command lines of the processes that have slices on threads.
fn processes_of_slices(tables: &Tables) -> Vec<(i64, String)> {
    let mut processes: Vec<(i64, String)> = (0..tables.slice.rows())
        .filter_map(|row| {
            let thread = tables.track.utid[tables.slice.track_id[row].index()]?;
            let process = tables.thread.upid[thread.index()]?.index();
            let line = tables.process.cmdline[process].map_or("", |line| tables.strings.get(line));
            Some((tables.process.pid[process], line.to_owned()))
        })
        .collect();
    processes.sort();
    processes.dedup();
    processes
}

/// Records a program that takes itself for process 1.
fn recorded(program: Implementation) -> Result<(), Skip> {
    [Peer::Official, Peer::Producer, Peer::TraceProcessor].into_iter().try_for_each(Peer::require)?;
    let probe = Command::new("unshare").args(["--pid", "--fork", "true"]).output();
    if !probe.as_ref().is_ok_and(|probe| probe.status.success()) {
        return Err(Skip(format!("no process namespaces: {probe:?}")));
    }
    let harness = Harness::new();
    // Perfetto's service tells programs no other pid.
    let _service = harness.service(Implementation::Theirs);
    let _probes = harness.probes(program);
    let application = harness.application_command(program, ENDLESS);
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]).arg(application.get_program()).args(application.get_args());
    command.envs(application.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let contained = harness.start("contained", &mut command);
    harness.wait_for_producers(2);
    let mut found = Vec::new();
    for _ in 0..5 {
        let mut recording = harness.record(Implementation::Theirs, "trace", CONFIG);
        harness.wait_for_sessions(1);
        std::thread::sleep(Duration::from_millis(500));
        let path = recording.stop();
        compare(&Trace { name: format!("a program of {program} in a namespace"), path: path.clone() });
        let engine = Engine::read(std::fs::File::open(path).expect("a trace can be read"));
        found = processes_of_slices(&engine.tables);
        // If an event comes before the process tree, only the pid inside is known for it.
        if matches!(&found[..], [(pid, line)] if *pid > 1 && line.contains("producer")) {
            drop(contained);
            return Ok(());
        }
        std::fs::remove_file(harness.path("trace")).expect("it is there");
    }
    panic!("slices of one process, with its pid outside: {found:?}")
}

#[test]
fn ids_of_a_program_of_ours() {
    skip(|| recorded(Implementation::Ours));
}

#[test]
fn ids_of_a_program_of_perfetto() {
    skip(|| recorded(Implementation::Theirs));
}
