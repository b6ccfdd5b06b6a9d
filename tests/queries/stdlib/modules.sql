-- slices of threads
include perfetto module slices.with_context; select ts, dur, category, name, track_name, thread_name, tid, is_main_thread, process_name, pid, depth, thread_ts, thread_dur from thread_slice order by 1, 2, 4, 11 limit 2000;
-- slices of processes
include perfetto module slices.with_context; select ts, dur, category, name, track_name, process_name, pid, depth, thread_ts, thread_dur from process_slice order by 1, 2, 4, 8;
-- slices of threads and processes
include perfetto module slices.with_context; select ts, dur, category, name, track_name, thread_name, tid, process_name, pid, depth from thread_or_process_slice order by 1, 2, 4, 10 limit 2000;
-- own time of slices
include perfetto module slices.self_dur; select s.name, s.ts, d.self_dur from slice_self_dur d join slice s using (id) where s.dur >= 0 and not exists (select 1 from slice c where c.parent_id = s.id and c.dur < 0) order by 1, 2, 3 limit 2000;
-- intervals of processors with names
include perfetto module sched.with_context; select ts, dur, thread_name, process_name, cpu, end_state, priority from sched_with_thread_process order by 1, 5;
-- conversions of durations
include perfetto module time.conversion; select name, time_to_us(dur) as us, time_to_ms(dur) as ms, time_from_ms(depth) as back from slice where dur >= 0 order by 1, 2, 3, 4 limit 500;
-- times in which threads ran inside slices
create view running as select ts, dur, utid, cpu from sched where dur >= 0; create view outer_slices as select s.ts, s.dur, tt.utid, s.name from slice s join thread_track tt on s.track_id = tt.id where s.depth = 0 and s.dur > 0; create virtual table running_slices using span_join(outer_slices partitioned utid, running partitioned utid); select r.ts, r.dur, t.tid, r.name, r.cpu from running_slices r join thread t using (utid) order by 1, 3;
-- counters inside slices
create view levels as select ts, lead(ts) over (partition by track_id order by ts, id) - ts as dur, track_id, value from counter; create view one_counter as select ts, dur, value from levels where dur > 0 and track_id = (select min(track_id) from counter); create view one_track as select ts, dur, name from slice where depth = 0 and dur > 0 and track_id = (select min(track_id) from slice where dur > 0 and depth = 0); create virtual table both_of_them using span_join(one_track, one_counter); select ts, dur, name, value from both_of_them order by 1, 2;
-- slices with the rest
create view first_track as select ts, dur, name from slice where depth = 0 and dur > 0 and track_id = (select min(track_id) from slice where dur > 0 and depth = 0); create view inner_ones as select ts, dur, name as inner_name from slice where depth = 1 and dur > 0 and track_id = (select min(track_id) from slice where dur > 0 and depth = 0); create virtual table left_of_them using span_left_join(first_track, inner_ones); select ts, dur, name, inner_name from left_of_them order by 1, 2, 4;
-- slices and gaps
create view out_track as select ts, dur, name from slice where depth = 0 and dur > 0 and track_id = (select min(track_id) from slice where dur > 0 and depth = 0); create view in_ones as select ts + 10 as ts, dur, name as inner_name from slice where depth = 1 and dur > 20 and track_id = (select min(track_id) from slice where dur > 0 and depth = 0); create virtual table outer_of_them using span_outer_join(out_track, in_ones); select ts, dur, name, inner_name from outer_of_them order by 1, 2, 4;
-- spans by partition
create perfetto table a_spans as select 1 as p, 10 as ts, 10 as dur, 'a1' as a union all select 1, 30, 0, 'a2' union all select 1, 40, 20, 'a3' union all select 2, 5, 100, 'a4' union all select null, 0, 1000, 'a5'; create perfetto table b_spans as select 1 as p, 15 as ts, 30 as dur, 'b1' as b union all select 1, 45, 5, 'b2' union all select 1, 50, 5, 'b3' union all select 3, 0, 10, 'b4'; create virtual table ab_spans using span_outer_join(a_spans partitioned p, b_spans partitioned p); select ts, dur, p, a, b from ab_spans order by 3, 1, 2;
-- spans of one partitioned table
create perfetto table d_spans as select 1 as p, 10 as ts, 10 as dur, 'a1' as a union all select 1, 30, 0, 'a2' union all select 1, 40, 20, 'a3' union all select 2, 5, 100, 'a4'; create perfetto table c_spans as select 0 as ts, 18 as dur, 'c1' as c union all select 42, 100, 'c2'; create virtual table cd_spans using span_left_join(c_spans, d_spans partitioned p); select ts, dur, p, a, c from cd_spans order by 3, 1, 2;
