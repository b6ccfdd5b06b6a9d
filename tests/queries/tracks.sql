-- tracks by type
select type, count(*) as n from track group by type order by 1;
-- tracks by type and name
select type, name, count(*) as n from track group by type, name order by 1, 2;
-- dimensions of tracks
select t.type, t.name, a.flat_key, a.int_value, a.string_value, a.value_type from track t join args a on a.arg_set_id = t.dimension_arg_set_id where a.key not in ('upid', 'utid') order by 1, 2, 3, 4, 5;
-- processes of the dimensions of tracks
select t.type, t.name, p.pid from track t join process p on p.upid = extract_arg(t.dimension_arg_set_id, 'upid') order by 1, 2, 3;
-- threads of the dimensions of tracks
select t.type, t.name, thread.tid from track t join thread on thread.utid = extract_arg(t.dimension_arg_set_id, 'utid') order by 1, 2, 3;
-- sources of tracks
select t.type, t.name, a.key, a.int_value, a.string_value, a.value_type from track t join args a on a.arg_set_id = t.source_arg_set_id where a.key != 'upid' order by 1, 2, 3, 4, 5;
-- parents of tracks
select t.type, t.name, parent.name as parent from track t join track parent on t.parent_id = parent.id order by 1, 2, 3;
-- tracks of threads
select tt.type, tt.name, t.tid, t.name as thread from thread_track tt join thread t using (utid) order by 1, 2, 3, 4;
-- tracks of processes
select pt.type, pt.name, p.pid, p.name as process from process_track pt join process p using (upid) order by 1, 2, 3, 4;
-- tracks without dimensions
select type, name from track where dimension_arg_set_id is null order by 1, 2;
-- lanes of merged tracks
select name, count(*) as lanes from track where extract_arg(dimension_arg_set_id, 'track_compressor_idx') is not null group by name order by 1;
