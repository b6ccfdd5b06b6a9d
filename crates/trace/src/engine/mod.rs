//! Engine that reads a trace into tables.
//!
//! The import has two stages. The tokenizer takes packets in the order of the file; it keeps the
//! state of sequences and converts clocks. The sorter brings the records in the order of time, in
//! bounded memory. The importers make the tables of them.

mod android_log;
mod call_stacks;
mod chrome_names;
mod concurrent_sessions;
pub(crate) mod context;
mod counter_tracks;
mod current_states;
mod descriptors;
pub(crate) mod event_details;
mod event_tokenizer;
mod event_track_rows;
pub(crate) mod event_tracks;
mod facts;
mod flows;
mod ftrace;
mod generic_event;
mod heap_profiles;
mod kernel_counters;
mod kernel_event;
mod kernel_names;
mod kernel_slices;
mod kernel_state;
mod kernel_tasks;
mod kernel_track_events;
mod lane_groups;
mod lanes;
mod late_fields;
mod legacy_events;
mod meminfo_names;
mod namespaces;
mod network_events;
mod perf_samples;
mod power_events;
mod print_markers;
mod process_statistics;
mod processes;
mod proto_args;
mod proto_descriptors;
mod record;
mod scheduling;
mod scheduling_state;
mod slices;
mod sorter;
mod stack_samples;
mod stacks;
mod states;
mod stats;
pub(crate) mod survey;
mod syscall_slices;
mod syscalls;
mod system_statistics;
mod task_state;
mod tokenizer;
mod track_events;
mod tracks;
mod triggers;

pub(crate) use self::slices::PENDING;
pub(crate) use self::sorter::SORT_MEMORY;

use std::io::{self, Read};

use esatto_schema::trace_packet::field as packet_field;

use self::context::Context;
use self::record::{Get, Kind, TrackEventRecord};
use self::sorter::Sorted;
use self::survey::Survey;
use self::tokenizer::Tokenizer;
use crate::clock_conversion::Clocks;
use crate::error::Error;
use crate::machines::{HOST, Machines};
use crate::packet_reader::PacketReader;
use crate::packet_sequence::{Sequence, State};
use crate::problems::Problem;
use crate::tables::Tables;

/// Errors of a file that are kept. Further ones are only counted, because each packet of a damaged
/// file can be one.
const MAX_KEPT_ERRORS: usize = 1000;

/// A trace as tables.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Engine {
    /// The content.
    pub tables: Tables,
    /// Errors of the file, in order. Everything readable has been read.
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
        Import::read(file, sort_memory, false).engine
    }
}

/// A trace that has been read: its tables, and what they do not keep.
#[derive(Debug, Default)]
pub(crate) struct Import {
    pub(crate) engine: Engine,
    /// State of the import, without the tables.
    pub(crate) context: Context,
    pub(crate) sequences: Vec<Sequence>,
    pub(crate) clocks: Clocks,
    pub(crate) machines: Machines,
    pub(crate) survey: Survey,
    pub(crate) compressed_packets: u64,
    pub(crate) inflated_bytes: u64,
    pub(crate) is_gzipped: bool,
    pub(crate) malformed_packets: u64,
    /// The file ends within a packet.
    pub(crate) is_torn: bool,
    /// Size of the trace, if it was read to its end.
    pub(crate) trace_bytes: u64,
    /// Bytes of the file that an error left unread.
    pub(crate) unread_bytes: Option<u64>,
    /// Cost of reading beyond a constant for each byte of the file.
    pub(crate) work: u64,
}

