-- number of arrows
select count(*) as n from flow;
-- arrows with the slices that they link
select a.ts as from_ts, a.name as from_name, b.ts as to_ts, b.name as to_name from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id order by 1, 2, 3, 4 limit 2000;
-- arrows by the names of slices
select a.name as from_name, b.name as to_name, count(*) as n from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id group by 1, 2 order by 1, 2;
-- numbers of arrows
select trace_id, count(*) as n from flow group by 1 order by 1 limit 1000;
-- slices with arrows on both sides
select s.ts, s.name from slice s where s.id in (select slice_out from flow) and s.id in (select slice_in from flow) order by 1, 2 limit 500;
-- arrows with the threads of their slices
select a.ts as from_ts, ta.tid as from_tid, b.ts as to_ts, tb.tid as to_tid, f.trace_id from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id left join thread_track ka on a.track_id = ka.id left join thread ta on ka.utid = ta.utid left join thread_track kb on b.track_id = kb.id left join thread tb on kb.utid = tb.utid order by 1, 2, 3, 4, 5 limit 2000;
