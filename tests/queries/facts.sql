-- facts about the trace
select name, key_type, int_value, str_value from metadata where name in ('trace_uuid', 'trace_type', 'trace_time_clock_id', 'system_name', 'system_release', 'system_version', 'system_machine', 'timezone_off_mins', 'tracing_started_ns', 'all_data_source_started_ns', 'tracing_disabled_ns', 'all_data_source_flushed_ns', 'ftrace_latest_data_start_ns', 'trace_trigger', 'unique_session_name') and coalesce(str_value, '') not glob '00000000-0000-0000-*' order by 1, 3;
-- counts of the service
select name, idx, value, severity, source from stats where value != 0 and name glob 'traced_*' order by 1, 2;
-- counts of the kernel
select name, idx, value, severity, source from stats where value != 0 and name glob 'ftrace_cpu_*' order by 1, 2;
-- counts of mistakes in events
select name, value, severity from stats where value != 0 and name in ('misplaced_end_event', 'mismatched_sched_switch_tids', 'systrace_parse_failure', 'track_event_parser_errors', 'track_event_tokenizer_errors', 'invalid_clock_snapshots') order by 1;
-- values of clocks
select ts, clock_name, clock_value, count(*) as n from clock_snapshot group by 1, 2, 3 order by 1, 2, 3;
-- snapshots of clocks
select count(distinct snapshot_id) as n from clock_snapshot;
-- machines
select raw_id, sysname, release, version, arch from machine order by 1;
-- log messages
select l.ts, t.tid, l.prio, l.tag, l.msg from android_logs l left join thread t using (utid) order by 1, 2;
