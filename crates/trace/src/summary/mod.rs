//! Summary of a trace: counts of its content.

mod json;
mod table;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use crate::clock_conversion::clock_name;
use crate::counters::Scope;
use crate::error::Error;
use crate::import::Import;
use crate::packet_reader::PacketReader;
use crate::service_report::{LOSS_FIELDS, ServiceEvent, SystemInfo, TraceStats};
use crate::string_table::Symbol;
use crate::timeline::Timeline;
use crate::trace::TrackType;

/// Errors that are kept. Further ones are only counted, because each packet of a damaged file can
/// be one.
const MAX_ERRORS: usize = 1000;
/// Longest name of a track; longer ones are cut.
const MAX_TRACK_NAME_CHARS: usize = 1000;

/// Counts of the content of a trace.
///
/// [`Display`](core::fmt::Display) shows it as text, [`to_json`](Self::to_json) returns it for
/// programs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Errors of the file, in order. Everything readable has been counted.
    pub errors: Vec<Error>,
    /// Number of errors that [`errors`](Self::errors) does not hold.
    pub more_errors: u64,
    /// All packets, also those inside compressed ones, but not the compressed ones themselves.
    pub packets: u64,
    /// Bytes of these packets, without tags and lengths.
    pub packet_bytes: u64,
    /// Compressed packets.
    pub compressed_packets: u64,
    /// Inflated bytes of the compressed packets.
    pub inflated_bytes: u64,
    /// True if the file as a whole is gzipped.
    pub gzipped: bool,
    /// Packets by the name of their payload in the schema.
    pub packets_by_type: BTreeMap<String, TypeSummary>,
    /// Sequences in the order of their first packet.
    pub sequences: Vec<SequenceSummary>,
    /// Packets that were not usable because the state that they needed was lost.
    pub skipped_packets: u64,
    /// Processes with their threads, without the idle process.
    pub processes: Vec<ProcessSummary>,
    /// Tracks with events, and their parents. Tracks that are merged count as one.
    pub tracks: Vec<TrackSummary>,
    /// Slices and instants.
    pub slices: SliceSummary,
    /// State changes.
    pub states: u64,
    /// Counters and sums of their values.
    pub counters: Vec<CounterSummary>,
    /// Arrows between slices.
    pub flows: u64,
    /// Debug annotations of events.
    pub annotations: u64,
    /// Arguments that these annotations make: a dictionary makes one for each entry.
    pub arguments: u64,
    /// The same, but equal sets of arguments count once.
    pub distinct_arguments: u64,
    /// Slices and instants by category.
    pub categories: BTreeMap<String, u64>,
    /// Kernel events.
    pub ftrace_events: u64,
    /// Bundles of kernel events before which events were lost.
    pub ftrace_losses: u64,
    /// The id of the clock of all times.
    pub trace_clock: u32,
    /// Clocks of the whole trace that occur in snapshots.
    pub clocks: Vec<ClockSummary>,
    /// Clock snapshots.
    pub clock_snapshots: u64,
    /// Clocks that belong to single sequences.
    pub sequence_clocks: usize,
    /// Begin of the first event and end of the last one, in nanoseconds of the trace clock.
    pub bounds_ns: Option<(i64, i64)>,
    /// The earliest and the latest timestamp of any packet.
    pub packet_times_ns: Option<(i64, i64)>,
    /// The encoded `TraceConfig` of the recording.
    pub config: Option<Vec<u8>>,
    /// The same as text; see [`with_config_text`](Self::with_config_text).
    pub config_text: Option<String>,
    /// The identity of the trace.
    pub uuid: Option<String>,
    /// The machine and the service.
    pub system: Option<SystemInfo>,
    /// The last counts that the service reported.
    pub stats: Option<TraceStats>,
    /// Events in the life of the recording.
    pub service_events: Vec<ServiceEvent>,
    /// Received triggers.
    pub triggers: Vec<ServiceEvent>,
    /// Rules of the format that the trace breaks, by name, with counts.
    pub problems: BTreeMap<&'static str, u64>,
    /// Interned values that were used but never sent.
    pub interning_errors: u64,
    work: u64,
}

