-- ids of the threads and processes of slices
select s.ts, s.name, t.tid, p.pid, p.uid from slice s join thread_track tt on tt.id = s.track_id join thread t using (utid) join process p using (upid) order by 1, 2, 3 limit 5000;
-- ids of the processes of slices on tracks of processes
select s.ts, s.name, p.pid, p.cmdline from slice s join process_track pt on pt.id = s.track_id join process p using (upid) order by 1, 2, 3 limit 5000;
-- threads that the kernel knows outside of namespaces
select t.tid, p.pid, p.name from thread t join process p using (upid) where p.cmdline is not null and t.tid > 100 and t.tid < 1000000 order by 1, 2, 3;
