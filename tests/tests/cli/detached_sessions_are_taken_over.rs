//! `esatto sessions attach` takes over a session that its program has left, and saves its trace.

use crate::rows_of_sessions::sessions;
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Program, Signal, Skip, Terminal, esatto_bin, wait_until};

const ENDLESS: Workload = Workload { threads: 1, rounds: 1 << 40, pause_us: 500 };

/// A program that emits events for longer than any session here.
fn application(harness: &Harness) -> Program {
    let program = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_data_source("track_event");
    program
}

fn attach(harness: &Harness, args: &[&str]) -> Program {
    harness.start("attach", harness.command(esatto_bin()).args(["sessions", "attach"]).args(args))
}

fn start_recorder(harness: &Harness) {
    let output = harness.command(esatto_bin()).args(["snapshot", "start", "flight", "--ring", "1M"]).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn events(harness: &Harness, name: &str) -> u64 {
    let Ok(file) = std::fs::File::open(harness.path(name)) else { return 0 };
    esatto_trace::Summary::read(file).packets_by_type.get("track_event").map_or(0, |packets| packets.packets)
}

#[test]
fn ctrl_c_ends_a_flight_recorder_and_saves_its_ring() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _application = application(&harness);
    // By its name and by its id.
    for (number, wanted) in ["flight", "2"].into_iter().enumerate() {
        start_recorder(&harness);
        std::thread::sleep(std::time::Duration::from_millis(300));
        let name = format!("trace{number}");
        let mut attached = attach(&harness, &[wanted, "-o", &name]);
        attached.wait_for_log("Ctrl-C ends the session and saves its trace.");
        attached.signal(Signal::INT);
        attached.wait_ok();
        assert!(events(&harness, &name) > 10, "{}", attached.log());
        assert!(attached.log().contains(&format!("bytes into {name} (")), "{}", attached.log());
        assert!(sessions(&harness).is_empty());
    }
}

#[test]
fn its_progress_is_shown_on_a_terminal() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _application = application(&harness);
    start_recorder(&harness);
    let mut command = harness.command(esatto_bin());
    let mut terminal = Terminal::start(command.args(["sessions", "attach", "flight"]).env("LC_ALL", "C"), 80);
    let _ = terminal.wait_for(" lost", 0);
    terminal.type_interrupt();
    let (status, shown) = terminal.wait();
    assert!(status.success() && shown.contains("recording ") && shown.contains("flight-2"), "{shown}");
}

/// Config of a session whose file the service writes.
const INTO_FILE: &str = "unique_session_name: \"mine\" write_into_file: true file_write_period_ms: 100 \
                         buffers { size_kb: 1024 } data_sources { config { name: \"track_event\" } }";

fn detached_into_file(service: Implementation) -> Result<(), Skip> {
    if service == Implementation::Theirs {
        esatto_tests::Peer::Official.require()?;
    }
    let harness = Harness::with_perfetto(Implementation::Ours);
    let _service = harness.service(service);
    let _application = application(&harness);
    harness.write("c.cfg", format!("{INTO_FILE} duration_ms: 3000"));
    let (code, log) = harness.run_perfetto(&["-c", "c.cfg", "--txt", "--detach", "key", "-o", "trace"]);
    assert_eq!(code, 0, "{log}");
    let refused = harness.command(esatto_bin()).args(["sessions", "attach", "key", "-o", "x"]).output();
    let refused = String::from_utf8_lossy(&refused.expect("it runs").stderr).into_owned();
    assert!(refused.contains("-o is not possible: the service writes the trace of this session itself"), "{refused}");
    // The session goes on, and ends by itself.
    let mut attached = attach(&harness, &["key"]);
    attached.wait_ok();
    let line = "The service wrote the trace into the file that its program has named at the start.";
    assert!(attached.log().contains(line), "{}", attached.log());
    assert!(events(&harness, "trace") > 10 && !harness.path("x").exists());
    Ok(())
}

mod a_session_whose_file_the_service_writes {
    use super::*;

    esatto_tests::for_each_service!(detached_into_file);
}

#[test]
fn a_session_of_a_program_is_not_taken_away() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let config = "unique_session_name: \"mine\" buffers { size_kb: 64 } data_sources { config { name: \"x\" } }";
    let mut recording = harness.record(Implementation::Ours, "trace", config);
    harness.wait_for_sessions(1);
    let mut attached = attach(&harness, &["mine"]);
    assert_eq!(attached.wait().code(), Some(1));
    let why = format!("cannot attach the session \"mine\": esatto (process {}) controls it", recording.program.pid());
    assert!(attached.log().contains(&why) && attached.log().contains("`esatto snapshot take 1`"), "{}", attached.log());
    assert!(recording.program.is_running());
    let mut unknown = attach(&harness, &["nobody"]);
    assert_eq!(unknown.wait().code(), Some(1));
    assert!(unknown.log().contains("cannot find the session \"nobody\""), "{}", unknown.log());
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_session_alone() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    start_recorder(&harness);
    let mut attached = attach(&harness, &["flight", "-o", "no/such/folder"]);
    assert_eq!(attached.wait().code(), Some(1));
    assert!(attached.log().contains("cannot write no/such/folder"), "{}", attached.log());
    wait_until("it is detached again", || (sessions(&harness)[0]["detach_key"] == "flight").then_some(()));
}