/// Packets of one type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeSummary {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A packet sequence: the packets of one writer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SequenceSummary {
    /// Its id: 1 is the service, 0 stands for packets without a sequence.
    pub id: u32,
    /// Its machine; 0 is that of the service.
    pub machine_id: u32,
    /// Its user, according to the service.
    pub uid: Option<i32>,
    /// Its process, according to the service.
    pub pid: Option<i32>,
    /// Number of packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// True if its first packet in the file is the first one that was written.
    pub begins: bool,
    /// Number of times that its incremental state was cleared.
    pub state_clears: u64,
    /// Packets that were not usable because the state that they needed was lost.
    pub skipped_packets: u64,
    /// Packets before which data was lost.
    pub losses: u64,
    /// Known causes of the losses, with counts.
    pub loss_causes: BTreeMap<&'static str, u64>,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessSummary {
    /// Its machine; 0 is that of the service.
    pub machine_id: u32,
    /// Its pid.
    pub pid: i64,
    /// Its name.
    pub name: Option<String>,
    /// Its arguments.
    pub cmdline: Vec<String>,
    /// The process that started it.
    pub parent_pid: Option<i64>,
    /// Its user.
    pub uid: Option<i32>,
    /// Slices and instants on its tracks and those of its threads.
    pub slices: u64,
    /// Its threads, with the main thread.
    pub threads: Vec<ThreadSummary>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadSummary {
    /// Its tid.
    pub tid: i64,
    /// Its name.
    pub name: Option<String>,
    /// Slices and instants on its tracks.
    pub slices: u64,
}

/// A track, or several merged ones.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrackSummary {
    /// Its kind.
    pub track_type: TrackType,
    /// The uuid of one of them.
    pub uuid: u64,
    /// Its name.
    pub name: Option<String>,
    /// The process that it belongs to.
    pub pid: Option<i64>,
    /// The thread that it belongs to.
    pub tid: Option<i64>,
    /// Number of lanes that show it without overlaps.
    pub lanes: usize,
    /// Number of lanes that have slices.
    pub lanes_with_slices: usize,
    /// Slices and instants.
    pub slices: u64,
    /// Counter values.
    pub counter_values: u64,
}

/// Slices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SliceSummary {
    /// Number of slices and instants.
    pub count: u64,
    /// Instants.
    pub instants: u64,
    /// Slices that did not end.
    pub unfinished: u64,
    /// Largest nesting of slices.
    pub max_depth: u32,
    /// Slices by name, the most frequent first.
    pub by_name: Vec<NameSummary>,
}

/// Slices of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameSummary {
    /// Their name.
    pub name: Option<String>,
    /// Number of slices and instants.
    pub count: u64,
    /// Instants.
    pub instants: u64,
    /// Sum of their durations.
    pub total_ns: i64,
    /// The shortest duration.
    pub min_ns: i64,
    /// The longest duration.
    pub max_ns: i64,
}

/// A counter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CounterSummary {
    /// Its name.
    pub name: String,
    /// Its owner in words, such as `cpu 0`; empty for the machine.
    pub scope: String,
    /// The process that it belongs to.
    pub pid: Option<i64>,
    /// Number of values.
    pub values: u64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The first value.
    pub first: f64,
    /// The last value.
    pub last: f64,
}

/// A clock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockSummary {
    /// Its id.
    pub id: u32,
    /// Its name, if it is a built-in one.
    pub name: Option<&'static str>,
    /// Number of snapshots that contain it.
    pub snapshots: u64,
    /// Its first value, in its own unit.
    pub first: u64,
    /// Its last value.
    pub last: u64,
}

/// Data that is missing in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The place of the loss: `buffer 0`, `sequence 3`, `service`, `kernel`.
    pub place: String,
    /// Name of the count in the schema.
    pub what: String,
    /// The count.
    pub number: u64,
    /// True if this is normal: a ring buffer overwrites.
    pub expected: bool,
}

