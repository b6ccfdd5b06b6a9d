-- ancestors of a slice
select a.ts, a.dur, a.name, a.depth from ancestor_slice((select max(id) from slice where depth = (select max(depth) from slice))) a order by 1, 4;
-- descendants of a slice
select d.ts, d.dur, d.name, d.depth from descendant_slice((select min(parent_id) from slice)) d order by 1, 4, 3;
-- arrows that follow
select a.name as from_name, a.ts as from_ts, b.name as to_name, b.ts as to_ts from following_flow((select s.id from flow f join slice s on s.id = f.slice_out order by s.ts, s.name limit 1)) f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in order by 2, 4;
-- arrows that precede
select a.name as from_name, a.ts as from_ts, b.name as to_name, b.ts as to_ts from preceding_flow((select s.id from flow f join slice s on s.id = f.slice_in order by s.ts desc, s.name limit 1)) f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in order by 2, 4;
-- arrows of a slice
select a.name as from_name, a.ts as from_ts, b.name as to_name, b.ts as to_ts from directly_connected_flow((select s.id from flow f join slice s on s.id = f.slice_in order by s.ts, s.name limit 1)) f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in order by 2, 4;
