//! A recording that is killed, or whose terminal goes away, leaves what was recorded so far. It
//! never leaves an empty file.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Program, Signal, esatto_bin, wait_until};
use std::path::Path;
use std::process::Stdio;

/// Runs for a minute: nobody ends the command of a recording that was killed.
const LONG: Workload = Workload { threads: 1, rounds: 60_000, pause_us: 1000 };

fn record(harness: &Harness, options: &[&str]) -> Program {
    let application = harness.application_command(Implementation::Ours, LONG);
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-o", "trace"]).args(options);
    command.arg(application.get_program()).args(application.get_args());
    harness.start("esatto-record", &mut command)
}

/// Number of track events in the file; 0 if it is not there.
fn events(path: &Path) -> u64 {
    let Ok(file) = std::fs::File::open(path) else { return 0 };
    esatto_trace::Summary::read(file).packets_by_type.get("track_event").map_or(0, |packets| packets.packets)
}

#[test]
fn when_it_is_killed() {
    let harness = Harness::new();
    let mut record = record(&harness, &[]);
    // The file grows while the command runs.
    wait_until("events are in the file", || (events(&harness.path("trace")) > 500).then_some(()));
    record.kill();
    let bytes = std::fs::read(harness.path("trace")).expect("it is there");
    assert!(esatto_trace::packets(&bytes).all(|packet| packet.is_ok()), "the file ends in a packet");
}

#[test]
fn when_it_is_killed_before_a_ring_is_read() {
    let harness = Harness::new();
    let config = "buffers { size_kb: 1024 } data_sources { config { name: \"track_event\" } }";
    harness.write("ring.cfg", config);
    harness.write("go.sh", "touch running; exec sleep 3");
    let args = ["record", "-o", "trace", "-c", "ring.cfg", "sh", "go.sh"];
    let mut record = harness.start("esatto-record", harness.command(esatto_bin()).args(args));
    wait_until("the command runs", || harness.path("running").exists().then_some(()));
    record.kill();
    assert!(!harness.path("trace").exists(), "an empty file is left");
}

#[test]
fn when_it_is_killed_while_the_service_writes() {
    let harness = Harness::new();
    let config = "buffers { size_kb: 4096 } data_sources { config { name: \"track_event\" } } flush_period_ms: 200";
    harness.write("file.cfg", format!("{config} write_into_file: true"));
    let mut record = record(&harness, &["-c", "file.cfg"]);
    let path = harness.path("trace");
    wait_until("events are in the file", || {
        // A file that is there is never empty.
        assert!(std::fs::metadata(&path).map_or(1, |meta| meta.len()) > 0);
        (events(&path) > 500).then_some(())
    });
    record.kill();
    assert!(events(&path) > 500);
}

#[test]
fn when_the_terminal_goes_away() {
    let harness = Harness::new();
    let application = harness.application_command(Implementation::Ours, LONG);
    // The test itself may run under nohup.
    let mut command = harness.command("env");
    command.arg("--default-signal=HUP").arg(esatto_bin()).args(["record", "-o", "trace"]);
    command.arg(application.get_program()).args(application.get_args());
    let mut record = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_until("events are in the file", || (events(&harness.path("trace")) > 500).then_some(()));
    // From now on, output fails, as on a terminal that has hung up.
    drop(record.stderr.take());
    let pid = rustix::process::Pid::from_child(&record);
    let before = events(&harness.path("trace"));
    rustix::process::kill_process(pid, Signal::HUP).expect("it runs");
    let status = wait_until("it has ended", || record.try_wait().expect("its status"));
    assert!(status.success(), "{status}");
    assert!(events(&harness.path("trace")) >= before);
}

#[test]
fn unless_hang_ups_are_ignored() {
    let harness = Harness::new();
    let mut command = harness.command("nohup");
    command.arg(esatto_bin()).args(["record", "-o", "trace", "sh", "-c", "touch runs; exec sleep 600"]);
    let mut record = harness.start("nohup", &mut command);
    wait_until("the command runs", || harness.path("runs").exists().then_some(()));
    record.signal(Signal::HUP);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(record.is_running(), "{}", record.log());
    record.signal(Signal::TERM);
    record.wait();
    assert!(record.log().contains("The recording is over"), "{}", record.log());
    let service = events(&harness.path("trace"));
    assert_eq!(service, 0);
}