impl Import {
    /// Reads a trace to its end. With `keeps_events`, the context has the details of each event.
    pub(crate) fn read(file: impl Read, sort_memory: usize, keeps_events: bool) -> Self {
        let mut import = Self::default();
        let mut tokenizer = Tokenizer::new(sort_memory);
        tokenizer.context.details.are_kept = keeps_events;
        let idle = tokenizer.context.symbol("swapper");
        let context = &mut tokenizer.context;
        context.processes.add_idle(&mut context.tables, HOST, idle);
        let mut reader = PacketReader::new(file);
        while let Some(packet) = reader.next() {
            let read = packet.and_then(|packet| {
                let read = tokenizer.add(&packet);
                reader.recycle(packet);
                read
            });
            if let Err(error) = read {
                import.note(error);
            }
        }
        tokenizer.finish();
        import.compressed_packets = reader.compressed_packets();
        import.inflated_bytes = reader.inflated_bytes();
        import.is_gzipped = reader.is_gzipped();
        import.work = reader.work();
        import.trace_bytes = reader.bytes();
        import.unread_bytes = reader.count_unread_bytes();
        import.sort(tokenizer);
        import
    }

    fn note(&mut self, error: Error) {
        self.malformed_packets += u64::from(matches!(error, Error::Malformed { .. }));
        self.is_torn |= error.is_end_of_file();
        // An error that ends the reading is always kept.
        if error.ends_reading() || self.engine.errors.len() < MAX_KEPT_ERRORS {
            self.engine.errors.push(error);
        } else {
            self.engine.more_errors += 1;
        }
    }

    /// Imports the records in the order of time.
    fn sort(&mut self, tokenizer: Tokenizer) {
        let Tokenizer { mut context, clocks, machines, survey, sorters, mut sequences, .. } = tokenizer;
        for sequence in &mut sequences {
            // Frees interned data.
            sequence.state = State::default();
        }
        let trace_clock = clocks.trace_clock();
        let (mut sorted, mut aheads) = (Vec::new(), hashbrown::HashMap::new());
        for (machine, mut sorter) in sorters {
            self.engine.sort_error = sorter.failure.take().or_else(|| self.engine.sort_error.take());
            let ahead = machines.ahead(machine, trace_clock).unwrap_or(0);
            context.note_ftrace_start(machine, ahead);
            aheads.extend(context.processes.machine_row(machine).map(|row| (row, ahead)));
            match sorter.into_sorted() {
                Ok(records) => sorted.push(Source { machine, ahead, records }),
                Err(error) => self.engine.sort_error = Some(error),
            }
        }
        context.convert_snapshots(&aheads);
        if let Err(error) = context.import(&mut sorted) {
            self.engine.sort_error = Some(error);
        }
        context.finish(trace_clock);
        self.work += clocks.work() + context.slices.work;
        self.engine.tables = core::mem::take(&mut context.tables);
        (self.context, self.clocks, self.machines) = (context, clocks, machines);
        (self.survey, self.sequences) = (survey, sequences);
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
        let head = |source: &mut Source| -> io::Result<_> {
            let next = source.records.peek()?;
            Ok(next.map(|(ts, queue)| core::cmp::Reverse((ts.saturating_sub(source.ahead), queue))))
        };
        let mut heap = std::collections::BinaryHeap::new();
        for (index, source) in sources.iter_mut().enumerate() {
            heap.extend(head(source)?.map(|key| (key, index)));
        }
        while let Some((_, index)) = heap.pop() {
            let source = &mut sources[index];
            let (machine, ahead) = (source.machine, source.ahead);
            if let Some((ts, record)) = source.records.next()? {
                self.import_record(ts.saturating_sub(ahead), machine, Get(record), &mut event);
            }
            heap.extend(head(source)?.map(|key| (key, index)));
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
                    packet_field::CONCURRENT_SESSION_EVENT => self.import_session_event(ts, machine, payload),
                    packet_field::TRIGGER | packet_field::CHROME_TRIGGER | packet_field::CLONE_SNAPSHOT_TRIGGER => {
                        self.import_trigger(ts, machine, id, payload);
                    }
                    _ => {}
                }
            }
            None => {}
        }
        self.end_awaited_flows();
    }

    fn finish(&mut self, trace_clock: u32) {
        self.finish_thread_counters();
        self.processes.finish(&mut self.tables);
        self.finish_facts(trace_clock);
        self.problems.add(Problem::MisplacedEnd, self.slices.misplaced_ends);
        let stats = core::mem::take(&mut self.stats);
        stats.finish(&mut self.tables);
        debug_assert!(self.machines.get(&HOST).is_none_or(|row| row.index() == 0), "the host is first");
    }
}
