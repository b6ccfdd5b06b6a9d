//! Tables of events: slices, arrows, values of counters, kernel events, log messages.

use super::columns::table;
use super::{Coded, Narrow, Near, Row, Sparse};
use crate::string_table::Symbol;

table! {
    /// Slices and instants.
    SliceTable of SliceRow as "slice" {
        /// Its begin, in nanoseconds of the trace clock.
        ts: Near,
        /// Its duration in nanoseconds; -1 if it did not end.
        dur: Near,
        /// Its track.
        track_id: Vec<Row>,
        /// Its categories, separated by commas.
        category: Vec<Option<Symbol>>,
        /// Its name.
        name: Vec<Option<Symbol>>,
        /// Number of slices that contain it.
        depth: Vec<u16>,
        /// The slice that directly contains it.
        parent_id: Vec<Option<Row>>,
        /// Its arguments.
        arg_set_id: Vec<Option<Row>>,
        /// Processor time of its thread at its begin.
        thread_ts: Sparse<i64>,
        /// Processor time of its thread that it took.
        thread_dur: Sparse<i64>,
    }
}

table! {
    /// States of the tracks that have one at a time.
    StateTable of StateRow as "state" {
        /// Its begin.
        ts: Near,
        /// Its duration; -1 if it did not end.
        dur: Near,
        /// Its track.
        track_id: Vec<Row>,
        /// Its categories, separated by commas.
        category: Vec<Option<Symbol>>,
        /// Its name.
        value: Vec<Symbol>,
        /// Its arguments.
        arg_set_id: Vec<Option<Row>>,
    }
}

table! {
    /// Arrows.
    FlowTable of FlowRow as "flow" {
        /// The slice that began earlier.
        slice_out: Vec<Row>,
        /// The other slice.
        slice_in: Vec<Row>,
        /// The number of the flow, as the program wrote it.
        trace_id: Vec<i64>,
    }
}

table! {
    /// Values of counters.
    CounterTable of CounterRow as "counter" {
        /// Its time.
        ts: Near,
        /// The counter.
        track_id: Vec<Row>,
        /// The value from then on.
        value: Vec<f64>,
        /// Its arguments.
        arg_set_id: Sparse<Row>,
    }
}

table! {
    /// Events of the kernel.
    FtraceEventTable of FtraceEventRow as "ftrace_event" {
        /// Its time.
        ts: Near,
        /// Its name.
        name: Coded<Option<Symbol>>,
        /// The processor that it happened on, as in `sched`.
        cpu: Coded<u32>,
        /// The thread that it happened in.
        utid: Narrow,
        /// Its fields.
        arg_set_id: Vec<Option<Row>>,
        /// Flags of the kernel.
        common_flags: Coded<u32>,
    }
}

table! {
    /// Open files of processes.
    FileDescriptorTable of FileDescriptorRow as "filedescriptor" {
        /// The time at which the file was open.
        ts: Near,
        /// The process.
        upid: Vec<Row>,
        /// The number of the file in the process.
        fd: Vec<i64>,
        /// Its path.
        path: Vec<Option<Symbol>>,
    }
}

table! {
    /// Log messages.
    LogTable of LogRow as "android_logs" {
        /// Its time.
        ts: Near,
        /// The thread that wrote it.
        utid: Vec<Option<Row>>,
        /// Its priority.
        prio: Vec<u32>,
        /// Its tag.
        tag: Vec<Option<Symbol>>,
        /// Its text.
        msg: Vec<Option<Symbol>>,
    }
}
