//! Tables of processes, threads and tracks.

use super::Row;
use super::columns::table;
use crate::string_table::Symbol;

table! {
    /// Processes. A pid that is used again has a row for each process.
    ProcessTable of ProcessRow as "process" {
        /// Its id on its machine.
        pid: Vec<i64>,
        /// Its name.
        name: Vec<Option<Symbol>>,
        /// Its start, if it was seen.
        start_ts: Vec<Option<i64>>,
        /// Its end, if it was seen.
        end_ts: Vec<Option<i64>>,
        /// The process that made it.
        parent_upid: Vec<Option<Row>>,
        /// The user that it belongs to.
        uid: Vec<Option<u32>>,
        /// Its command line.
        cmdline: Vec<Option<Symbol>>,
        /// Its arguments.
        arg_set_id: Vec<Option<Row>>,
        /// Its machine; none for that of the service.
        machine_id: Vec<Option<Row>>,
    }
}

table! {
    /// Threads. A tid that is used again has a row for each thread.
    ThreadTable of ThreadRow as "thread" {
        /// Its id on its machine.
        tid: Vec<i64>,
        /// Its name.
        name: Vec<Option<Symbol>>,
        /// Its start, if it was seen.
        start_ts: Vec<Option<i64>>,
        /// Its end, if it was seen.
        end_ts: Vec<Option<i64>>,
        /// Its process, if that is known.
        upid: Vec<Option<Row>>,
        /// True if it is the first thread of its process.
        is_main_thread: Vec<Option<bool>>,
        /// True for the threads that idle processors run.
        is_idle: Vec<bool>,
        /// Its machine; none for that of the service.
        machine_id: Vec<Option<Row>>,
    }
}

table! {
    /// Tracks of slices and of counters.
    TrackTable of TrackRow as "track" {
        /// Its name.
        name: Vec<Option<Symbol>>,
        /// Its kind.
        r#type: Vec<Symbol>,
        /// The track that contains it.
        parent_id: Vec<Option<Row>>,
        /// The arguments that tell it from other tracks of its kind.
        dimension_arg_set_id: Vec<Option<Row>>,
        /// Further arguments.
        source_arg_set_id: Vec<Option<Row>>,
        /// Its machine; none for that of the service.
        machine_id: Vec<Option<Row>>,
        /// The unit of a counter.
        unit: Vec<Option<Symbol>>,
        /// A description of a counter.
        description: Vec<Option<Symbol>>,
        /// True if it has values of a counter.
        is_counter: Vec<bool>,
        /// Its thread.
        utid: Vec<Option<Row>>,
        /// Its process, unless it belongs to a thread.
        upid: Vec<Option<Row>>,
        /// Its processor.
        cpu: Vec<Option<u32>>,
    }
}
