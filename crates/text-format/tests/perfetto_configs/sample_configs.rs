//! The sample configs of `docs/spec/cli.md` §29.

use esatto_protozero::Owned;
use esatto_schema::trace_config::{buffer_config::FillPolicy, trigger_config::TriggerMode};

use crate::{parse, trace_config};

#[test]
fn ring_buffer_with_scheduling_and_process_names() {
    let config = parse(
        r#"
        buffers { size_kb: 65536 fill_policy: RING_BUFFER }
        data_sources {
          config {
            name: "linux.ftrace"
            ftrace_config {
              ftrace_events: "sched/sched_switch"
              ftrace_events: "sched/sched_waking"
              ftrace_events: "task/*"
            }
          }
        }
        data_sources {
          config {
            name: "linux.process_stats"
            process_stats_config { scan_all_processes_on_start: true }
          }
        }
        duration_ms: 10000
        "#,
    );
    assert_eq!(config.buffers[0].size_kb, Some(65536));
    assert_eq!(config.buffers[0].fill_policy, Some(FillPolicy::RING_BUFFER));
    assert_eq!(config.data_sources.len(), 2);
    assert_eq!(config.duration_ms, Some(10_000));
}

#[test]
fn two_buffers_addressed_by_name() {
    let config = parse(
        r#"
        buffers { name: "fast" size_kb: 131072 }
        buffers { name: "slow" size_kb: 4096 }
        data_sources { config { name: "linux.ftrace" target_buffer_name: "fast"
          ftrace_config { ftrace_events: "sched/sched_switch" } } }
        data_sources { config { name: "linux.sys_stats" target_buffer_name: "slow"
          sys_stats_config { meminfo_period_ms: 1000 meminfo_counters: MEMINFO_MEM_AVAILABLE
                             stat_period_ms: 1000 stat_counters: STAT_CPU_TIMES } } }
        "#,
    );
    let names: Vec<_> = config.buffers.iter().filter_map(|buffer| buffer.name.clone()).collect();
    assert_eq!(names, ["fast", "slow"]);
    let targets = config.data_sources.iter().filter_map(|source| source.config.as_ref()?.target_buffer_name.clone());
    assert_eq!(targets.collect::<Vec<_>>(), ["fast", "slow"]);
}

#[test]
fn long_trace_into_a_file_with_limit_and_compression() {
    let config = parse(
        r#"
        buffers { size_kb: 32768 }
        data_sources { config { name: "track_event" } }
        write_into_file: true
        file_write_period_ms: 2500
        max_file_size_bytes: 1073741824
        compression { zstd {} }
        compression_type: COMPRESSION_TYPE_DEFLATE   # for services before v58
        incremental_state_config { clear_period_ms: 5000 }
        "#,
    );
    assert_eq!(config.max_file_size_bytes, Some(1 << 30));
    assert_eq!(config.write_into_file, Some(true));
    assert!(config.compression.is_some_and(|compression| compression.zstd.is_some()));
    assert_eq!(config.incremental_state_config.and_then(|config| config.clear_period_ms), Some(5000));
}

#[test]
fn flight_recorder() {
    let config = parse(
        r#"
        unique_session_name: "flight"
        buffers { size_kb: 65536 }
        data_sources { config { name: "track_event" } }
        trigger_config {
          trigger_mode: CLONE_SNAPSHOT
          trigger_timeout_ms: 86400000
          triggers { name: "slow_frame" stop_delay_ms: 500 max_per_24_h: 20 }
        }
        "#,
    );
    let triggers = config.trigger_config.expect("there is one");
    assert_eq!(triggers.trigger_mode, Some(TriggerMode::CLONE_SNAPSHOT));
    assert_eq!(triggers.trigger_timeout_ms, Some(86_400_000));
    assert_eq!(triggers.triggers[0].max_per_24_h, Some(20));
}

#[test]
fn callstack_sampling_of_one_program() {
    let config = parse(
        r#"
        buffers { size_kb: 65536 }
        data_sources { config { name: "linux.perf"
          perf_event_config {
            timebase { frequency: 100 }
            callstack_sampling { scope { target_cmdline: "*myprog*" } kernel_frames: true }
          } } }
        duration_ms: 5000
        "#,
    );
    assert_eq!(config.duration_ms, Some(5000));
    let printed = esatto_text_format::to_text(&trace_config(), &config.encode());
    assert!(printed.contains("target_cmdline: \"*myprog*\""), "{printed}");
}

#[test]
fn a_trigger_sent_by_config() {
    assert_eq!(parse("activate_triggers: \"slow_frame\"").activate_triggers, ["slow_frame"]);
}
