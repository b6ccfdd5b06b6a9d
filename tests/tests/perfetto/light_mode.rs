//! §6: recordings without a config. The configs that both commands make are compared.

use crate::rows::{Row, compare, same};

const FILES: &[(&str, &str)] = &[];

same! {
    without_service;
    time_without_unit: ["-t", "5", "-o", "t"] => 1;
    time_with_a_wrong_unit: ["-t", "5x", "-o", "t"] => 1;
    time_with_a_space: ["-t", "1 s", "-o", "t"] => 1;
    time_in_capitals: ["-t", "1S", "-o", "t"] => 1;
    time_with_a_fraction: ["-t", "0.2s", "-o", "t"] => 1;
    buffer_without_unit: ["-t", "200ms", "-b", "3", "-o", "t"] => 1;
    buffer_with_a_wrong_unit: ["-t", "200ms", "-b", "3tb", "-o", "t"] => 1;
    size_without_unit: ["-t", "200ms", "-s", "3", "-o", "t"] => 1;
}

/// A test of this name, in which both commands send the same config.
macro_rules! same_config {
    ($($name:ident: $args:expr;)*) => {
        $(#[test]
        fn $name() {
            compare(Row { args: &$args, ..Row::default() }, |ours, theirs| {
                assert_eq!(ours.code, Some(0), "{}", ours.stderr);
                assert_eq!(ours.config("t"), theirs.config("t"));
            });
        })*
    };
}

same_config! {
    time_in_milliseconds: ["-t", "200ms", "-o", "t"];
    time_in_seconds: ["-t", "1s", "-o", "t"];
    buffer_in_kb: ["-t", "200ms", "-b", "512kb", "-o", "t"];
    buffer_in_k: ["-t", "200ms", "-b", "512k", "-o", "t"];
    buffer_in_mb: ["-t", "200ms", "-b", "4mb", "-o", "t"];
    buffer_in_m: ["-t", "200ms", "-b", "4m", "-o", "t"];
    size_streams_into_the_file: ["-t", "200ms", "-s", "2mb", "-o", "t"];
    size_of_zero: ["-t", "200ms", "-s", "0", "-o", "t"];
    app: ["-t", "200ms", "-a", "one", "-a", "two", "-o", "t"];
    event_of_the_kernel: ["-t", "200ms", "-o", "t", "sched/sched_switch"];
    all_events_of_a_group: ["-t", "200ms", "-o", "t", "sched/*", "task/*"];
    category: ["-t", "200ms", "-o", "t", "sched", "freq"];
    category_disk: ["-t", "200ms", "-o", "t", "disk"];
    category_gfx: ["-t", "200ms", "-o", "t", "gfx"];
    hypervisor: ["-t", "200ms", "-o", "t", "hyp", "hypervisor", "sched/sched_switch"];
    everything_in_one_order: ["-t", "200ms", "-o", "t", "gfx", "sched/sched_waking", "disk", "hyp", "freq", "-a", "x"];
}

#[test]
fn time_of_zero_records_until_it_is_stopped() {
    use esatto_tests::{Harness, Implementation, Signal};
    let harness = Harness::with_perfetto(Implementation::Ours);
    let _service = harness.service(Implementation::Ours);
    let mut program = harness.start("perfetto", &mut harness.perfetto(&["-t", "0", "-o", "t"]));
    harness.wait_for_sessions(1);
    program.signal(Signal::INT);
    program.wait_ok();
    assert!(std::fs::metadata(harness.path("t")).expect("the trace").len() > 0);
}
