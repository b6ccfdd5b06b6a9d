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
mod ftrace_tokenizer;
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
mod nested_check;
mod network_events;
pub(crate) mod origins;
mod perf_samples;
pub(crate) mod placement;
mod power_events;
mod print_markers;
mod process_statistics;
mod processes;
mod proto_args;
mod proto_descriptors;
mod recent_sets;
mod record;
mod scheduling;
mod scheduling_gaps;
mod scheduling_state;
mod slices;
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

use std::io::{self, Read};

use esatto_schema::trace_packet::field as packet_field;

use self::context::Context;
use self::placement::{Placement, TimeMap, TimeMaps};
use self::record::{Get, Kind, TrackEventRecord};
use self::survey::Survey;
use self::tokenizer::Tokenizer;
use crate::clock_conversion::{BOOTTIME, Clocks};
use crate::error::Error;
use crate::machines::{HOST, Machines};
use crate::merge_plan::MergePlan;
use crate::packet_reader::PacketReader;
use crate::packet_sequence::{Sequence, State};
use crate::problems::Problem;
use crate::sorter::{Queue, SORT_MEMORY, Sorted};
use crate::tables::Tables;

/// Errors of a file that are kept. Further ones are only counted, because each packet of a damaged
/// file can be one.
const MAX_KEPT_ERRORS: usize = 1000;

/// Traces that are read as one. Each takes memory until the last one is read.
pub const MAX_PARTS: usize = 256;
/// Memory for sorting all traces that are read as one.
const PARTS_SORT_MEMORY: usize = 64 << 20;

/// A trace that is read together with others.
#[derive(Debug)]
pub struct Part<R> {
    /// Its name, to which a [`MergePlan`] refers.
    pub name: String,
    /// Its bytes.
    pub file: R,
    /// False if its times are of no clock, as in formats other than Perfetto's.
    pub has_clocks: bool,
    /// Bytes that it takes in an archive from which it is inflated. The work of reading it depends
    /// on them.
    pub stored_bytes: Option<u64>,
}

impl<R> Part<R> {
    /// Creates a Perfetto trace.
    pub fn new(name: impl Into<String>, file: R) -> Self {
        Self { name: name.into(), file, has_clocks: true, stored_bytes: None }
    }
}

/// Options of reading a trace.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Bytes of memory for records that wait to be sorted, for each machine of the trace. Beyond
    /// that they are in a temporary file. By default 4 MiB.
    pub sort_memory: usize,
    /// False leaves the table `ftrace_event` empty, and `args` without the arguments of its events,
    /// so the numbers of other arguments differ. Nothing else changes. A recording of scheduling
    /// takes a third less memory and time without them.
    pub has_kernel_events: bool,
}

