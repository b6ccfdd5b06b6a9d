//! Counts of losses and mistakes, named like those of the trace processor.

use std::collections::BTreeMap;

use crate::tables::{StatRow, Tables};

/// Severity of a count.
const INFO: &str = "info";
const DATA_LOSS: &str = "data_loss";
const ERROR: &str = "error";
/// Origin of a count.
const TRACE: &str = "trace";
const ANALYSIS: &str = "analysis";

/// Counts with a severity other than info, or from the trace, by the beginning of their names.
const KINDS: [(&str, &str, &str); 14] = [
    ("traced_buf_trace_writer_packet_loss", DATA_LOSS, TRACE),
    ("traced_buf_patches_failed", DATA_LOSS, TRACE),
    ("traced_buf_abi_violations", DATA_LOSS, TRACE),
    ("traced_buf_incremental_sequences_dropped", DATA_LOSS, ANALYSIS),
    ("traced_buf_sequence_packet_loss", DATA_LOSS, ANALYSIS),
    ("traced_", INFO, TRACE),
    ("ftrace_cpu_commit_overrun_delta", ERROR, TRACE),
    ("ftrace_cpu_dropped_events_delta", ERROR, TRACE),
    ("ftrace_", INFO, TRACE),
    ("misplaced_end_event", DATA_LOSS, ANALYSIS),
    ("mismatched_sched_switch_tids", ERROR, ANALYSIS),
    ("systrace_parse_failure", ERROR, ANALYSIS),
    ("clock_sync_failure", ERROR, ANALYSIS),
    ("invalid_clock_snapshots", ERROR, ANALYSIS),
];

/// Counts by name, and by buffer or processor.
#[derive(Debug, Default)]
pub(crate) struct Stats(BTreeMap<(String, Option<i64>), i64>);

impl Stats {
    pub(crate) fn count(&mut self, name: &str) {
        self.add(name, None, 1);
    }

    pub(crate) fn add(&mut self, name: &str, idx: Option<i64>, number: i64) {
        let value = self.0.entry((name.to_owned(), idx)).or_default();
        *value = value.saturating_add(number);
    }

    pub(crate) fn set(&mut self, name: &str, idx: Option<i64>, value: i64) {
        self.0.insert((name.to_owned(), idx), value);
    }

    pub(crate) fn get(&self, name: &str, idx: Option<i64>) -> i64 {
        self.0.get(&(name.to_owned(), idx)).copied().unwrap_or(0)
    }

    /// Writes all counts into the table.
    pub(crate) fn finish(&self, tables: &mut Tables) {
        for ((name, idx), &value) in &self.0 {
            let kind = KINDS.iter().find(|(beginning, ..)| name.starts_with(beginning));
            let (severity, source) = kind.map_or((INFO, ANALYSIS), |(_, severity, source)| (*severity, *source));
            let strings = &mut tables.strings;
            let row = StatRow {
                name: strings.add_str(name),
                idx: *idx,
                severity: strings.add_str(severity),
                source: strings.add_str(source),
                value,
            };
            tables.stats.push(row);
        }
    }
}

/// A moment that is a fact about the trace.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimedFact {
    Fact(&'static str),
    Stat(&'static str, Option<i64>),
    /// All data sources were flushed.
    Flush,
}

/// A fact about the trace: a number or a text.
#[derive(Debug)]
pub(crate) enum Fact {
    Number(i64),
    Text(String),
}