impl Summary {
    /// Reads a trace to its end.
    pub fn read(file: impl Read) -> Self {
        let mut import = Import::new(false);
        let (mut errors, mut more_errors) = (Vec::new(), 0);
        let mut reader = PacketReader::new(file);
        for packet in reader.by_ref() {
            match packet.and_then(|packet| import.add(&packet)) {
                Ok(()) => {}
                // An error that ends the reading is always kept.
                Err(error @ (Error::TooMuchWork { .. } | Error::InflatesTooMuch { .. })) => errors.push(error),
                Err(error) if errors.len() < MAX_ERRORS => errors.push(error),
                Err(_) => more_errors += 1,
            }
        }
        import.finish();
        let timeline = Timeline::new(&mut import);
        let counts = (reader.compressed_packets(), reader.inflated_bytes(), reader.is_gzipped());
        let work = reader.work() + import.clocks.work() + timeline.work;
        Self { more_errors, work, ..Self::new(import, &timeline, errors, counts) }
    }

    /// Returns the cost of reading beyond a constant for each byte of the file: inflated bytes, and
    /// steps of searches.
    #[doc(hidden)]
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Adds the config as text, which `print` makes. This crate does not know the text format.
    #[must_use]
    pub fn with_config_text(mut self, print: impl FnOnce(&[u8]) -> String) -> Self {
        self.config_text = self.config.as_deref().map(print);
        self
    }

    /// Returns the time from the begin of the first event to the end of the last one, in
    /// nanoseconds.
    pub fn duration_ns(&self) -> Option<i64> {
        self.bounds_ns.map(|(from, to)| to.saturating_sub(from))
    }

    /// Returns the number of threads, with the main threads.
    pub fn thread_count(&self) -> usize {
        self.processes.iter().map(|process| process.threads.len()).sum()
    }

    /// Returns the number of tracks as the trace processor counts them: those of track events, and
    /// one for each counter.
    pub fn track_count(&self) -> usize {
        let own: usize = self.tracks.iter().map(|track| track.lanes).sum();
        let counter_tracks = self.tracks.iter().filter(|track| track.counter_values > 0).count();
        own + self.counters.len() - counter_tracks
    }

    /// Returns the number of these that have slices.
    pub fn tracks_with_slices(&self) -> usize {
        self.tracks.iter().map(|track| track.lanes_with_slices).sum()
    }

    /// Returns the number of values of all counters.
    pub fn counter_values(&self) -> u64 {
        self.counters.iter().map(|counter| counter.values).sum()
    }

    /// Returns all losses that the trace reports.
    pub fn losses(&self) -> Vec<Loss> {
        let mut losses = Vec::new();
        let mut add = |place: &str, what: &str, number: u64, expected| {
            if number > 0 {
                losses.push(Loss { place: place.to_owned(), what: what.to_owned(), number, expected });
            }
        };
        if let Some(stats) = &self.stats {
            for (index, buffer) in stats.buffers.iter().enumerate() {
                for what in LOSS_FIELDS {
                    let number = buffer.get(what).copied().unwrap_or(0);
                    add(&format!("buffer {index}"), what, number, what == "chunks_overwritten");
                }
            }
            add("service", "chunks_discarded", stats.chunks_discarded, false);
            add("service", "patches_discarded", stats.patches_discarded, false);
            add("service", "invalid_packets", stats.invalid_packets, false);
            add("service", "flushes_failed", stats.flushes_failed, false);
            add("service", "final_flush_failed", u64::from(stats.final_flush_succeeded == Some(false)), false);
        }
        for sequence in &self.sequences {
            let place = format!("sequence {}", sequence.id);
            for (cause, &number) in &sequence.loss_causes {
                add(&place, cause, number, false);
            }
        }
        add("kernel", "lost_events", self.ftrace_losses, false);
        losses
    }

