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
select s.ts, s.dur, s.name, t.name as track from slice s join track t on s.track_id = t.id where t.type in ('cpu_irq', 'cpu_softirq', 'cpu_hrtimer', 'cpu_hotplug', 'cpu_napi_gro') order by 1, 3, 4, 2;
-- marks of programs
select s.ts, s.dur, s.name, t.type, p.pid from slice s join track t on s.track_id = t.id join process p on p.upid = extract_arg(t.dimension_arg_set_id, 'upid') where t.type glob 'atrace*' order by 1, 3;
-- frequencies of processors
select c.ts, t.cpu, c.value from counter c join cpu_counter_track t on c.track_id = t.id where t.name = 'cpufreq' order by 1, 2;
-- idle states of processors
select c.ts, t.cpu, c.value from counter c join cpu_counter_track t on c.track_id = t.id where t.name = 'cpuidle' order by 1, 2, 3;
-- signals
select s.ts, s.name, t.tid, extract_arg(s.arg_set_id, 'signal.sig') as sig from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) where s.name glob 'signal_*' order by 1, 2, 3, 4;
-- functions of work queues
select s.ts, s.dur, s.name, t.tid, extract_arg(s.arg_set_id, 'cpu') as cpu from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) where s.category = 'workqueue' order by 1, 3, 4;
-- sleep of the machine and of its devices
select s.ts, s.dur, s.name, extract_arg(s.arg_set_id, 'event_type') as event_type, extract_arg(s.arg_set_id, 'callback_phase') as phase from slice s join track t on s.track_id = t.id where t.type in ('suspend_resume', 'suspend_resume_minimal', 'wakesource_wakelock', 'linux_rpm') order by 1, 3;
-- states of connections
select s.ts, s.dur, s.name, s.category, t.name as track from slice s join track t on s.track_id = t.id where t.type in ('net_socket_set_state', 'net_tcp_retransmit_skb') order by 1, 3;
-- functions of the kernel
select s.ts, s.dur, s.name, s.depth, t.type, t.name as track from slice s join track t on s.track_id = t.id where t.type in ('thread_funcgraph', 'cpu_funcgraph', 'block_io') order by 1, 4, 3;
-- tracks that drivers describe
select t.type, t.name, extract_arg(t.dimension_arg_set_id, 'tracepoint') as tracepoint, extract_arg(t.dimension_arg_set_id, 'scope') as scope, count(*) as n from track t where t.type glob 'kernel_trackevent*' group by 1, 2, 3, 4 order by 1, 2, 3, 4;
-- work of the allocator
select s.ts, s.dur, s.name, t.tid, a.key, a.int_value, a.string_value from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) join args a using (arg_set_id) where s.name glob 'mm_*' order by 1, 3, 5;
