//! SIGKILL in the middle of a write. The trace has the victim's earlier events without a gap, and
//! all events of another application that emits at the same time.

use esatto_tests::workload::{Expected, Trace, Workload};
use esatto_tests::{Conversation, Harness, Signal, Skip, wait_until};

/// It never ends.
const VICTIM: Workload = Workload { threads: 2, rounds: 1 << 40, pause_us: 100 };
const SURVIVOR: Workload = Workload { threads: 2, rounds: 200, pause_us: 2000 };

/// The file grows while the applications emit, which tells when the victim is in the middle.
const CONFIG: &str = r#"
buffers { size_kb: 32768 fill_policy: RING_BUFFER }
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
    let victim = harness.application(conversation.producer, VICTIM);
    let mut survivor = harness.application(conversation.producer, SURVIVOR);
    harness.wait_for_producers(2);
    let mut recording = harness.record(conversation.consumer, "trace", CONFIG);
    wait_until("the trace has 100 kB", || {
        let size = std::fs::metadata(recording.trace()).map_or(0, |file| file.len());
        (size > 100_000).then_some(())
    });
    victim.signal(Signal::KILL);
    survivor.wait_ok();
    let trace = Trace::load(&harness.stop(&mut recording));
    trace.assert_whole(&Expected { pid: survivor.pid(), workload: SURVIVOR, details: false });
    let rounds = trace.assert_beginning(&Expected { pid: victim.pid(), workload: VICTIM, details: false });
    assert!(rounds > 10, "the victim has only {rounds} rounds in the trace");
    trace.assert_clean();
    Ok(())
}
esatto_tests::matrix!(scenario);