    fn new(import: Import, timeline: &Timeline, errors: Vec<Error>, counts: (u64, u64, bool)) -> Self {
        let (slices, categories) = slices(&import, timeline);
        let counters = counters(&import, timeline);
        let bounds_ns =
            timeline.bounds.map(|(from, to)| if from == to { (from, to.saturating_add(1)) } else { (from, to) });
        let interning = import.problems.iter().filter(|(problem, _)| problem.is_interning());
        Self {
            errors,
            more_errors: 0,
            work: 0,
            packets: import.by_type.values().map(|tally| tally.packets).sum(),
            packet_bytes: import.by_type.values().map(|tally| tally.bytes).sum(),
            compressed_packets: counts.0,
            inflated_bytes: counts.1,
            gzipped: counts.2,
            packets_by_type: import
                .by_type
                .iter()
                .map(|(&id, tally)| (Import::type_name(id), TypeSummary { packets: tally.packets, bytes: tally.bytes }))
                .collect(),
            sequences: sequences(&import),
            skipped_packets: import.sequences.iter().map(|sequence| sequence.skipped).sum(),
            processes: processes(&import, timeline),
            tracks: timeline
                .groups
                .iter()
                .map(|group| TrackSummary {
                    track_type: group.kind.into(),
                    uuid: group.uuid,
                    name: group.name.map(|name| shortened(import.strings.get(name))),
                    pid: group.process.map(|index| import.processes.processes[index].pid),
                    tid: group.thread.map(|index| import.processes.threads[index].tid),
                    lanes: group.lanes(),
                    lanes_with_slices: group.lanes_with_slices(),
                    slices: group.slices,
                    counter_values: group.counter_values,
                })
                .collect(),
            slices,
            states: timeline.states,
            counters,
            flows: timeline.flows.len() as u64,
            annotations: import.annotation_count,
            arguments: import.arguments,
            distinct_arguments: import.distinct_arguments,
            categories,
            ftrace_events: import.ftrace_events,
            ftrace_losses: import.ftrace_losses,
            trace_clock: import.clocks.trace_clock(),
            clocks: import
                .clocks
                .seen()
                .iter()
                .map(|(&id, seen)| ClockSummary {
                    id,
                    name: clock_name(id),
                    snapshots: seen.snapshots,
                    first: seen.first,
                    last: seen.last,
                })
                .collect(),
            clock_snapshots: import.clocks.snapshots(),
            sequence_clocks: import.clocks.sequence_clocks(),
            bounds_ns,
            packet_times_ns: import.packet_times,
            config_text: None,
            uuid: import.meta.uuid.map(|(msb, lsb)| uuid(msb, lsb)),
            interning_errors: interning.map(|(_, number)| number).sum(),
            problems: import.problems.iter().map(|(problem, number)| (problem.key(), number)).collect(),
            config: import.meta.config,
            system: import.meta.system,
            stats: import.meta.stats,
            service_events: import.meta.events,
            triggers: import.meta.triggers,
        }
    }
}

/// Shortens the name of a track, because many tracks may have it from one interned string.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(MAX_TRACK_NAME_CHARS) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

