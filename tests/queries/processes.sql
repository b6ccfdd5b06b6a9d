-- processes by pid
select pid, name, start_ts, end_ts, uid, cmdline from process order by pid, start_ts, name;
-- number of processes
select count(*) as n from process;
-- parents of processes
select p.pid, p.name, parent.pid as parent from process p join process parent on p.parent_upid = parent.upid order by 1, 2, 3;
-- threads with their processes
select t.tid, t.name, t.start_ts, t.end_ts, t.is_main_thread, p.pid from thread t left join process p using (upid) order by t.tid, t.start_ts, t.name, p.name;
-- number of threads
select count(*) as n from thread;
-- threads of each process
select p.pid, p.name, count(*) as threads from thread t join process p using (upid) group by p.upid order by 1, 2, 3;
-- threads without a process
select tid, name from thread where upid is null order by 1, 2;
-- idle threads
select tid, name, is_main_thread from thread where is_idle = 1 order by 1, 2;
-- tids that were used again
select tid, count(*) as n from thread group by tid having n > 1 order by 1;
-- pids that were used again
select pid, count(*) as n from process group by pid having n > 1 order by 1;
-- arguments of processes
select p.pid, p.name, a.flat_key, a.key, a.int_value, a.string_value, a.value_type from process p join args a using (arg_set_id) order by 1, 2, 4;
-- main threads
select p.pid, t.name from thread t join process p using (upid) where t.is_main_thread order by 1, 2;
-- processes that ended
select pid, end_ts - start_ts as life from process where end_ts is not null order by 1, 2;
-- open files
select p.pid, f.ts, f.fd, f.path from filedescriptor f join process p using (upid) order by 1, 2, 3, 4 limit 2000;
