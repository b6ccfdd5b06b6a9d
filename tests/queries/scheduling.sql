-- intervals of processors
select s.ts, s.dur, s.cpu, t.tid, s.end_state, s.priority from sched s join thread t using (utid) order by 1, 3 limit 5000;
-- number of intervals
select count(*) as n from sched;
-- time of threads
select t.tid, t.name, count(*) as n, sum(s.dur) as total from sched s join thread t using (utid) where s.dur != -1 group by t.utid order by 1, 2, 3;
-- time of processors
select cpu, count(*) as n, sum(dur) as total from sched where dur != -1 group by cpu order by 1;
-- ends of intervals
select end_state, count(*) as n from sched group by 1 order by 1;
-- states of threads
select s.ts, s.dur, s.cpu, t.tid, s.state, s.io_wait, s.irq_context from thread_state s join thread t using (utid) order by 1, 4, 5 limit 5000;
-- time in each state
select t.tid, s.state, count(*) as n, sum(s.dur) as total from thread_state s join thread t using (utid) where s.dur != -1 group by t.utid, s.state order by 1, 2, 3, 4;
-- threads that woke others
select s.ts, t.tid, w.tid as waker, waking.state as waker_state, waking.ts as waker_ts from thread_state s join thread t using (utid) join thread w on w.utid = s.waker_utid left join thread_state waking on waking.id = s.waker_id order by 1, 2, 3;
-- time from a wake-up to the run
select t.tid, count(*) as n, max(s.dur) as longest from thread_state s join thread t using (utid) where s.state = 'R' and s.waker_utid is not null group by t.utid order by 1, 2, 3;
-- wake-ups without effect
select w.ts, w.irq_context, t.tid, waker.tid as waker, s.state from spurious_sched_wakeup w join thread t using (utid) join thread waker on waker.utid = w.waker_utid join thread_state s on s.id = w.thread_state_id order by 1, 3;
-- states that did not end
select t.tid, s.state, s.ts from thread_state s join thread t using (utid) where s.dur = -1 order by 1, 3;
-- processors
select cpu, cluster_id, processor from cpu order by 1;
-- functions in which threads waited
select s.ts, t.tid, s.state, s.io_wait, s.blocked_function from thread_state s join thread t using (utid) where s.blocked_function is not null order by 1, 2;