fn uuid(msb: u64, lsb: u64) -> String {
    let digits = format!("{msb:016x}{lsb:016x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

fn sequences(import: &Import) -> Vec<SequenceSummary> {
    let sequence = |sequence: &crate::packet_sequence::Sequence| SequenceSummary {
        id: sequence.id,
        machine_id: sequence.machine,
        uid: sequence.uid,
        pid: sequence.pid,
        packets: sequence.packets,
        bytes: sequence.bytes,
        begins: sequence.begins,
        state_clears: sequence.cleared,
        skipped_packets: sequence.skipped,
        losses: sequence.losses,
        loss_causes: sequence.causes.clone(),
    };
    import.sequences.iter().map(sequence).collect()
}

fn processes(import: &Import, timeline: &Timeline) -> Vec<ProcessSummary> {
    let text = |symbol: Symbol| import.strings.owned(symbol);
    let all = &import.processes;
    let mut list: Vec<ProcessSummary> = all
        .processes
        .iter()
        .map(|process| ProcessSummary {
            machine_id: process.machine,
            pid: process.pid,
            name: process.name.map(text),
            cmdline: process.cmdline.iter().copied().map(text).collect(),
            parent_pid: process.parent,
            uid: process.uid,
            slices: 0,
            threads: Vec::new(),
        })
        .collect();
    let mut of_threads = vec![0; all.threads.len()];
    for group in &timeline.groups {
        if let Some(process) = group.process {
            list[process].slices += group.slices;
        }
        if let Some(thread) = group.thread {
            of_threads[thread] += group.slices;
        }
    }
    for (thread, slices) in all.threads.iter().zip(of_threads) {
        let summary = ThreadSummary { tid: thread.tid, name: thread.name.map(text), slices };
        list[thread.process].threads.push(summary);
    }
    list.sort_by_key(|process| (process.machine_id, process.pid));
    for process in &mut list {
        process.threads.sort_by_key(|thread| thread.tid);
    }
    list
}

fn slices(import: &Import, timeline: &Timeline) -> (SliceSummary, BTreeMap<String, u64>) {
    let mut summary = SliceSummary { count: timeline.slices.len() as u64, ..SliceSummary::default() };
    let mut by_name: HashMap<Option<Symbol>, NameSummary> = HashMap::new();
    let mut by_category: HashMap<Symbol, u64> = HashMap::new();
    for slice in &timeline.slices {
        summary.instants += u64::from(slice.instant);
        summary.unfinished += u64::from(slice.duration.is_none());
        summary.max_depth = summary.max_depth.max(slice.depth + 1);
        let entry = by_name.entry(slice.name).or_insert_with(|| NameSummary {
            name: slice.name.map(|name| import.strings.owned(name)),
            count: 0,
            instants: 0,
            total_ns: 0,
            min_ns: i64::MAX,
            max_ns: 0,
        });
        entry.count += 1;
        entry.instants += u64::from(slice.instant);
        if let Some(duration) = slice.duration.filter(|_| !slice.instant) {
            entry.total_ns = entry.total_ns.saturating_add(duration);
            entry.min_ns = entry.min_ns.min(duration);
            entry.max_ns = entry.max_ns.max(duration);
        }
        for &category in import.events.categories(&import.events.list[slice.event as usize]) {
            *by_category.entry(category).or_default() += 1;
        }
    }
    summary.by_name = by_name.into_values().collect();
    for entry in &mut summary.by_name {
        entry.min_ns = entry.min_ns.min(entry.max_ns);
    }
    summary.by_name.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    let categories = by_category.into_iter().map(|(name, count)| (import.strings.owned(name), count)).collect();
    (summary, categories)
}

fn counters(import: &Import, timeline: &Timeline) -> Vec<CounterSummary> {
    let pid_of = |index: usize| import.processes.processes[index].pid;
    let counter = |counter: &crate::counters::Counter| {
        let (mut name, mut pid) = (import.strings.owned(counter.name), None);
        let scope = match &counter.scope {
            Scope::Machine(0) => String::new(),
            Scope::Machine(machine) => format!("machine {machine}"),
            Scope::Cpu(_, cpu) => format!("cpu {cpu}"),
            Scope::Item(_, item) => item.clone(),
            Scope::Process(index) => {
                pid = Some(pid_of(*index));
                format!("process {}", pid_of(*index))
            }
            Scope::Track(uuid) => {
                let group = timeline.group(*uuid);
                let process = group.and_then(|group| group.process);
                let thread = group.and_then(|group| group.thread);
                pid = process.map(pid_of);
                if name.is_empty() {
                    name = format!("track {uuid:#x}");
                }
                match (thread, pid) {
                    (Some(thread), _) => format!("thread {}", import.processes.threads[thread].tid),
                    (None, Some(pid)) => format!("process {pid}"),
                    (None, None) => String::new(),
                }
            }
        };
        CounterSummary {
            name,
            scope,
            pid,
            values: counter.values,
            min: counter.min,
            max: counter.max,
            first: counter.first.1,
            last: counter.last.1,
        }
    };
    import.counters.list.iter().map(counter).collect()
}
