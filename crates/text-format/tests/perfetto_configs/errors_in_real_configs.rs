use esatto_text_format::Parser;

use crate::trace_config;

fn shown(text: &str) -> String {
    let parser = Parser::new(trace_config()).file_name("trace.cfg");
    parser.parse(text).expect_err("this config is wrong").to_string()
}

#[test]
fn all_errors_are_shown_at_once() {
    let text = r#"buffers {
  size_kb: "64"
  fill_policy: RING
}
data_source {
  config { name: "track_event" }
}
data_sources { config {
  name: "linux.ftrace"
  ftrace_config { ftrace_event: "sched/sched_switch" }
  target_buffr: 0
} }
trace_duration_ms: 10s
write_into_file: yes
"#;
    let expected = r#"trace.cfg:2:12 error: Expected value of type uint32 for field size_kb in proto BufferConfig instead saw '"64"'
  size_kb: "64"
           ^~~~
trace.cfg:3:16 error: Unexpected value 'RING' for enum field fill_policy in proto BufferConfig; expected UNSPECIFIED, RING_BUFFER or DISCARD
  fill_policy: RING
               ^~~~
trace.cfg:5:1 error: No field named "data_source" in proto TraceConfig; did you mean "data_sources"?
data_source {
^~~~~~~~~~~
trace.cfg:10:19 error: No field named "ftrace_event" in proto FtraceConfig; did you mean "ftrace_events"?
  ftrace_config { ftrace_event: "sched/sched_switch" }
                  ^~~~~~~~~~~~
trace.cfg:11:3 error: No field named "target_buffr" in proto DataSourceConfig; did you mean "target_buffer"?
  target_buffr: 0
  ^~~~~~~~~~~~
trace.cfg:13:1 error: No field named "trace_duration_ms" in proto TraceConfig; did you mean "duration_ms", or the field of DataSourceConfig: data_sources { config { trace_duration_ms … } }?
trace_duration_ms: 10s
^~~~~~~~~~~~~~~~~
trace.cfg:14:18 error: Expected 'true' or 'false' for boolean field write_into_file in proto TraceConfig instead saw 'yes'
write_into_file: yes
                 ^~~"#;
    assert_eq!(shown(text), expected);
}

#[test]
fn the_right_place_of_a_misplaced_field_is_suggested() {
    assert!(shown("size_kb: 5").contains("field of BufferConfig: buffers { size_kb … }"));
    assert!(shown("trigger_timeout_ms: 5").contains("field of TriggerConfig: trigger_config { trigger_timeout_ms … }"));
    assert!(shown("buffers { duration_ms: 5 }").contains("it is a field of TraceConfig, outside of this message"));
    assert!(shown("ftrace_events: 'a'").contains("data_sources { config { ftrace_config { ftrace_events … } } }"));
}

#[test]
fn pieces_of_a_real_config_never_panic() {
    let text = include_str!("../../../../tests/traces/official-v56-process-and-sys-stats.cfg");
    let parser = Parser::new(trace_config());
    for cut in (0..text.len()).step_by(7) {
        let _ = parser.parse(&text[..cut]);
        let _ = parser.parse(&text[cut..]);
    }
}
