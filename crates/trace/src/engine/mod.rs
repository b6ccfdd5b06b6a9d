//! Engine that reads a trace into tables.
//!
//! The import has two stages. The tokenizer takes packets in the order of the file; it keeps the
//! state of sequences and converts clocks. The sorter brings the records in the order of time, in
//! bounded memory. The importers make the tables of them.

mod context;
mod counter_tracks;
mod descriptors;
mod event_tokenizer;
mod event_track_rows;
mod event_tracks;
mod facts;
mod flows;
mod ftrace;
mod lane_groups;
mod lanes;
mod legacy_events;
mod print_markers;
mod processes;
mod profiles;
mod record;
mod scheduling;
mod scheduling_state;
mod slices;
mod sorter;
mod stacks;
mod statistics;
mod stats;
mod syscalls;
mod tokenizer;
mod track_events;
mod tracks;

use std::io::{self, Read};

use esatto_schema::trace_packet::field as packet_field;

use self::context::Context;
use self::record::{Get, Kind, TrackEventRecord};
use self::sorter::{SORT_MEMORY, Sorted};
use self::tokenizer::Tokenizer;
use crate::error::Error;
use crate::machines::HOST;
use crate::packet_reader::PacketReader;
use crate::tables::Tables;

/// Errors of a file that are kept; further ones are only counted.
const MAX_KEPT_ERRORS: usize = 1000;

/// A trace as tables.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Engine {
    /// The content.
    pub tables: Tables,
    /// Errors of the file. Everything readable has been read.
    pub errors: Vec<Error>,
    /// Errors beyond those in `errors`.
    pub more_errors: u64,
    /// Error of a temporary file. Records of the trace are missing.
    pub sort_error: Option<io::Error>,
}

impl Engine {
    /// Reads a trace to its end.
    pub fn read(file: impl Read) -> Self {
        Self::read_with(file, SORT_MEMORY)
    }

    /// Reads a trace to its end. Records that wait to be sorted take about `sort_memory` bytes for
    /// each machine of the trace, and temporary files beyond that.
    pub fn read_with(file: impl Read, sort_memory: usize) -> Self {
        let mut engine = Self::default();
        let mut tokenizer = Tokenizer::new(sort_memory);
        let idle = tokenizer.context.symbol("swapper");
        let context = &mut tokenizer.context;
        context.processes.add_idle(&mut context.tables, HOST, idle);
        for packet in PacketReader::new(file) {
            if let Err(error) = packet.and_then(|packet| tokenizer.add(&packet)) {
                if engine.errors.len() < MAX_KEPT_ERRORS {
                    engine.errors.push(error);
                } else {
                    engine.more_errors += 1;
                }
            }
        }
        tokenizer.finish();
        let trace_clock = tokenizer.clocks.trace_clock();
        let mut sorted = Vec::new();
        for (machine, mut sorter) in core::mem::take(&mut tokenizer.sorters) {
            engine.sort_error = sorter.failure.take().or_else(|| engine.sort_error.take());
            let ahead = tokenizer.machines.ahead(machine, trace_clock).unwrap_or(0);
            match sorter.into_sorted() {
                Ok(records) => sorted.push(Source { machine, ahead, records }),
                Err(error) => engine.sort_error = Some(error),
            }
        }
        let mut context = core::mem::take(&mut tokenizer.context);
        drop(tokenizer);
        if let Err(error) = context.import(&mut sorted) {
            engine.sort_error = Some(error);
        }
        context.finish(trace_clock);
        engine.tables = context.tables;
        engine
    }
}

/// The sorted records of a machine.
struct Source {
    machine: u32,
    /// By how much the trace clock of the machine is ahead of that of the host.
    ahead: i64,
    records: Sorted,
}

impl Context {
    fn import(&mut self, sources: &mut [Source]) -> io::Result<()> {
        let mut event = TrackEventRecord::default();
        if let [Source { machine, ahead, records }] = sources {
            while let Some((ts, record)) = records.next()? {
                self.import_record(ts.saturating_sub(*ahead), *machine, Get(record), &mut event);
            }
            return Ok(());
        }
        let head = |source: &Source| {
            source.records.peek().map(|(ts, queue)| core::cmp::Reverse((ts.saturating_sub(source.ahead), queue)))
        };
        let mut heap: std::collections::BinaryHeap<_> =
            sources.iter().enumerate().filter_map(|(index, source)| Some((head(source)?, index))).collect();
        while let Some((_, index)) = heap.pop() {
            let source = &mut sources[index];
            let (machine, ahead) = (source.machine, source.ahead);
            if let Some((ts, record)) = source.records.next()? {
                self.import_record(ts.saturating_sub(ahead), machine, Get(record), &mut event);
            }
            heap.extend(head(source).map(|key| (key, index)));
        }
        Ok(())
    }

    fn import_record(&mut self, ts: i64, machine: u32, mut record: Get<'_>, event: &mut TrackEventRecord) {
        match Kind::of(record.number()) {
            Some(Kind::TrackEvent) => {
                event.get(&mut record);
                self.import_track_event(ts, machine, event);
            }
            Some(Kind::Descriptor) => self.import_descriptor(record.index()),
            Some(Kind::Ftrace) => self.import_ftrace(ts, machine, record),
            Some(Kind::CompactSwitch) => self.import_compact_switch(ts, machine, record),
            Some(Kind::CompactWaking) => self.import_compact_waking(ts, machine, record),
            Some(Kind::PerfSample) => self.import_perf_sample(ts, machine, record),
            Some(Kind::StackSample) => self.import_stack_sample(ts, machine, record),
            Some(Kind::HeapSample) => self.import_heap_sample(machine, record),
            Some(Kind::Log) => self.import_log(ts, machine, record),
            Some(Kind::Packet) => {
                let id = u32::try_from(record.number()).unwrap_or(0);
                let payload = record.rest();
                match id {
                    packet_field::PROCESS_TREE => self.import_process_tree(machine, payload),
                    packet_field::PROCESS_STATS => self.import_process_stats(ts, machine, payload),
                    packet_field::SYS_STATS => self.import_sys_stats(ts, machine, payload),
                    packet_field::THREAD_DESCRIPTOR | packet_field::PROCESS_DESCRIPTOR => {
                        self.import_old_descriptor(machine, id, payload);
                    }
                    _ => {}
                }
            }
            None => {}
        }
    }

    fn finish(&mut self, trace_clock: u32) {
        self.processes.finish(&mut self.tables);
        self.finish_facts(trace_clock);
        let stats = core::mem::take(&mut self.stats);
        stats.finish(&mut self.tables);
        debug_assert!(self.machines.get(&HOST).is_none_or(|row| row.index() == 0), "the host is first");
    }
}
