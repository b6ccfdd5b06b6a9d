//! Views above the tables, with the names of the trace processor and of its standard library.

/// A view.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    /// `{s}` stands for the columns that tell traces apart, of the table `s`.
    pub(crate) sql: &'static str,
}

/// Returns the names of all views, and their content in a sentence.
pub fn views() -> impl Iterator<Item = (&'static str, &'static str)> {
    VIEWS.iter().map(|view| (view.name, view.doc))
}

/// Returns the view with this name.
pub(crate) fn view(name: &str) -> Option<&'static View> {
    VIEWS.iter().find(|view| view.name == name)
}

pub(crate) const VIEWS: &[View] = &[
    View {
        name: "counters",
        doc: "Values of counters with the names of the counters.",
        sql: "select c.id, c.ts, c.track_id, c.value, c.arg_set_id, t.name, t.unit{c}
            from counter c join counter_track t on c.track_id = t.id",
    },
    View {
        name: "thread_slice",
        doc: "Slices of threads, with the thread and the process.",
        sql: "select s.id, s.ts, s.dur, s.category, s.name, s.track_id, tt.name as track_name,
                t.name as thread_name, t.utid, t.tid, t.is_main_thread, p.name as process_name, p.upid, p.pid,
                s.depth, s.parent_id, s.arg_set_id, s.thread_ts, s.thread_dur{s}
            from slice s join thread_track tt on s.track_id = tt.id join thread t on tt.utid = t.utid
            left join process p on t.upid = p.upid",
    },
    View {
        name: "process_slice",
        doc: "Slices of processes, with the process.",
        sql: "select s.id, s.ts, s.dur, s.category, s.name, s.track_id, pt.name as track_name,
                p.name as process_name, p.upid, p.pid, s.depth, s.parent_id, s.arg_set_id, s.thread_ts,
                s.thread_dur{s}
            from slice s join process_track pt on s.track_id = pt.id join process p on pt.upid = p.upid",
    },
    View {
        name: "thread_or_process_slice",
        doc: "Slices of threads and of processes.",
        sql: "select id, ts, dur, category, name, track_id, track_name, thread_name, utid, tid,
                process_name, upid, pid, depth, parent_id, arg_set_id{thread_slice} from thread_slice
            union all
            select id, ts, dur, category, name, track_id, track_name, null, null, null,
                process_name, upid, pid, depth, parent_id, arg_set_id{process_slice} from process_slice",
    },
    View {
        name: "slice_self_dur",
        doc: "The duration of each slice without the slices directly inside of it.",
        sql: "select s.id, s.dur - coalesce(inside.dur, 0) as self_dur{s}
            from slice s left join (
                select parent_id, sum(dur) as dur from slice where parent_id is not null group by parent_id
            ) inside on inside.parent_id = s.id",
    },
    View {
        name: "slice_with_self_time",
        doc: "Slices with the duration without the slices directly inside of them.",
        sql: "select s.id, s.ts, s.dur, s.track_id, s.category, s.name, s.depth, s.parent_id, s.arg_set_id,
                s.thread_ts, s.thread_dur, d.self_dur{s}
            from slice s join slice_self_dur d on d.id = s.id",
    },
    View {
        name: "sched_with_thread",
        doc: "Intervals of processors, with the thread and the process.",
        sql: "select s.id, s.ts, s.dur, s.cpu, s.ucpu, s.end_state, s.priority, s.utid, t.tid, t.name as thread_name,
                t.is_main_thread, t.is_idle, p.upid, p.pid, p.name as process_name{s}
            from sched s join thread t on s.utid = t.utid left join process p on t.upid = p.upid",
    },
    View {
        name: "sched_with_thread_process",
        doc: "Intervals of processors, with the names of the thread and the process.",
        sql: "select s.id, s.ts, s.dur, s.utid, t.upid, t.name as thread_name, p.name as process_name, s.cpu,
                s.end_state, s.priority{s}
            from sched s join thread t on s.utid = t.utid left join process p on t.upid = p.upid",
    },
    View {
        name: "thread_state_with_thread",
        doc: "States of threads, with the thread and the process.",
        sql: "select s.id, s.ts, s.dur, s.cpu, s.state, s.io_wait, s.blocked_function, s.waker_utid, s.waker_id,
                s.irq_context, s.utid, t.tid, t.name as thread_name, t.is_main_thread, p.upid, p.pid,
                p.name as process_name{s}
            from thread_state s join thread t on s.utid = t.utid left join process p on t.upid = p.upid",
    },
    View {
        name: "cpu_utilization",
        doc: "How busy each processor was: the time of threads that are not idle, between the first and
            the last interval of the trace's processors.",
        sql: "select w.ucpu, w.cpu, w.busy_dur, w.span_dur,
                case when w.span_dur > 0 then w.busy_dur * 1.0 / w.span_dur end as utilization{w}
            from (
                select s.ucpu, min(s.cpu) as cpu, sum(case when t.is_idle = 0 then s.dur else 0 end) as busy_dur,
                    max(b.end_ts) - min(b.start_ts) as span_dur{min s}
                from sched s join thread t on s.utid = t.utid
                join (
                    select ucpu / 4294967296 as trace, min(ts) as start_ts, max(ts + dur) as end_ts
                    from sched where dur >= 0 group by ucpu / 4294967296
                ) b on b.trace = s.ucpu / 4294967296
                where s.dur >= 0
                group by s.ucpu
            ) w",
    },
    View {
        name: "cpu_utilization_of_thread",
        doc: "The time that each thread ran, and its number of intervals.",
        sql: "select t.utid, t.tid, t.name as thread_name, p.upid, p.pid, p.name as process_name,
                r.running_dur, r.intervals{t}
            from (select utid, sum(dur) as running_dur, count(*) as intervals from sched where dur >= 0 group by utid) r
            join thread t on r.utid = t.utid left join process p on t.upid = p.upid
            where t.is_idle = 0",
    },
];
