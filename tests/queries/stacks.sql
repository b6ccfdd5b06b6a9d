-- mappings
select build_id, exact_offset, start_offset, start, "end", load_bias, name from stack_profile_mapping order by 1, 2, 3, 4, 5, 6, 7;
-- frames
select f.name, f.rel_pc, m.name as mapping, m.start, f.deobfuscated_name from stack_profile_frame f join stack_profile_mapping m on m.id = f.mapping order by 1, 2, 3, 4, 5;
-- call stacks
select c.depth, f.name, f.rel_pc, p.depth as parent_depth, g.name as parent_name from stack_profile_callsite c join stack_profile_frame f on f.id = c.frame_id left join stack_profile_callsite p on p.id = c.parent_id left join stack_profile_frame g on g.id = p.frame_id order by 1, 2, 3, 4, 5;
-- samples of perf events
select s.ts, s.cpu, s.cpu_mode, s.unwind_error, s.perf_session_id, t.tid, p.pid, c.depth, f.name, f.rel_pc from perf_sample s join thread t using (utid) left join process p using (upid) left join stack_profile_callsite c on c.id = s.callsite_id left join stack_profile_frame f on f.id = c.frame_id order by 1, 2, 6;
-- samples by session
select perf_session_id, count() as n, count(callsite_id) as stacks from perf_sample group by 1 order by 1;
-- samples of call stacks by programs
select s.ts, s.process_priority, t.tid, c.depth, f.name, f.rel_pc from cpu_profile_stack_sample s join thread t using (utid) join stack_profile_callsite c on c.id = s.callsite_id join stack_profile_frame f on f.id = c.frame_id order by 1, 3, 4;
-- allocations
select a.ts, p.pid, a.heap_name, a.count, a.size, c.depth, f.name, f.rel_pc from heap_profile_allocation a join process p using (upid) join stack_profile_callsite c on c.id = a.callsite_id join stack_profile_frame f on f.id = c.frame_id order by 1, 2, 3, 6, 7, 4;
-- bytes that are allocated, by process and heap
select p.pid, a.heap_name, sum(a.count) as n, sum(a.size) as bytes from heap_profile_allocation a join process p using (upid) group by 1, 2 order by 1, 2;
-- values of the counters of perf events
select c.ts, t.name, extract_arg(t.dimension_arg_set_id, 'cpu') as cpu, extract_arg(t.dimension_arg_set_id, 'perf_session_id') as session, c.value, extract_arg(t.source_arg_set_id, 'is_timebase') as is_timebase from counter c join track t on t.id = c.track_id where t.type = 'perf_cpu_counter' order by 1, 4, 3, 2;
-- functions and lines of frames
select f.name, f.rel_pc, m.name as mapping, s.name as function, s.source_file, s.line_number, s.id - s.symbol_set_id as position from stack_profile_frame f join stack_profile_mapping m on m.id = f.mapping join stack_profile_symbol s using (symbol_set_id) order by 1, 2, 3, 7;
-- counts of lost samples and allocations
select name, idx, value from stats where value != 0 and (name like 'perf_%' or name like 'heapprofd_%' or name like 'stackprofile_%') and name not like '%timestamp%' and name != 'heapprofd_missing_packet' order by 1, 2;
