-- number of slices
select count(*) as n from slice;
-- slices by name
select name, count(*) as n, sum(dur) as total, min(dur) as shortest, max(dur) as longest from slice group by name order by 1;
-- slices by category
select category, count(*) as n from slice group by category order by 1;
-- slices in order
select ts, dur, name, category, depth from slice order by ts, dur, name, depth limit 3000;
-- slices on threads
select s.ts, s.dur, s.name, s.depth, t.tid, t.name as thread from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) order by 1, 2, 3, 4, 5 limit 2000;
-- slices on processes
select s.ts, s.dur, s.name, s.depth, p.pid from slice s join process_track pt on s.track_id = pt.id join process p using (upid) order by 1, 2, 3, 4, 5 limit 2000;
-- slices by track type
select t.type, t.name, count(*) as n, sum(s.dur) as total from slice s join track t on s.track_id = t.id group by 1, 2 order by 1, 2;
-- slices and their parents
select s.ts, s.name, parent.ts as parent_ts, parent.name as parent, s.depth - parent.depth as step from slice s join slice parent on s.parent_id = parent.id order by 1, 2, 3, 4 limit 2000;
-- slices by depth
select depth, count(*) as n from slice group by depth order by 1;
-- slices that did not end
select ts, name, depth from slice where dur = -1 order by 1, 2;
-- instants
select ts, name, category from slice where dur = 0 order by 1, 2, 3 limit 1000;
-- slices without a name
select ts, dur, category from slice where name is null order by 1, 2;
-- processor time of slices
select ts, name, thread_ts, thread_dur from slice where thread_ts is not null order by 1, 2;
-- slices with arguments
select s.name, count(*) as n from slice s where arg_set_id is not null group by 1 order by 1;
-- distinct argument sets of slices
select count(distinct arg_set_id) as n from slice;
-- arguments of slices
select s.ts, s.name, a.flat_key, a.key, a.int_value, a.string_value, a.real_value, a.value_type from slice s join args a using (arg_set_id) where a.key not like '%passthrough_utid' and a.key not in ('utid', 'end_utid') and a.key not like '%.mapping_id' and (a.string_value is null or a.key not like 'debug.%' or a.string_value not glob '*[\<"'||char(10)||char(13)||char(9)||']*') order by 1, 2, 4, 5, 6 limit 3000;
-- threads that wrote slices of other tracks
select s.ts, s.name, t.tid from slice s join thread t on t.utid = extract_arg(s.arg_set_id, 'legacy_event.passthrough_utid') order by 1, 2, 3 limit 1000;
-- keys of arguments of slices
select a.key, a.value_type, count(*) as n from slice s join args a using (arg_set_id) group by 1, 2 order by 1, 2;
-- one argument by its key
select s.ts, extract_arg(s.arg_set_id, 'debug.round') as round from slice s where round is not null order by 1, 2 limit 500;
-- slices inside others by name
select parent.name as outer_name, s.name, count(*) as n from slice s join slice parent on s.parent_id = parent.id group by 1, 2 order by 1, 2;
-- overlaps on a track
select count(*) as n from (select ts, lag(ts + dur) over (partition by track_id, depth order by ts, id) as previous_end from slice where dur > 0) where ts < previous_end;
-- roots by process
select p.pid, count(*) as n from slice s join thread_track tt on s.track_id = tt.id join thread using (utid) join process p using (upid) where s.depth = 0 group by 1 order by 1;
-- triggers
select s.ts, s.name, extract_arg(s.arg_set_id, 'producer_name') as producer, extract_arg(s.arg_set_id, 'trusted_producer_uid') as uid, extract_arg(s.arg_set_id, 'chrome_trigger.name_hash') as hash from slice s join track t on s.track_id = t.id where t.type = 'triggers' order by 1, 2;
-- messages as arguments
select s.name, a.flat_key, a.key, a.value_type, count(*) as n from slice s join args a using (arg_set_id) where a.key glob 'chrome_*' or a.key glob 'cc_scheduler_state*' or a.value_type = 'null' group by 1, 2, 3, 4 order by 1, 2, 3, 4;
