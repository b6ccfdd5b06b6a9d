//! `write_into_file`: the service writes the trace into the consumer's file while it records.

use esatto_tests::workload::{self, Expected, Workload};
use esatto_tests::{Conversation, Harness, Skip};

const WORKLOAD: Workload = Workload { threads: 2, rounds: 300, pause_us: 1000 };

/// A ring buffer too small for the whole trace: it must be read while recording.
const CONFIG: &str = r#"
buffers { size_kb: 512 fill_policy: RING_BUFFER }
write_into_file: true
file_write_period_ms: 100
flush_period_ms: 100
data_sources { config {
  name: "track_event"
  track_event_config { enabled_categories: "rendering" }
} }
"#;

fn scenario(conversation: Conversation) -> Result<(), Skip> {
    let harness = Harness::new();
    let _service = harness.service(conversation.service);
    let mut application = harness.application(conversation.producer, WORKLOAD);
    let mut recording = harness.record(conversation.consumer, "trace", CONFIG);
    application.wait_ok();
    let trace = harness.stop(&mut recording);
    workload::assert_whole(&trace, &[Expected { pid: application.pid(), workload: WORKLOAD, details: false }]);
    Ok(())
}
esatto_tests::matrix!(scenario);
