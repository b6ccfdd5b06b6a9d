//! §4: combinations of options, in the order of the list.

use crate::rows::{REFUSED, Row, SHORT, run_ours, same};

const FILES: &[(&str, &str)] = &[
    ("c.cfg", SHORT),
    ("refused.cfg", REFUSED),
    ("delay.cfg", "cmd_trace_start_delay { min_delay_ms: 5 } buffers { size_kb: 64 }"),
    ("report.cfg", "incident_report_config { destination_package: \"a\" } buffers { size_kb: 64 }"),
    ("android.cfg", "android_report_config { reporter_service_package: \"a\" } buffers { size_kb: 64 }"),
    ("path.cfg", "output_path: \"/nowhere/x\" write_into_file: true buffers { size_kb: 64 }"),
    ("broken.cfg", "nothing: 1"),
    ("empty.cfg", ""),
];

same! {
    without_service;
    rule_01_query_with_attach: ["--query", "--attach=k"] => 1;
    rule_01_query_with_is_detached: ["--query-raw", "--is_detached=k"] => 1;
    rule_01_query_with_detach: ["--query", "--detach=k"] => 1;
    rule_01_query_with_background: ["--query", "-d"] => 1;
    rule_02_long_without_query: ["--long"] => 1;
    rule_03_attach_with_detach: ["--attach=k", "--detach=k"] => 1;
    rule_05_detach_with_background: ["--detach=k", "-d", "-c", "c.cfg", "--txt", "-o", "t"] => 1;
    rule_06_stop_without_attach: ["--stop"] => 1;
    rule_07_save_for_bugreport_with_attach: ["--save-for-bugreport", "--attach=k"] => 1;
    rule_07_save_for_bugreport_with_a_word: ["--save-for-bugreport", "sched"] => 1;
    rule_07_save_for_bugreport_in_background: ["--save-for-bugreport", "-D"] => 1;
    rule_07_save_all_with_query: ["--save-all-for-bugreport", "--query"] => 1;
    rule_08_clone_with_clone_by_name: ["--clone", "1", "--clone-by-name", "n", "-o", "t"] => 1;
    rule_09_clone_for_bugreport_alone: ["--clone-for-bugreport", "-o", "t"] => 1;
    rule_10_attach_with_config: ["--attach=k", "-c", "c.cfg", "--txt"] => 1;
    rule_10_query_with_time: ["--query", "-t", "1s"] => 1;
    rule_10_save_all_with_config: ["--save-all-for-bugreport", "-c", "c.cfg", "--txt"] => 1;
    rule_11_config_with_time: ["-c", "c.cfg", "--txt", "-t", "1s", "-o", "t"] => 1;
    rule_11_config_with_a_word: ["-c", "c.cfg", "--txt", "sched", "-o", "t"] => 1;
    rule_12_no_config: ["-o", "t"] => 1;
    rule_12_empty_config: ["-c", "empty.cfg", "--txt", "-o", "t"] => 1;
    rule_13_config_that_cannot_be_parsed: ["-c", "broken.cfg", "--txt", "-o", "t"] => 1;
    rule_14_start_delay_with_one_field: ["-c", "delay.cfg", "--txt", "-o", "t"] => 1;
    rule_15_incident_report: ["-c", "report.cfg", "--txt", "-o", "t"] => 1;
    rule_15_android_report: ["-c", "android.cfg", "--txt", "-o", "t"] => 1;
    rule_16_output_path_with_out: ["-c", "path.cfg", "--txt", "-o", "t"] => 1;
    rule_17_attach_with_out: ["--attach=k", "-o", "t"] => 1;
    rule_17_query_with_out: ["--query", "-o", "t"] => 1;
    rule_17_save_all_with_out: ["--save-all-for-bugreport", "-o", "t"] => 1;
    rule_18_no_out: ["-c", "c.cfg", "--txt"] => 1;
    rule_18_no_out_in_light_mode: ["-t", "1s"] => 1;
    rule_18_no_out_for_a_clone: ["--clone", "1"] => 1;
    rule_19_detach_without_write_into_file: ["-c", "c.cfg", "--txt", "-o", "t", "--detach=k"] => 1;
}

/// Perfetto has the option since v58.
#[test]
fn rule_04_two_formats() {
    let ran =
        run_ours(Row { args: &["--txt", "--txt-lossy", "-c", "c.cfg", "-o", "t"], files: FILES, ..Row::default() });
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--txt and --txt-lossy are mutually exclusive"), "{}", ran.stderr);
}
