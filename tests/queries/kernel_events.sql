-- events by name
select name, count(*) as n from ftrace_event group by name order by 1;
-- events in order
select e.ts, e.name, e.cpu, t.tid, e.common_flags from ftrace_event e join thread t using (utid) order by 1, 2, 3, 4 limit 5000;
-- fields of events
select e.ts, e.name, e.cpu, a.key, a.int_value, a.string_value, a.value_type from ftrace_event e join args a using (arg_set_id) order by 1, 2, 3, 4, 5 limit 5000;
-- events by processor
select cpu, count(*) as n from ftrace_event group by 1 order by 1;
-- system calls
select s.ts, s.dur, s.name, t.tid, extract_arg(s.arg_set_id, 'ret') as ret from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) where s.name glob 'sys_*' order by 1, 2, 3;
-- interrupts
select s.ts, s.dur, s.name, t.name as track from slice s join track t on s.track_id = t.id where t.type in ('cpu_irq', 'cpu_softirq') order by 1, 3;
-- marks of programs
select s.ts, s.dur, s.name, t.type, p.pid from slice s join track t on s.track_id = t.id join process p on p.upid = extract_arg(t.dimension_arg_set_id, 'upid') where t.type glob 'atrace*' order by 1, 3;
-- frequencies of processors
select c.ts, t.cpu, c.value from counter c join cpu_counter_track t on c.track_id = t.id where t.name = 'cpufreq' order by 1, 2;
-- idle states of processors
select c.ts, t.cpu, c.value from counter c join cpu_counter_track t on c.track_id = t.id where t.name = 'cpuidle' order by 1, 2, 3;
