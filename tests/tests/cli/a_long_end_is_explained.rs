//! While `record` waits for programs that do not answer, it says so, and for whom as soon as the
//! service tells.

use esatto_tests::raw::RawProducer;
use esatto_tests::wire::{self, Proto};
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Program, Signal, wait_until};

const ENDLESS: Workload = Workload { threads: 1, rounds: 1 << 40, pause_us: 1000 };

const CONFIG: &str = r#"
buffers { size_kb: 256 }
data_sources { config { name: "track_event" } }
flush_timeout_ms: 2000
data_source_stop_timeout_ms: 2500
"#;

/// The only program that is recorded must be the one.
#[test]
fn a_suspended_program_is_named_at_once() {
    for options in ["duration_ms: 1000\n", "duration_ms: 1000 write_into_file: true\n"] {
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let application = harness.application(Implementation::Ours, ENDLESS);
        harness.wait_for_data_source("track_event");
        let mut recording = harness.record(Implementation::Ours, "trace", &[CONFIG, options].concat());
        // It says so to the service before it begins.
        wait_until("the application emits", || emits(&application).then_some(()));
        std::thread::sleep(std::time::Duration::from_millis(300));
        application.signal(Signal::STOP);
        recording.program.wait_for_log("Waiting for programs that do not answer: ");
        recording.program.wait_for_log(&format!("esatto-producer (pid {}); at most ", application.pid()));
        recording.finish();
        application.signal(Signal::CONT);
        let log = recording.program.log();
        assert_eq!(log.matches("Waiting").count(), 1, "{log}");
        let named = "esatto-producer (track_event) did not deliver the last events in time";
        assert!(log.contains(named), "{log}");
    }
}

/// The threads of the application begin when it is recorded.
fn emits(application: &Program) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", application.pid())).into_iter().flatten().flatten();
    let mut names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.any(|name| name.starts_with("worker-"))
}

/// The service tells who has stopped, but not who has delivered its last events.
#[test]
fn one_of_several_is_named_when_the_others_have_stopped() {
    one_of_several(&Proto::new().bytes(1, "track_event").int(2, 1));
}

/// As one that was suspended before the recording.
#[test]
fn also_if_it_has_not_started() {
    one_of_several(&Proto::new().bytes(1, "track_event").int(2, 1).int(3, 1));
}

fn one_of_several(source_that_hangs: &Proto) {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut producers = ["hangs", "answers"].map(|name| RawProducer::connect(&harness, name));
    let [hangs, answers] = &mut producers;
    hangs.register(source_that_hangs);
    answers.register(&Proto::new().bytes(1, "track_event").int(2, 1));
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    let _started = answers.await_start();
    harness.wait_for_sessions(1);
    recording.program.signal(Signal::INT);
    let id = answers.await_flush();
    answers.acknowledge(id);
    recording.program.wait_for_log("The service cannot name them yet.");
    let instance = wire::int(&answers.await_command(2), 1);
    assert!(answers.call("NotifyDataSourceStopped", &Proto::new().int(1, instance)).success);
    let line = format!("Waiting for programs that do not answer: hangs (pid {}); at most ", std::process::id());
    recording.program.wait_for_log(&line);
    recording.finish();
}

#[test]
fn unless_all_answer() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _application = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_data_source("track_event");
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    harness.wait_for_sessions(1);
    recording.stop();
    let log = recording.program.log();
    assert!(!log.contains("Waiting"), "{log}");
}