impl ReadOptions {
    /// The default options, but without the table of kernel events.
    pub fn without_kernel_events() -> Self {
        Self { has_kernel_events: false, ..Self::default() }
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { sort_memory: SORT_MEMORY, has_kernel_events: true }
    }
}

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
        Self::read_with(file, &ReadOptions::default())
    }

    /// Reads a trace to its end, with options.
    pub fn read_with(file: impl Read, options: &ReadOptions) -> Self {
        Import::read(file, options, false).engine
    }

    /// Reads a trace of an archive to its end, alone.
    pub fn read_part<R: Read>(part: Part<R>) -> Self {
        Import::read_part(part, &ReadOptions::default(), false).engine
    }

    /// Reads several traces as one, by the rules of a plan. Traces beyond [`MAX_PARTS`] are left
    /// out, with an error.
    pub fn read_parts<R: Read>(plan: &MergePlan, parts: impl IntoIterator<Item = Part<R>>) -> Self {
        Import::read_parts(plan, parts).engine
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
    /// Clocks of further files.
    pub(crate) other_clocks: Vec<Clocks>,
    /// The clock of all times.
    pub(crate) trace_clock: u32,
    pub(crate) machines: Machines,
    pub(crate) maps: TimeMaps,
    /// Numbers of the machines of the files' services.
    pub(crate) bases: Vec<u32>,
    /// True if it is several traces.
    pub(crate) is_merged: bool,
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
    pub(crate) fn read(file: impl Read, options: &ReadOptions, keeps_events: bool) -> Self {
        Self::read_part(Part::new("", file), options, keeps_events)
    }

    pub(crate) fn read_part<R: Read>(part: Part<R>, options: &ReadOptions, keeps_events: bool) -> Self {
        let plan = MergePlan::default();
        let mut import = Self::default();
        let mut tokenizer = import.begin(options.sort_memory, &plan);
        tokenizer.context.kernel_events.are_left_out = !options.has_kernel_events;
        tokenizer.context.details.are_kept = keeps_events;
        tokenizer.begin_file("", None, true);
        import.read_file(&mut tokenizer, part, false);
        import.finish(tokenizer, None);
        import
    }

    /// Reads several traces to their ends, as one.
    pub(crate) fn read_parts<R: Read>(plan: &MergePlan, parts: impl IntoIterator<Item = Part<R>>) -> Self {
        let mut import = Self { is_merged: true, ..Self::default() };
        let mut tokenizer = import.begin(PARTS_SORT_MEMORY / MAX_PARTS, plan);
        for (position, part) in parts.into_iter().enumerate() {
            if position >= MAX_PARTS {
                let why = format!("only {MAX_PARTS} traces are read as one");
                import.note(Error::LeftOut { name: part.name, why });
                continue;
            }
            tokenizer.begin_file(&part.name, plan.rules(&part.name), part.has_clocks);
            import.read_file(&mut tokenizer, part, true);
        }
        tokenizer.context.add_attributes(plan);
        import.finish(tokenizer, Some(plan));
        import
    }

    fn begin(&mut self, sort_memory: usize, plan: &MergePlan) -> Tokenizer {
        let mut tokenizer = Tokenizer::new(sort_memory, plan);
        let idle = tokenizer.context.symbol("swapper");
        let context = &mut tokenizer.context;
        context.processes.add_idle(&mut context.tables, HOST, idle);
        tokenizer
    }

    /// Reads the packets of a file, which may be one of several.
    fn read_file<R: Read>(&mut self, tokenizer: &mut Tokenizer, part: Part<R>, is_of_several: bool) {
        let mut reader = PacketReader::new(part.file).with_stored_bytes(part.stored_bytes);
        while let Some(packet) = reader.next() {
            let read = packet.and_then(|packet| {
                let mut read = tokenizer.add(&packet);
                if let (Ok(()), Some(at)) = (&read, nested_check::malformed_at(&packet.bytes)) {
                    read = Err(Error::Malformed { place: packet.place, at: at as u64 });
                }
                reader.recycle(packet);
                read
            });
            let Err(error) = read else { continue };
            let is_left_out = matches!(error, Error::LeftOut { .. });
            if is_of_several && !is_left_out {
                self.note(Error::InPart { name: part.name.clone(), error: Box::new(error) });
            } else {
                self.note(error);
            }
            if is_left_out {
                break;
            }
        }
        tokenizer.finish_file();
        self.compressed_packets += reader.compressed_packets();
        self.inflated_bytes += reader.inflated_bytes();
        self.is_gzipped |= reader.is_gzipped();
        self.work += reader.work();
        self.trace_bytes += reader.bytes();
        // It is about the only file.
        self.unread_bytes = reader.count_unread_bytes().filter(|_| !is_of_several);
    }

    fn finish(&mut self, mut tokenizer: Tokenizer, plan: Option<&MergePlan>) {
        tokenizer.finish();
        self.sort(tokenizer, plan);
    }

    /// Returns the number of the machine itself that has the service of a file.
    pub(crate) fn base_machine(&self, file: usize) -> u32 {
        self.context.origins.home(self.bases.get(file).copied().unwrap_or(HOST))
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

    /// Returns the maps of the times of all machines.
    fn place(&mut self, tokenizer: &Tokenizer, plan: Option<&MergePlan>) -> TimeMaps {
        let Tokenizer { context, files, machines, .. } = tokenizer;
        let numbers: std::collections::BTreeSet<u32> =
            context.machines.keys().chain(tokenizer.sorters.keys()).copied().collect();
        let Some(plan) = plan else {
            let trace_clock = files.first().map_or(BOOTTIME, |file| file.clocks.trace_clock());
            let behind = |number| TimeMap::behind(machines.ahead(number, trace_clock).unwrap_or(0));
            return numbers.into_iter().map(|number| (number, behind(number))).collect();
        };
        // In the order of the files: the first ones may give others a place.
        let mut numbers: Vec<u32> = numbers.into_iter().filter(|number| context.origins.is_of_file(*number)).collect();
        numbers.sort_by_key(|&number| {
            let origin = context.origins.origin(number);
            (origin.file, origin.id)
        });
        let mut placement = Placement::new(plan, &context.origins, files, machines, &numbers);
        let mut maps = TimeMaps::new();
        for number in numbers {
            let map = placement.map(number, files);
            let file = files.get(context.origins.origin(number).file);
            if let (false, true, Some(file)) = (map.is_placed(), tokenizer.sorters.contains_key(&number), file) {
                let why = "its clock has no relation to that of the other traces; a manifest can give one in `clocks`";
                self.note(Error::LeftOut { name: file.name.clone(), why: why.to_owned() });
            }
            maps.insert(number, map);
        }
        maps
    }

    /// Imports the records in the order of time.
    fn sort(&mut self, tokenizer: Tokenizer, plan: Option<&MergePlan>) {
        let maps = self.place(&tokenizer, plan);
        let Tokenizer { mut context, mut files, machines, survey, sorters, mut sequences, .. } = tokenizer;
        for sequence in &mut sequences {
            // Frees interned data.
            sequence.state = State::default();
        }
        let rule = plan.and_then(|plan| plan.trace_time.as_ref()).map(|time| time.clock);
        let trace_clock = rule.unwrap_or_else(|| files.first().map_or(BOOTTIME, |file| file.clocks.trace_clock()));
        let mut sorted = Vec::new();
        for (machine, mut sorter) in sorters {
            self.engine.sort_error = sorter.take_failure().or_else(|| self.engine.sort_error.take());
            let map = maps.get(&machine).cloned().unwrap_or_default();
            let start = context.ftrace_starts.get(&machine).copied().unwrap_or(0);
            context.note_ftrace_start(machine, map.ahead_at(start));
            if !map.is_placed() {
                context.stats.count("clock_sync_failure_no_path");
                context.problems.count(Problem::ClockUnresolved);
                continue;
            }
            match sorter.into_sorted() {
                Ok(records) => {
                    let file = context.origins.origin(machine).file;
                    sorted.push(Source { machine, file, map, records, head: None });
                }
                Err(error) => self.engine.sort_error = Some(error),
            }
        }
        context.convert_times(&maps);
        if let Err(error) = context.import(&mut sorted) {
            self.engine.sort_error = Some(error);
        }
        context.finish(trace_clock);
        self.work += files.iter().map(|file| file.clocks.work()).sum::<u64>() + context.slices.work;
        self.engine.tables = core::mem::take(&mut context.tables);
        self.bases = files.iter().map(|file| file.base).collect();
        self.clocks = if files.is_empty() { Clocks::default() } else { files.remove(0).clocks };
        self.other_clocks = files.into_iter().map(|file| file.clocks).collect();
        (self.context, self.machines, self.maps) = (context, machines, maps);
        self.trace_clock = trace_clock;
        (self.survey, self.sequences) = (survey, sequences);
    }
}

/// The sorted records of a machine of a file.
struct Source {
    machine: u32,
    file: usize,
    map: TimeMap,
    records: Sorted,
    /// The time of the next record on the clock of the result.
    head: Option<i64>,
}

impl Source {
    /// Returns the time and the queue of the next record that has a place in the result.
    fn peek(&mut self, stats: &mut stats::Stats) -> io::Result<Option<(i64, Queue)>> {
        while let Some((ts, queue)) = self.records.peek()? {
            self.head = self.map.next(ts);
            if let Some(head) = self.head {
                return Ok(Some((head, queue)));
            }
            stats.count("trace_sorter_negative_timestamp_dropped");
            self.records.next_record()?;
        }
        Ok(None)
    }
}

impl Context {
    fn import(&mut self, sources: &mut [Source]) -> io::Result<()> {
        let mut event = TrackEventRecord::default();
        if let [Source { machine, file, map, records, .. }] = sources {
            self.set_file(*file);
            while let Some((ts, record)) = records.next_record()? {
                match map.next(ts) {
                    Some(ts) => self.import_record(ts, *machine, Get(record), &mut event),
                    None => self.stats.count("trace_sorter_negative_timestamp_dropped"),
                }
            }
            return Ok(());
        }
        let mut heap = std::collections::BinaryHeap::new();
        for (index, source) in sources.iter_mut().enumerate() {
            heap.extend(source.peek(&mut self.stats)?.map(|key| core::cmp::Reverse((key, index))));
        }
        while let Some(core::cmp::Reverse((_, index))) = heap.pop() {
            let source = &mut sources[index];
            let (machine, head) = (source.machine, source.head);
            self.set_file(source.file);
            if let (Some((_, record)), Some(ts)) = (source.records.next_record()?, head) {
                self.import_record(ts, machine, Get(record), &mut event);
            }
            heap.extend(source.peek(&mut self.stats)?.map(|key| core::cmp::Reverse((key, index))));
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
