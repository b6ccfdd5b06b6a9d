//! A program that does not answer the last flush or its stop is named by `record`, and in the
//! report of `info`.

use esatto_tests::raw::RawProducer;
use esatto_tests::wire::Proto;
use esatto_tests::{Harness, Implementation, Signal, esatto_bin};
use std::process::Command;

const CONFIG: &str = r#"
buffers { size_kb: 256 }
data_sources { config { name: "silent" } }
flush_timeout_ms: 100
data_source_stop_timeout_ms: 100
"#;

#[test]
fn for_a_flush_and_a_stop() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut producer = RawProducer::connect(&harness, "hangs");
    // It announces that it acknowledges its stop.
    producer.register(&Proto::new().bytes(1, "silent").int(2, 1));
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    let _started = producer.await_start();
    harness.wait_for_sessions(1);
    recording.program.signal(Signal::INT);
    let _ = recording.program.wait();
    let log = recording.program.log();
    for said in ["did not deliver the last events in time", "did not stop in time"] {
        assert!(log.contains(&format!("hangs (silent) {said}")), "'{said}' is not in\n{log}");
    }
    let info = Command::new(esatto_bin()).arg("info").arg(recording.trace()).output().expect("it runs");
    let info = String::from_utf8(info.stdout).expect("text");
    for event in ["last_flush_slow_data_sources", "slow_stopping_data_sources"] {
        let rows: Vec<_> = info.lines().skip_while(|line| !line.ends_with(event)).take(2).map(str::trim).collect();
        assert_eq!(rows.get(1), Some(&"silent of hangs"), "{event} in\n{info}");
    }
    for loss in ["flushes_failed", "stop_failed"] {
        let is_named = |line: &str| line.contains(loss) && line.ends_with("no answer from hangs");
        assert!(info.lines().any(is_named), "{loss} in\n{info}");
    }
}

/// As a program does that was suspended during the recording. Its answers are no mistake.
#[test]
fn unless_it_answers_after_the_end() {
    let harness = Harness::new();
    let mut service = harness.service(Implementation::Ours);
    let mut producer = RawProducer::connect(&harness, "suspended");
    // It acknowledges its start and its stop.
    producer.register(&Proto::new().bytes(1, "silent").int(2, 1).int(3, 1));
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    let instance = producer.await_start().instance;
    harness.wait_for_sessions(1);
    recording.program.signal(Signal::INT);
    let _ = recording.program.wait();
    let mut notify = |method, instance| assert!(producer.call(method, &Proto::new().int(1, instance)).success);
    notify("NotifyDataSourceStarted", instance);
    notify("NotifyDataSourceStopped", instance);
    // A number that the service has never given is one.
    notify("NotifyDataSourceStopped", instance + 1);
    let mistake = format!("stopped unknown data source instance {}", instance + 1);
    service.wait_for_log(&mistake);
    let log = service.log();
    assert_eq!(log.matches(" W producer ").count(), 1, "{log}");
}
