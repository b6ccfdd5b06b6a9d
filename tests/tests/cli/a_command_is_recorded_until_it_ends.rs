//! `esatto record -o FILE -- COMMAND…` starts a private service, for commands with either SDK.

use esatto_tests::workload::{self, CONFIG_WITHOUT_DEBUG, Expected, Trace, Workload};
use esatto_tests::{Harness, Implementation, Peer, Program, Signal, Skip, esatto_bin, skip, tp, wait_until};
use std::path::Path;
use std::process::Command;

const SHORT: Workload = Workload { threads: 2, rounds: 100, pause_us: 200 };
const ENDLESS: Workload = Workload { threads: 2, rounds: 1 << 40, pause_us: 1000 };

fn peers(implementation: Implementation) -> Result<(), Skip> {
    Peer::TraceProcessor.require()?;
    if implementation == Implementation::Theirs { Peer::Producer.require() } else { Ok(()) }
}

/// `esatto record OPTIONS -o trace -- application`. The sockets in the environment are not to be
/// used.
fn record(harness: &Harness, options: &[&str], implementation: Implementation, workload: Workload) -> Program {
    let application = harness.application_command(implementation, workload);
    let mut command = harness.command(esatto_bin());
    command.arg("record").args(options).arg("-o").arg(harness.path("trace")).arg("--");
    command.arg(application.get_program()).args(application.get_args());
    harness.start("esatto-record", &mut command)
}

/// The process of the application, found in its trace.
fn pid(trace: &Path) -> u32 {
    let rows = tp::rows(trace, "select pid from process where name glob '*-producer'");
    assert_eq!(rows.len(), 1, "one application: {rows:?}");
    u32::try_from(rows[0].int("pid")).expect("a process id")
}

fn whole_with_config(implementation: Implementation) -> Result<(), Skip> {
    peers(implementation)?;
    let harness = Harness::new();
    let config = harness.write("config", CONFIG_WITHOUT_DEBUG);
    record(&harness, &["-c", config.to_str().expect("a path")], implementation, SHORT).wait_ok();
    let trace = harness.path("trace");
    workload::assert_whole(&trace, &[Expected { pid: pid(&trace), workload: SHORT, details: false }]);
    assert!(!harness.producer_socket().exists(), "private sockets are meant");
    Ok(())
}

fn whole_without_config(implementation: Implementation) -> Result<(), Skip> {
    peers(implementation)?;
    let harness = Harness::new();
    record(&harness, &["--all-categories"], implementation, SHORT).wait_ok();
    let trace = harness.path("trace");
    workload::assert_whole(&trace, &[Expected { pid: pid(&trace), workload: SHORT, details: true }]);
    Ok(())
}

/// A program that does not wait, and would be over before a service that it has just connected to
/// had anything to say.
#[test]
fn from_its_first_event() {
    skip(|| {
        peers(Implementation::Ours)?;
        let harness = Harness::new();
        let application = harness.application_command(Implementation::Ours, SHORT);
        let mut command = harness.command(esatto_bin());
        command.args(["record", "--all-categories", "-o"]).arg(harness.path("trace")).arg("--");
        command.arg(application.get_program());
        command.args(application.get_args().take(3)).arg("0");
        harness.start("esatto-record", &mut command).wait_ok();
        let trace = harness.path("trace");
        workload::assert_whole(&trace, &[Expected { pid: pid(&trace), workload: SHORT, details: true }]);
        Ok(())
    });
}

fn cut(implementation: Implementation, options: &[&str], end: impl FnOnce(&Harness, &Program)) -> Result<(), Skip> {
    peers(implementation)?;
    let harness = Harness::new();
    let mut record = record(&harness, options, implementation, ENDLESS);
    end(&harness, &record);
    record.wait_ok();
    let path = harness.path("trace");
    let pid = pid(&path);
    let trace = Trace::load(&path);
    let rounds = trace.assert_beginning(&Expected { pid, workload: ENDLESS, details: false });
    assert!(rounds > 10, "only {rounds} rounds in the trace");
    trace.assert_clean();
    wait_until("the application has ended", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
    Ok(())
}

/// True if some process has `threads` threads named `worker-…`: then the application emits.
fn emits(record: &Program) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", record.pid())).unwrap_or_default();
    children.split_whitespace().any(|child| {
        let tasks = std::fs::read_dir(format!("/proc/{child}/task")).into_iter().flatten().flatten();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
            .any(|name| name.starts_with("worker-"))
    })
}

macro_rules! with_both_libraries {
    ($($name:ident: $scenario:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn ours() {
                skip(|| $scenario(Implementation::Ours));
            }

            #[test]
            fn theirs() {
                skip(|| $scenario(Implementation::Theirs));
            }
        }
    )*};
}

with_both_libraries! {
    with_a_config: whole_with_config;
    without_a_config_all_is_recorded: whole_without_config;
    or_the_time_is_over: |implementation| cut(implementation, &["-t", "2s"], |_, _| {});
    or_somebody_interrupts: |implementation| cut(implementation, &[], |_, record| {
        wait_until("the application emits", || emits(record).then_some(()));
        std::thread::sleep(std::time::Duration::from_millis(500));
        record.signal(Signal::INT);
    });
    or_the_system_terminates_it: |implementation| cut(implementation, &[], |_, record| {
        wait_until("the application emits", || emits(record).then_some(()));
        std::thread::sleep(std::time::Duration::from_millis(500));
        record.signal(Signal::TERM);
    });
}

#[test]
fn a_command_that_emits_nothing_leaves_a_readable_trace() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let mut command = harness.command(esatto_bin());
        command.args(["record", "-o"]).arg(harness.path("trace")).args(["--", "true"]);
        harness.start("esatto-record", &mut command).wait_recorded();
        tp::assert_clean(&harness.path("trace"));
        Ok(())
    });
}

#[test]
fn the_command_keeps_its_arguments_and_its_output() {
    let harness = Harness::new();
    let output = Command::new(esatto_bin())
        .args(["record", "-o"])
        .arg(harness.path("trace"))
        .args(["--", "printf", "%s/", "-o", "--time", "two words"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(3), "nothing is recorded");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "-o/--time/two words/");
}

#[test]
fn sockets_and_folders_are_gone_afterwards() {
    let harness = Harness::new();
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-o"]).arg(harness.path("trace"));
    command.args([
        "--",
        "sh",
        "-c",
        "echo $PERFETTO_PRODUCER_SOCK_NAME > socket; test -S $PERFETTO_PRODUCER_SOCK_NAME",
    ]);
    harness.start("esatto-record", &mut command).wait_recorded();
    let socket = std::fs::read_to_string(harness.path("socket")).expect("the command has run");
    let socket = Path::new(socket.trim());
    assert_ne!(socket, harness.producer_socket());
    assert!(!socket.exists() && !socket.parent().expect("a folder").exists(), "{} is left", socket.display());
}
