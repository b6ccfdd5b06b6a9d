//! A config can give programs more time for their last events, and to stop, than the defaults.

use esatto_tests::raw::RawProducer;
use esatto_tests::wire::{self, Proto};
use esatto_tests::{Harness, Implementation, Signal};
use std::thread::sleep;
use std::time::Duration;

/// The command to stop an instance.
const STOP: u32 = 2;

const CONFIG: &str = r#"
buffers { size_kb: 256 }
data_sources { config { name: "slow" } }
flush_timeout_ms: 20000
data_source_stop_timeout_ms: 30000
"#;

/// Records a program that takes so long to flush and to stop. Returns the output of the command.
fn record(flush: Duration, stop: Duration) -> String {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut producer = RawProducer::connect(&harness, "slow");
    producer.register(&Proto::new().bytes(1, "slow").int(2, 1));
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    let _started = producer.await_start();
    harness.wait_for_sessions(1);
    recording.program.signal(Signal::INT);
    let id = producer.await_flush();
    sleep(flush);
    producer.acknowledge(id);
    let instance = wire::int(&producer.await_command(STOP), 1);
    sleep(stop);
    assert!(producer.call("NotifyDataSourceStopped", &Proto::new().int(1, instance)).success);
    let trace = recording.finish();
    assert_ne!(std::fs::metadata(trace).expect("the trace").len(), 0);
    recording.program.log()
}

#[test]
fn for_their_last_events() {
    let log = record(Duration::from_secs(8), Duration::ZERO);
    assert!(!log.contains("incomplete"), "{log}");
}

#[test]
fn to_stop() {
    let log = record(Duration::ZERO, Duration::from_secs(16));
    assert!(log.contains("Wrote"), "{log}");
}
