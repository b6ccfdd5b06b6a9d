//! A program in a separate process namespace has another pid for itself than for the system. Our
//! service tells it which, so that its tracks and those of the system's probes are of one process;
//! Perfetto's service does not, and the number stays.

use std::process::Command;

use esatto_tests::tp::rows;
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Peer, Skip};

const SHORT: Workload = Workload { threads: 1, rounds: 20, pause_us: 100 };

const CONFIG: &str = r#"
buffers { size_kb: 4096 }
data_sources { config {
  name: "track_event"
  track_event_config { enabled_categories: "rendering" }
} }
"#;

/// Numbers of processes and of their main threads that have a slice.
fn processes(service: Implementation) -> Result<(Vec<(i64, i64)>, String), Skip> {
    Peer::TraceProcessor.require()?;
    let harness = Harness::new();
    let daemon = harness.service_with(service, |command| {
        if service == Implementation::Ours {
            // Connections are in the log at this level.
            command.args(["--log-level", "debug"]);
        }
    });
    let application = harness.application_command(Implementation::Ours, SHORT);
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]).arg(application.get_program()).args(application.get_args());
    command.envs(application.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut contained = harness.start("contained", &mut command);
    harness.wait_for_producers(1);
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    if !contained.wait().success() {
        return Err(Skip(format!("no process namespaces: {}", contained.log().trim())));
    }
    let trace = harness.stop(&mut recording);
    let sql = "select pid, tid from process join thread using (upid) where pid > 0 and is_main_thread";
    let processes = rows(&trace, sql).iter().map(|row| (row.int("pid"), row.int("tid"))).collect();
    Ok((processes, daemon.log()))
}

fn ours() -> Result<(), Skip> {
    let (processes, log) = processes(Implementation::Ours)?;
    let connected = log.lines().find(|line| line.contains(") connected, uid ")).expect("it is logged");
    let pid: i64 = connected.split(", pid ").nth(1).and_then(|pid| pid.parse().ok()).expect("with its pid");
    assert!(pid > 1, "{log}");
    assert_eq!(processes, [(pid, pid)]);
    Ok(())
}

fn theirs() -> Result<(), Skip> {
    let (processes, _) = processes(Implementation::Theirs)?;
    assert_eq!(processes, [(1, 1)]);
    Ok(())
}

#[test]
fn with_our_service() {
    esatto_tests::skip(ours);
}

#[test]
fn with_perfettos_service() {
    esatto_tests::skip(theirs);
}
