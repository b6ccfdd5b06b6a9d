//! A recording names the machines that it leaves out, and only those that are there.

use crate::guest::{Guest, host, loopback_address};
use esatto_tests::workload::{CONFIG_WITHOUT_DEBUG, Workload};
use esatto_tests::{Harness, Implementation, esatto_bin, wait_until};

const LONG: Workload = Workload { threads: 1, rounds: 1_000_000, pause_us: 1000 };

#[test]
fn the_default_config_names_the_machines_that_it_leaves_out() {
    let harness = Harness::new();
    let address = loopback_address();
    let _service = host(&harness, Implementation::Ours, &address);
    let guest = Guest::new(&harness, "guest1");
    let _relay = guest.relay(&address);
    let _there = guest.application(Implementation::Ours, LONG);
    let _here = harness.application(Implementation::Ours, LONG);
    harness.wait_for_producers(2);
    wait_until("two data sources", || (harness.state().data_sources.len() == 2).then_some(()));
    let mut command = harness.command(esatto_bin());
    let mut record = harness.start("record", command.args(["record", "-t", "1s", "-o", "trace", "--all-categories"]));
    record.wait_ok();
    let line = "Programs of other machines were connected and are left out: guest1. To record them, use a config with \
                `trace_all_machines: true`.";
    assert!(record.log().contains(line), "{}", record.log());
}

#[test]
fn a_machine_that_left_before_the_session_is_not_in_its_trace() {
    let harness = Harness::new();
    let address = loopback_address();
    let mut service = host(&harness, Implementation::Ours, &address);
    let guest = Guest::new(&harness, "guest1");
    guest.relay(&address).kill();
    service.wait_for_log("disconnected");
    let _here = harness.application(Implementation::Ours, LONG);
    harness.wait_for_data_source("track_event");
    let config = format!("{CONFIG_WITHOUT_DEBUG} trace_all_machines: true");
    let mut recording = harness.record(Implementation::Ours, "trace", &config);
    harness.wait_for_sessions(1);
    std::thread::sleep(core::time::Duration::from_millis(300));
    let trace = recording.stop();
    let info = harness.command(esatto_bin()).arg("info").arg(&trace).output().expect("it runs");
    let info = String::from_utf8(info.stdout).expect("text");
    assert!(!info.contains("guest1"), "{info}");
}
