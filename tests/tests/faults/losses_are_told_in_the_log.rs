//! The log of the service has what a session lost. A program that found its shared memory full has
//! dropped packets. What a ring buffer overwrites is lost only if somebody wants all of it.

use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Signal, wait_until};
use std::time::Duration;

const WORKLOAD: Workload = Workload { threads: 4, rounds: 3000, pause_us: 0 };
/// Lasts for some seconds, and writes much more in a second than [`SHARED_MEMORY`] holds.
const LONG: Workload = Workload { threads: 4, rounds: 4000, pause_us: 1000 };
const SHARED_MEMORY: &str = "producers { producer_name: \"esatto-producer\" shm_size_kb: 16 page_size_kb: 4 }";

/// Returns the end of the session in the words of the service. With a [`LONG`] workload, suspends
/// the service meanwhile.
fn end_of_session(buffer: &str, more: &str, workload: Workload) -> String {
    let harness = Harness::new();
    let service = harness.service(Implementation::Ours);
    let config = format!(
        "buffers {{ {buffer} }} {more} data_sources {{ config {{ name: \"track_event\" track_event_config {{ \
         enabled_categories: \"rendering\" }} }} }}"
    );
    let mut recording = harness.record(Implementation::Ours, "trace", &config);
    harness.wait_for_sessions(1);
    let mut application = harness.application(Implementation::Ours, workload);
    if workload == LONG {
        harness.wait_for_data_source("track_event");
        std::thread::sleep(Duration::from_millis(500));
        service.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(1500));
        service.signal(Signal::CONT);
    }
    application.wait_ok();
    harness.stop(&mut recording);
    wait_until("the end", || service.log().lines().find(|line| line.contains(" ended after ")).map(str::to_owned))
}

#[test]
fn of_shared_memory() {
    let end = end_of_session("size_kb: 65536 fill_policy: DISCARD", SHARED_MEMORY, LONG);
    assert!(end.contains(" gaps where producers dropped packets") && !end.contains("overwritten"), "{end}");
    assert!(!end.contains("the service lost nothing"), "{end}");
}

#[test]
fn of_rings() {
    let memory = "producers { producer_name: \"esatto-producer\" shm_size_kb: 8192 }";
    let end = end_of_session("size_kb: 64", memory, WORKLOAD);
    assert!(end.contains(" bytes overwritten as a ring buffer does, "), "{end}");
    let file = format!("{memory} write_into_file: true file_write_period_ms: 60000");
    let end = end_of_session("size_kb: 64", &file, WORKLOAD);
    assert!(end.contains("lost: ") && end.contains(" bytes overwritten unread"), "{end}");
    assert!(!end.contains("as a ring"), "{end}");
}
