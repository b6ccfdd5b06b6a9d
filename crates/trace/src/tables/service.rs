//! Tables of facts about the trace and its machines.

use super::Row;
use super::columns::table;
use crate::string_table::Symbol;

table! {
    /// Counts of losses and mistakes.
    StatTable of StatRow as "stats" {
        /// The name of the count.
        name: Vec<Symbol>,
        /// The buffer or the processor.
        idx: Vec<Option<i64>>,
        /// `info`, `data_loss` or `error`.
        severity: Vec<Symbol>,
        /// `trace` if the trace tells it, `analysis` if the reader found it.
        source: Vec<Symbol>,
        /// The count.
        value: Vec<i64>,
    }
}

table! {
    /// Facts about the trace.
    MetadataTable of MetadataRow as "metadata" {
        /// The name of the fact.
        name: Vec<Symbol>,
        /// `single` or `multi`.
        key_type: Vec<Symbol>,
        /// Its value, if it is a number.
        int_value: Vec<Option<i64>>,
        /// Its value, if it is a text.
        str_value: Vec<Option<Symbol>>,
    }
}

table! {
    /// Processors.
    CpuTable of CpuRow as "cpu" {
        /// Its number on its machine.
        cpu: Vec<u32>,
        /// Its group, from 0.
        cluster_id: Vec<Option<u32>>,
        /// Its model.
        processor: Vec<Option<Symbol>>,
        /// Its machine; none for that of the service.
        machine_id: Vec<Option<Row>>,
        /// Its relative speed.
        capacity: Vec<Option<u32>>,
    }
}

table! {
    /// Machines; that of the service is the first.
    MachineTable of MachineRow as "machine" {
        /// Its id in packets; 0 for that of the service, and from 2^32 on for machines that a plan
        /// for merging names.
        raw_id: Vec<i64>,
        /// Its name in a plan for merging.
        name: Vec<Option<Symbol>>,
        /// The name of its system.
        sysname: Vec<Option<Symbol>>,
        /// The release of its system.
        release: Vec<Option<Symbol>>,
        /// The version of its system.
        version: Vec<Option<Symbol>>,
        /// Its architecture.
        arch: Vec<Option<Symbol>>,
        /// Its number of processors.
        num_cpus: Vec<Option<u32>>,
    }
}

table! {
    /// Values of clocks at common moments.
    ClockSnapshotTable of ClockSnapshotRow as "clock_snapshot" {
        /// The moment on the trace clock.
        ts: Vec<i64>,
        /// The clock.
        clock_id: Vec<i64>,
        /// Its name.
        clock_name: Vec<Option<Symbol>>,
        /// Its value.
        clock_value: Vec<i64>,
        /// The snapshot; from 0.
        snapshot_id: Vec<u32>,
        /// Its machine; none for that of the service.
        machine_id: Vec<Option<Row>>,
    }
}
