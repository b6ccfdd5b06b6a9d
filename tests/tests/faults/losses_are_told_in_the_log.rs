//! The log of the service has what a session lost. A program that found its shared memory full has
//! dropped packets. What a ring buffer overwrites is lost only if somebody wants all of it.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, wait_until};

const WORKLOAD: Workload = Workload { threads: 4, rounds: 3000, pause_us: 0 };

/// Returns the end of the session in the words of the service.
fn end_of_session(buffer: &str, more: &str) -> String {
    let harness = Harness::new();
    let service = harness.service(Implementation::Ours);
    let config = format!(
        "buffers {{ {buffer} }} {more} data_sources {{ config {{ name: \"track_event\" track_event_config {{ \
         enabled_categories: \"rendering\" }} }} }}"
    );
    let mut recording = harness.record(Implementation::Ours, "trace", &config);
    harness.wait_for_sessions(1);
    harness.application(Implementation::Ours, WORKLOAD).wait_ok();
    harness.stop(&mut recording);
    wait_until("the end", || service.log().lines().find(|line| line.contains(" ended after ")).map(str::to_owned))
}

#[test]
fn of_shared_memory() {
    let producers = "producers { producer_name: \"esatto-producer\" shm_size_kb: 16 page_size_kb: 4 }";
    let end = end_of_session("size_kb: 65536", producers);
    assert!(end.contains(" gaps where producers dropped packets") && !end.contains("overwritten"), "{end}");
    assert!(!end.contains("nothing lost"), "{end}");
}

#[test]
fn of_rings() {
    let memory = "producers { producer_name: \"esatto-producer\" shm_size_kb: 8192 }";
    let end = end_of_session("size_kb: 64", memory);
    assert!(end.contains(" bytes overwritten as a ring buffer does, "), "{end}");
    let file = format!("{memory} write_into_file: true file_write_period_ms: 60000");
    let end = end_of_session("size_kb: 64", &file);
    assert!(end.contains("lost: ") && end.contains(" bytes overwritten unread"), "{end}");
    assert!(!end.contains("as a ring"), "{end}");
}
