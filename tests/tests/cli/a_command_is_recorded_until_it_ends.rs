//! `esatto record -o FILE -- COMMAND…`: a service of its own, whatever SDK the command is built with.

use esatto_tests::workload::{self, CONFIG_WITHOUT_DEBUG, Expected, Trace, Workload};
use esatto_tests::{Lab, Peer, Program, Side, Signal, Skip, esatto_bin, skip, tp, wait_until};
use std::path::Path;
use std::process::Command;

const SHORT: Workload = Workload { threads: 2, rounds: 100, pause_us: 200 };
const ENDLESS: Workload = Workload { threads: 2, rounds: 1 << 40, pause_us: 1000 };

fn peers(side: Side) -> Result<(), Skip> {
    Peer::TraceProcessor.require()?;
    if side == Side::Theirs { Peer::Producer.require() } else { Ok(()) }
}

/// `esatto record OPTIONS -o trace -- application`. The sockets in the environment are not to be used.
fn record(lab: &Lab, options: &[&str], side: Side, workload: Workload) -> Program {
    let application = lab.application_command(side, workload);
    let mut command = lab.command(esatto_bin());
    command.arg("record").args(options).arg("-o").arg(lab.path("trace")).arg("--");
    command.arg(application.get_program()).args(application.get_args());
    lab.start("esatto-record", &mut command)
}

/// The process of the application, found in its trace.
fn pid(trace: &Path) -> u32 {
    let rows = tp::rows(trace, "select pid from process where name glob '*-producer'");
    assert_eq!(rows.len(), 1, "one application: {rows:?}");
    u32::try_from(rows[0].int("pid")).expect("a process id")
}

fn whole_with_config(side: Side) -> Result<(), Skip> {
    peers(side)?;
    let lab = Lab::new();
    let config = lab.write("config", CONFIG_WITHOUT_DEBUG);
    record(&lab, &["-c", config.to_str().expect("a path")], side, SHORT).wait_ok();
    let trace = lab.path("trace");
    workload::assert_whole(&trace, &[Expected { pid: pid(&trace), workload: SHORT, details: false }]);
    assert!(!lab.producer_socket().exists(), "private sockets are meant");
    Ok(())
}

fn whole_without_config(side: Side) -> Result<(), Skip> {
    peers(side)?;
    let lab = Lab::new();
    record(&lab, &[], side, SHORT).wait_ok();
    let trace = lab.path("trace");
    workload::assert_whole(&trace, &[Expected { pid: pid(&trace), workload: SHORT, details: true }]);
    Ok(())
}

/// A program that does not wait, and would be over before a service that it has just connected to had anything to say.
#[test]
fn from_its_first_event() {
    skip(|| {
        peers(Side::Ours)?;
        let lab = Lab::new();
        let application = lab.application_command(Side::Ours, SHORT);
        let mut command = lab.command(esatto_bin());
        command.arg("record").arg("-o").arg(lab.path("trace")).arg("--").arg(application.get_program());
        command.args(application.get_args().take(3)).arg("0");
        lab.start("esatto-record", &mut command).wait_ok();
        let trace = lab.path("trace");
        workload::assert_whole(&trace, &[Expected { pid: pid(&trace), workload: SHORT, details: true }]);
        Ok(())
    });
}

fn cut(side: Side, options: &[&str], end: impl FnOnce(&Lab, &Program)) -> Result<(), Skip> {
    peers(side)?;
    let lab = Lab::new();
    let mut record = record(&lab, options, side, ENDLESS);
    end(&lab, &record);
    record.wait_ok();
    let path = lab.path("trace");
    let pid = pid(&path);
    let trace = Trace::load(&path);
    let rounds = trace.assert_beginning(&Expected { pid, workload: ENDLESS, details: true });
    assert!(rounds > 10, "only {rounds} rounds in the trace");
    trace.assert_clean();
    wait_until("the application has ended", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
    Ok(())
}

/// Whether some process has `threads` threads named `worker-…`: the application emits.
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
                skip(|| $scenario(Side::Ours));
            }

            #[test]
            fn theirs() {
                skip(|| $scenario(Side::Theirs));
            }
        }
    )*};
}

with_both_libraries! {
    with_a_config: whole_with_config;
    without_a_config_all_is_recorded: whole_without_config;
    or_the_time_is_over: |side| cut(side, &["-t", "2s"], |_, _| {});
    or_somebody_interrupts: |side| cut(side, &[], |_, record| {
        wait_until("the application emits", || emits(record).then_some(()));
        std::thread::sleep(std::time::Duration::from_millis(500));
        record.signal(Signal::INT);
    });
    or_the_system_terminates_it: |side| cut(side, &[], |_, record| {
        wait_until("the application emits", || emits(record).then_some(()));
        std::thread::sleep(std::time::Duration::from_millis(500));
        record.signal(Signal::TERM);
    });
}

#[test]
fn a_command_that_emits_nothing_leaves_a_readable_trace() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let lab = Lab::new();
        let mut command = lab.command(esatto_bin());
        command.args(["record", "-o"]).arg(lab.path("trace")).args(["--", "true"]);
        lab.start("esatto-record", &mut command).wait_ok();
        tp::assert_clean(&lab.path("trace"));
        Ok(())
    });
}

#[test]
fn the_command_keeps_its_arguments_and_its_output() {
    let lab = Lab::new();
    let output = Command::new(esatto_bin())
        .args(["record", "-o"])
        .arg(lab.path("trace"))
        .args(["--", "printf", "%s/", "-o", "--time", "two words"])
        .output()
        .expect("it runs");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "-o/--time/two words/");
}

#[test]
fn sockets_and_folders_are_gone_afterwards() {
    let lab = Lab::new();
    let mut command = lab.command(esatto_bin());
    command.args(["record", "-o"]).arg(lab.path("trace"));
    command.args([
        "--",
        "sh",
        "-c",
        "echo $PERFETTO_PRODUCER_SOCK_NAME > socket; test -S $PERFETTO_PRODUCER_SOCK_NAME",
    ]);
    lab.start("esatto-record", &mut command).wait_ok();
    let socket = std::fs::read_to_string(lab.path("socket")).expect("the command has run");
    let socket = Path::new(socket.trim());
    assert_ne!(socket, lab.producer_socket());
    assert!(!socket.exists() && !socket.parent().expect("a folder").exists(), "{} is left", socket.display());
}
