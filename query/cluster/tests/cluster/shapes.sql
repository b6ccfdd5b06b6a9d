-- union without duplicates
select name from slice union select name from thread order by 1;
-- union with duplicates
select name, 1 as which from slice union all select name, 2 from thread order by 1, 2;
-- union of groups
select name, count(*) as n from slice group by name union all select 'all', count(*) from slice order by 1, 2;
-- union of a value and a table
select 'value' as kind, 7 as n union all select 'slices', count(*) from slice union all select 'nothing', null order by 1;
-- nested unions
select n from (select 1 as n union all select 2) union all select n from (select depth as n from slice union select 9) order by 1;
-- union of joins
select s.name, t.tid from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) union select p.name, p.pid from process p order by 1, 2;
-- union of limits
select * from (select ts from slice order by ts limit 3) union all select * from (select ts from slice order by ts desc limit 2) order by 1;
-- intersect
select name from slice where depth = 0 intersect select name from slice where depth < 2 order by 1;
-- intersect with duplicates
select depth from slice intersect all select depth from slice where depth > 0 order by 1;
-- except
select name from slice except select name from slice where depth = 0 order by 1;
-- except with duplicates
select depth from slice except all select depth from slice where depth = 1 order by 1;
-- except of nulls
select category from slice except select null order by 1;
-- limit of an order
select ts, name, dur from slice order by ts, id limit 7;
-- limit with an offset
select ts, name from slice order by ts, id limit 5 offset 1000;
-- offset beyond the end
select ts from slice order by ts limit 5 offset 100000000;
-- limit without an order
select count(*) as n from (select * from slice limit 10);
-- limit 0
select name from slice limit 0;
-- limit inside and outside
select count(*) as n, min(ts) as ts from (select ts from (select ts from slice order by ts limit 100) order by ts desc limit 10);
-- order by several, with nulls
select category, dur, name, ts from slice order by category desc, dur, ts, id limit 50;
-- a value of a subquery
select name, dur, (select max(dur) from slice) as longest from slice where dur = (select max(dur) from slice) order by id;
-- two values of subqueries with equal names
select (select max(dur) from slice) as a, (select max(dur) from slice where depth = 1) as b, count(*) as n from slice;
-- values of subqueries in a filter of a group
select name, count(*) as n from slice group by name having count(*) > (select count(*) / 100 from slice) order by 1;
-- a value of a subquery without rows
select count(*) as n, (select max(dur) from slice where depth > 1000) as nothing, (select name from slice where depth > 1000) as name from slice;
-- a value inside of a value
select count(*) as n from slice where dur > (select avg(dur) from slice where dur < (select max(dur) / 2 from slice));
-- a subquery for each row
select t.tid, (select count(*) from thread_track tt where tt.utid = t.utid) as n from thread t order by 1, 2;
-- exists
select count(*) as n from slice s where exists (select 1 from slice c where c.parent_id = s.id);
-- not exists
select count(*) as n from slice s where not exists (select 1 from slice c where c.parent_id = s.id);
-- in
select count(*) as n from slice where track_id in (select id from thread_track);
-- not in
select count(*) as n from slice where id not in (select parent_id from slice where parent_id is not null);
-- not in with nulls
select count(*) as n from slice where id not in (select parent_id from slice);
-- not in with nothing
select count(*) as n from slice where parent_id not in (select parent_id from slice where depth > 1000);
-- window over all rows
select sum(n) as n, max(total) as total from (select row_number() over (order by ts, id) as n, sum(dur) over () as total from slice);
-- window over partitions
select name, n, ts from (select name, ts, row_number() over (partition by name order by ts, id) as n from slice) where n <= 2 order by 1, 2, 3;
-- window with lag and lead
select count(*) as n, sum(before) as before, sum(after) as after from (select lag(ts) over (partition by track_id order by ts, id) as before, lead(ts) over (partition by track_id order by ts, id) as after from slice);
-- window with frames of rows
select max(m) as most, min(m) as least, count(*) as n from (select avg(dur) over (order by ts, id rows between 3 preceding and 1 following) as m from slice);
-- window with frames of values
select max(m) as most, sum(m) as n from (select count(*) over (order by ts range between 1000000 preceding and current row) as m from slice);
-- window of ranks
select sum(r) as ranks, sum(d) as dense, max(q) as quarters from (select rank() over (order by name) as r, dense_rank() over (order by name) as d, ntile(4) over (order by ts, id) as q from slice);
-- window that runs from the start
select ts, running from (select ts, id, sum(dur) over (order by ts, id) as running from slice where dur > 0) order by ts, id limit 20;
-- window over groups
select name, n, sum(n) over (order by name) as running, n * 100 / sum(n) over () as percent from (select name, count(*) as n from slice group by name) order by name;
-- two windows of different orders
select sum(a) as a, sum(b) as b from (select row_number() over (order by ts, id) as a, row_number() over (order by dur desc, id) as b from slice);
-- window with first and last
select distinct name, first_value(ts) over (partition by name order by ts, id) as first, last_value(ts) over (partition by name order by ts, id rows between unbounded preceding and unbounded following) as last from slice order by 1;
-- inner join on equal columns
select count(*) as n, sum(c.dur) as dur from slice p join slice c on c.parent_id = p.id;
-- left join
select count(*) as n, count(c.id) as with_child from slice p left join slice c on c.parent_id = p.id;
-- right join
select count(*) as n, count(p.id) as with_parent from slice p right join slice c on c.parent_id = p.id;
-- full join
select count(*) as n, count(a.utid) as a, count(b.utid) as b from (select utid from thread where tid % 2 = 0) a full join (select utid from thread_track) b on a.utid = b.utid;
-- full join of groups
select coalesce(a.name, b.name) as name, a.n, b.n as m from (select name, count(*) as n from slice where depth = 0 group by name) a full join (select name, count(*) as n from slice where depth = 1 group by name) b on a.name = b.name order by 1;
-- cross join
select count(*) as n from (select distinct depth from slice) a cross join (select tid from thread) b;
-- join on a comparison
select count(*) as n from (select distinct depth from slice) a join (select distinct depth from slice) b on a.depth < b.depth;
-- left join on a comparison
select count(*) as n, count(b.tid) as m from (select tid from thread) a left join (select tid from thread where tid > 100) b on a.tid < b.tid;
-- right join on a comparison
select count(*) as n, count(a.tid) as m from (select tid from thread where tid > 100) a right join (select tid from thread) b on a.tid < b.tid;
-- full join on a comparison
select count(*) as n, count(a.tid) as a, count(b.tid) as b from (select tid from thread where tid % 3 = 0) a full join (select tid from thread where tid % 3 = 1) b on a.tid < b.tid and b.tid < a.tid + 50;
-- exists on a comparison
select count(*) as n from thread a where exists (select 1 from thread b where b.tid > a.tid + 10);
-- not exists on a comparison
select count(*) as n from thread a where not exists (select 1 from thread b where b.tid > a.tid);
-- left join with a filter on the other side
select count(*) as n, count(t.utid) as m from thread_track tt left join thread t on tt.utid = t.utid and t.tid > 100;
-- join of three tables and a group
select p.name, count(distinct t.utid) as threads, count(*) as n from slice s join thread_track tt on s.track_id = tt.id join thread t on tt.utid = t.utid left join process p on t.upid = p.upid group by p.name order by 1;
-- distinct
select distinct depth, category from slice order by 1, 2;
-- distinct of aggregates
select count(distinct name) as names, sum(distinct depth) as depths, count(*) as n from slice;
-- distinct on
select distinct on (name) name, ts from slice order by name, ts, id;
-- aggregates without groups and rows
select count(*) as n, sum(dur) as dur, min(name) as name, avg(dur) as mean from slice where depth > 1000;
-- groups without rows
select name, count(*) as n from slice where depth > 1000 group by name;
-- aggregates with filters
select count(*) filter (where depth = 0) as top, sum(dur) filter (where depth = 1) as inner_dur from slice;
-- grouping sets
select depth, category, count(*) as n from slice group by grouping sets ((depth), (category), ()) order by 1, 2, 3;
-- rollup
select depth, name, count(*) as n from slice group by rollup (depth, name) order by 1, 2, 3;
-- aggregates of an order
select name, string_agg(cast(depth as text), ',' order by ts, id) as depths from (select name, depth, ts, id from slice order by ts, id limit 50) group by name order by 1;
-- first and last of an order
select name, first_value(dur order by ts, id) as first, last_value(dur order by ts, id) as last from slice group by name order by 1;
-- statistics of numbers
select round(stddev(dur)) as deviation, median(dur) as middle, round(corr(dur, depth), 6) as correlation from slice where dur >= 0;
-- a group by an expression
select ts / 100000000 as part, count(*) as n, max(dur) as longest from slice group by 1 order by 1 limit 20;
-- groups of the file
select trace_file, count(*) as n, min(ts) as first from slice group by trace_file order by 1;
-- a condition on the file
select count(*) as n from slice where trace_file like '%t001%' or trace_file like '%t005%';
-- times
select count(*) as n, min(ts) as ts from slice where ts between (select min(ts) from slice) and (select min(ts) + 1000000 from slice);
-- with
with longest as (select name, max(dur) as dur from slice group by name), most as (select name, count(*) as n from slice group by name) select l.name, l.dur, m.n from longest l join most m on l.name = m.name or l.name is null and m.name is null order by 1, 2, 3;
-- a table of one's own
create table mine as select name, count(*) as n from slice group by name; select count(*) as n, sum(n) as slices from mine join (select distinct name from slice) s using (name);
-- a view of one's own
create view inner_slices as select * from slice where depth > 0; select count(*) as n, max(dur) as dur from inner_slices;
-- values without a table
select a, b from (values (1, 'x'), (2, 'y'), (3, null)) as v(a, b) order by 1;
-- values beside a table
select v.a, count(s.id) as n from (values (0), (1), (2), (1000)) as v(a) left join slice s on s.depth = v.a group by v.a order by 1;
-- series beside a table
select g.value as depth, count(s.id) as n from generate_series(0, 3) g left join slice s on s.depth = g.value group by 1 order by 1;
-- arguments as columns
select extract_arg(arg_set_id, 'debug.round') as round, count(*) as n from slice group by 1 order by 1, 2 limit 20;
-- times of the day
select count(distinct to_time(ts, id)) as n, min(to_time(ts, id)) is not null as has_time from slice;
-- texts by patterns
select count(*) as n from slice where name glob '*a[a-m]*' or name glob 'f*e';
-- numbers as conditions
select count(*) as n from thread where is_main_thread and not tid % 2;
-- case
select case when dur < 0 then 'open' when dur < 1000000 then 'short' else 'long' end as kind, count(*) as n from slice group by 1 order by 1;
-- all columns
select * from slice order by ts, id limit 5;
