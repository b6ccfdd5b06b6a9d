-- number of values
select count(*) as n from counter;
-- counters by type and name
select t.type, t.name, t.unit, count(*) as n, min(c.value) as least, max(c.value) as most from counter c join counter_track t on c.track_id = t.id group by 1, 2, 3 order by 1, 2;
-- values in order
select c.ts, t.name, c.value from counter c join counter_track t on c.track_id = t.id order by 1, 2, 3 limit 2000;
-- counters of processes
select p.pid, t.name, count(*) as n, sum(c.value) as total from counter c join process_counter_track t on c.track_id = t.id join process p using (upid) group by 1, 2 order by 1, 2;
-- counters of threads
select thread.tid, t.name, c.ts, c.value from counter c join thread_counter_track t on c.track_id = t.id join thread using (utid) order by 1, 2, 3, 4;
-- counters of processors
select t.cpu, t.name, count(*) as n, sum(c.value) as total from counter c join cpu_counter_track t on c.track_id = t.id group by 1, 2 order by 1, 2;
-- descriptions of counters
select name, unit, description from counter_track where description is not null order by 1;
-- changes of values
select name, count(*) as n from (select t.name, c.value - lag(c.value) over (partition by c.track_id order by c.ts, c.id) as step from counter c join counter_track t on c.track_id = t.id) where step != 0 group by 1 order by 1;
-- arguments of values
select c.ts, t.name, count(*) as n from counter c join counter_track t on c.track_id = t.id join args a using (arg_set_id) group by c.id order by 1, 2;
-- first and last values
select t.type, t.name, min(c.ts) as first_ts, max(c.ts) as last_ts from counter c join counter_track t on c.track_id = t.id group by c.track_id order by 1, 2, 3, 4;
-- memory of processes
select p.pid, c.ts, t.name, c.value from counter c join process_counter_track t on c.track_id = t.id join process p using (upid) where t.type in ('process_memory', 'smaps', 'mm_event', 'oom_score_adj') order by 1, 2, 3, 4 limit 3000;
-- counters of threads without a process
select t.type, t.name, thread.tid, count(*) as n, sum(c.value) as total from counter c join thread_counter_track t on c.track_id = t.id join thread using (utid) where t.type glob '*_thread_fallback' group by 1, 2, 3 order by 1, 2, 3;
-- traffic of the network
select c.ts, t.name, c.value, extract_arg(c.arg_set_id, 'cpu') as cpu, extract_arg(c.arg_set_id, 'len') as len from counter c join counter_track t on c.track_id = t.id where t.type in ('net_receive', 'net_transmit') order by 1, 2, 3;
-- devices
select t.type, t.name, extract_arg(t.dimension_arg_set_id, 'linux_device') as device, c.ts, c.value from counter c join counter_track t on c.track_id = t.id where device is not null order by 1, 2, 3, 4, 5;
-- dimensions of counters
select t.type, t.name, a.key, a.string_value, count(*) as n from counter_track t join args a on a.arg_set_id = t.dimension_arg_set_id where a.string_value is not null group by 1, 2, 3, 4 order by 1, 2, 3, 4;
