-- longest slices of each name
select name, ts, dur from (select name, ts, dur, row_number() over (partition by name order by dur desc, ts) as place from slice where dur > 0) where place <= 3 order by 1, 3 desc, 2;
-- percentiles by rank
select name, min(dur) as p90 from (select name, dur, percent_rank() over (partition by name order by dur) as rank from slice where dur >= 0) where rank >= 0.9 group by name order by 1;
-- slices that take longer than the mean of their name
select s.name, count(*) as n from slice s join (select name, avg(dur) as mean from slice where dur >= 0 group by name) m on s.name = m.name where s.dur > m.mean group by 1 order by 1;
-- time between neighbours on a track
select name, count(*) as n, min(gap) as least, max(gap) as most from (select name, ts - lag(ts) over (partition by track_id, name order by ts, id) as gap from slice) where gap is not null group by name order by 1;
-- durations in classes
select case when dur < 0 then 'open' when dur = 0 then 'instant' when dur < 1000 then 'short' when dur < 1000000 then 'medium' else 'long' end as class, count(*) as n from slice group by class order by 1;
-- time without inner slices
select s.name, sum(s.dur - ifnull(c.dur, 0)) as self_dur from slice s left join (select parent_id, sum(dur) as dur from slice where parent_id is not null and dur > 0 group by parent_id) c on c.parent_id = s.id where s.dur > 0 group by s.name order by 1;
-- slices whose parents have another category
select distinct s.name, s.category, p.category as outer_category from slice s join slice p on s.parent_id = p.id where s.category is not p.category order by 1, 2, 3;
-- depth of nesting by recursion
with recursive chain(id, root, depth) as (select id, id, 0 from slice where parent_id is null union all select s.id, c.root, c.depth + 1 from slice s join chain c on s.parent_id = c.id) select r.name, max(c.depth) as deepest, count(*) as n from chain c join slice r on r.id = c.root group by r.name order by 1;
-- names of two kinds
select name from slice where dur = 0 union select name from counter_track order by 1;
-- names of slices that are no counters
select name from slice where name is not null except select name from counter_track order by 1;
-- names of threads that are names of processes
select name from thread intersect select name from process order by 1;
-- threads that have slices
select t.tid from thread t where exists (select 1 from thread_track tt join slice s on s.track_id = tt.id where tt.utid = t.utid) order by 1;
-- threads that have no slices
select t.tid from thread t where not exists (select 1 from thread_track tt join slice s on s.track_id = tt.id where tt.utid = t.utid) and t.tid > 0 order by 1;
-- parents by a subquery
select s.ts, s.name, (select p.name from slice p where p.id = s.parent_id) as parent from slice s where s.depth > 0 order by 1, 2, 3 limit 1000;
-- number of inner slices by a subquery
select s.ts, s.name, (select count(*) from slice c where c.parent_id = s.id) as inner_slices from slice s where s.depth = 0 order by 1, 2, 3 limit 1000;
-- share of the whole time
select name, sum(dur) * 100 / (select sum(dur) from slice where dur > 0) as percent from slice where dur > 0 group by name order by 1;
-- texts are cut and joined
select distinct upper(substr(name, 1, 3)) as head, substr(name, -2) as tail, length(name) as size, instr(name, 'a') as at from slice where name is not null order by 1, 2, 3, 4;
-- texts are replaced
select distinct replace(name, 'a', '-') as text, lower(name) || '!' as loud, trim(name) as trimmed from slice where name is not null order by 1, 2, 3;
-- patterns without regard to case
select distinct name from slice where name like 'F%' or name like '%K' order by 1;
-- patterns with sets
select distinct name from slice where name glob '[a-f]*' or name glob '?i*' order by 1;
-- patterns that do not fit
select distinct name from thread where name not glob '*[0-9]*' order by 1;
-- conditions as numbers
select category, sum(dur > 1000) as long_slices, sum(iif(dur = 0, 1, 0)) as instants from slice group by category order by 1;
-- division of integers and by zero
select distinct depth, 7 / (depth + 1) as whole, 7 % (depth + 1) as rest, 7.0 / (depth + 2) as part, 7 / depth as perhaps from slice order by 1;
-- casts
select distinct cast(dur / 1000.0 as int) as microseconds, cast(depth as text) as text, cast(depth as real) / 2 as half from slice where dur between 0 and 100000 order by 1, 2, 3 limit 200;
-- numbers as texts
select distinct printf('%03d|%.2f|%s', depth, depth / 3.0, category) as text from slice order by 1;
-- first of several values
select pid, coalesce(name, cmdline, 'none') as text, max(pid, 10) as at_least, min(pid, 10) as at_most from process order by 1, 2;
-- sums over a window
select ts, name, sum(dur) over (partition by name order by ts, id rows between 2 preceding and current row) as recent from slice where dur >= 0 and name is not null order by 1, 2, 3 limit 500;
-- first and last in a window
select distinct name, first_value(ts) over (partition by name order by ts, id) as first_ts, last_value(ts) over (partition by name order by ts, id rows between unbounded preceding and unbounded following) as last_ts from slice where name is not null order by 1, 2;
-- running number of values of counters
select t.name, c.ts, dense_rank() over (partition by c.track_id order by c.value) as rank from counter c join counter_track t on c.track_id = t.id where t.name glob 'f*' or t.name glob 'q*' order by 1, 2, 3 limit 500;
-- times for which counters had their values
select name, value, sum(next_ts - ts) as duration from (select t.name, c.value, c.ts, lead(c.ts) over (partition by c.track_id order by c.ts, c.id) as next_ts from counter c join counter_track t on c.track_id = t.id) where next_ts is not null group by 1, 2 order by 1, 2 limit 1000;
-- processors that threads moved between
select t.tid, sum(s.before != s.cpu) as moves, count(*) as n from (select utid, cpu, lag(cpu) over (partition by utid order by ts, id) as before from sched) s join thread t using (utid) where s.before is not null group by t.utid order by 1, 2;
-- threads that followed each other
select a.tid as before_tid, b.tid as after_tid, count(*) as n from (select utid, lag(utid) over (partition by cpu order by ts, id) as before from sched) s join thread a on a.utid = s.before join thread b on b.utid = s.utid group by 1, 2 order by 1, 2;
-- events in a range of time
select name, count(*) as n from ftrace_event where ts >= (select min(ts) from ftrace_event) and ts < (select min(ts) + 1000 from ftrace_event) group by 1 order by 1;
-- order with nulls
select distinct category from slice order by category desc;
-- limit with offset
select tid from thread order by tid, name limit 3 offset 2;
-- groups with conditions
select tid, count(*) as n from thread join thread_track using (utid) group by tid having count(*) > 0 and tid > 0 order by 1;
-- longest slice of each category with its name
select category, name, max(dur) as longest from slice where dur > 0 and category is not null group by category order by 1;
-- texts in double quotes
select count(*) as n from slice where name = "frame" or category = "rendering";
-- values that are null or not
select count(*) as n, count(category) as categories, count(distinct category) as kinds, sum(category is null) as missing from slice;
-- lists of names
select process_names, count(*) as n from (select p.upid, group_concat(t.name, '+') as process_names from process p join (select distinct upid, name from thread order by upid, name) t on t.upid = p.upid group by p.upid having count(*) = 1) group by 1 order by 1;
-- joins with two conditions
select a.name, count(*) as n from slice a join slice b on a.track_id = b.track_id and b.ts > a.ts and b.ts + b.dur < a.ts + a.dur where a.depth = 0 and b.depth = 1 group by 1 order by 1;
-- arguments beside slices
select s.name, group_concat(distinct a.value_type) as types from slice s join args a on a.arg_set_id = s.arg_set_id group by s.name having count(distinct a.value_type) = 1 order by 1;
-- several common tables
with busy as (select track_id, sum(dur) as total from slice where dur > 0 and depth = 0 group by track_id), named as (select t.name, b.total from busy b join track t on t.id = b.track_id) select name, count(*) as tracks, sum(total) as total from named group by name order by 1;
