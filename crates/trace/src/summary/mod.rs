//! Summary of a trace: counts of its content.

mod content;
mod json;
mod losses;
mod machine_column;
mod parts;
mod table;
mod text;
mod track_groups;

use std::collections::BTreeMap;
use std::io::Read;

use crate::engine::{Engine, Import, ReadOptions};
use crate::error::Error;
use crate::ftrace_report::FtraceReport;
use crate::machines::HOST;
use crate::problems::UNMATCHED_ENDS;
use crate::service_report::{DataSourceProblem, ServiceEvent, SystemInfo, TraceStats};
use crate::session_progress::SessionProgress;
use crate::trace::TrackType;

pub use losses::{Loss, Reading};
pub use parts::PartSummary;

/// The event of the service at the start of a session.
const TRACING_STARTED: &str = "tracing_started";

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
    /// Bytes of the file that were not read, after an error at which reading ended
    /// ([`Error::ends_reading`]). `None` if there was none, or the number is not known.
    pub unread_bytes: Option<u64>,
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
    /// Machines that wrote packets, by id, so the host comes first.
    pub machines: Vec<MachineSummary>,
    /// Sequences in the order of their first packet.
    pub sequences: Vec<SequenceSummary>,
    /// Kernel events before the start of the recording, which readers leave out.
    pub early_ftrace_events: u64,
    /// Begin and end of the longest time without any switch of threads on a whole machine, in
    /// nanoseconds of the trace clock, if it lasted 2 seconds and a thread seems to run in it. Then
    /// nothing was recorded: the trace is several recordings in one, or the machine slept.
    pub scheduling_gap_ns: Option<(i64, i64)>,
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
    /// Arguments that the annotations of slices make: a dictionary makes one for each entry.
    pub arguments: u64,
    /// The same, but equal sets of arguments count once.
    pub distinct_arguments: u64,
    /// Slices and instants by category.
    pub categories: BTreeMap<String, u64>,
    /// Kernel events.
    pub ftrace_events: u64,
    /// Bundles of kernel events before which events were lost.
    pub ftrace_losses: u64,
    /// Reports of the data sources that recorded them.
    pub ftrace_report: FtraceReport,
    /// The id of the clock of all times.
    pub trace_clock: u32,
    /// Clocks of whole machines that occur in snapshots.
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
    /// The system of the host, and the service.
    pub system: Option<SystemInfo>,
    /// The last counts that the service reported.
    pub stats: Option<TraceStats>,
    /// Events in the life of the recording.
    pub service_events: Vec<ServiceEvent>,
    /// Received triggers.
    pub triggers: Vec<ServiceEvent>,
    /// Data sources that did not record everything.
    pub data_source_problems: Vec<DataSourceProblem>,
    /// Rules of the format that the trace breaks, by name, with counts.
    pub problems: BTreeMap<&'static str, u64>,
    /// Interned values that were used but never sent.
    pub interning_errors: u64,
    /// The traces, if several were read as one. Then facts about a recording, such as its config
    /// and its statistics, are only in the summaries of the parts.
    pub parts: Vec<PartSummary>,
    /// The first counts that the service reported.
    first_stats: Option<TraceStats>,
    progress: SessionProgress,
    /// The file ends within a packet.
    is_torn: bool,
    /// Size of the trace, if it was read to its end.
    trace_bytes: u64,
    is_being_written: bool,
    malformed_packets: u64,
    track_count: usize,
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

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MachineSummary {
    /// Its id; 0 is the host, the machine of the service.
    pub id: u32,
    /// Its name in a plan for merging.
    pub plan_name: Option<String>,
    /// By how many nanoseconds its clocks are ahead of those of the host. `None` if the trace does
    /// not tell; then its times are not comparable with those of the host. In a merged trace: ahead
    /// of the clock of the result.
    pub ahead_ns: Option<i64>,
    /// Its system, and its name if it is not the host.
    pub system: Option<SystemInfo>,
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
    /// Those of them that come before the first state and the first loss in the file.
    pub skipped_at_begin: u64,
    /// Packets before which data was lost.
    pub losses: u64,
    /// Known causes of the losses, with counts.
    pub loss_causes: BTreeMap<&'static str, u64>,
    /// Nanoseconds between the recording and all of its packets, if that is more than 10 minutes:
    /// negative if they lie before. Then its program probably has other clocks, because it is in
    /// another time namespace.
    pub apart_ns: Option<i64>,
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
    /// When it connected to the service, in nanoseconds of the trace clock. Programs with Esatto's
    /// SDK tell it.
    pub connected_ns: Option<i64>,
    /// When the recording of its events began. Programs with Esatto's SDK tell it.
    pub enabled_ns: Option<i64>,
    /// The time of its first packet.
    pub first_packet_ns: Option<i64>,
    /// For how long the program ran without being recorded after it had connected during the
    /// session. Its events of this time are missing. 0 if it waited until it was recorded.
    pub missing_ns: Option<i64>,
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
    /// Its machine; 0 is that of the service.
    pub machine_id: u32,
    /// The uuid of one of them.
    pub uuid: u64,
    /// Its name.
    pub name: Option<String>,
    /// The process that it belongs to.
    pub pid: Option<i64>,
    /// The name of this process.
    pub process_name: Option<String>,
    /// The thread that it belongs to.
    pub tid: Option<i64>,
    /// The name of this thread.
    pub thread_name: Option<String>,
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
    /// Slices by name and kind of track, the most frequent first.
    pub by_name: Vec<NameSummary>,
}

/// Slices of one name, on tracks of one kind.
///
/// An asynchronous function may have slices of the same name on two kinds: its polls on tracks of
/// threads, and its lifetimes on tracks of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameSummary {
    /// Their name.
    pub name: Option<String>,
    /// The kind of their tracks.
    pub track_type: TrackType,
    /// Number of slices and instants.
    pub count: u64,
    /// Instants.
    pub instants: u64,
    /// Slices without an end.
    pub unfinished: u64,
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
    /// Its machine; 0 is that of the service.
    pub machine_id: u32,
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
    /// Its machine; 0 is that of the service.
    pub machine_id: u32,
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

impl MachineSummary {
    /// Returns its name as in configs: `host` for the host, and for another machine the name that
    /// its relay told.
    pub fn name(&self) -> Option<&str> {
        match &self.system {
            _ if self.plan_name.is_some() => self.plan_name.as_deref(),
            _ if self.id == HOST => Some("host"),
            Some(system) if !system.machine_name.is_empty() => Some(&system.machine_name),
            _ => None,
        }
    }
}

impl Summary {
    /// Reads a trace to its end.
    pub fn read(file: impl Read) -> Self {
        Self::of_file(file, &ReadOptions::without_kernel_events()).1
    }

    /// Reads a trace to its end, into tables, too. The errors of the file are in the summary.
    pub fn read_with_engine(file: impl Read) -> (Engine, Self) {
        Self::of_file(file, &ReadOptions::default())
    }

    fn of_file(file: impl Read, options: &ReadOptions) -> (Engine, Self) {
        let mut import = Import::read(file, options, false);
        let summary = Self::new(&mut import);
        (import.engine, summary)
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

    /// Notes that a recording still writes the file. The trace itself cannot tell.
    pub fn set_being_written(&mut self) {
        self.is_being_written = true;
    }

    /// Returns the number of packets that are well-formed. If this is 0, the file is not a trace.
    pub fn good_packets(&self) -> u64 {
        self.packets.saturating_sub(self.malformed_packets)
    }

    /// Returns the time from the begin of the first event to the end of the last one, in
    /// nanoseconds.
    pub fn duration_ns(&self) -> Option<i64> {
        self.bounds_ns.map(|(from, to)| to.saturating_sub(from))
    }

    /// Returns the number of ends of slices without a begin, if that is normal: a recording can
    /// begin within slices. In a trace without any other slice it is not.
    pub fn unmatched_ends(&self) -> Option<u64> {
        self.problems.get(UNMATCHED_ENDS).copied().filter(|_| self.slices.count > 0)
    }

    /// Returns the error at which reading ended. Nothing after it was read.
    pub fn end_of_reading(&self) -> Option<&Error> {
        self.errors.iter().find(|error| error.ends_reading())
    }

    /// Returns the time of the trace's start: when the service began to record.
    fn trace_start_ns(&self) -> Option<i64> {
        let started = self.service_events.iter().find(|event| event.name == TRACING_STARTED);
        let first = || self.bounds_ns.or(self.packet_times_ns).map(|(from, _)| from);
        started.and_then(|event| event.ts_ns).or_else(first)
    }

    /// Returns the number of threads, with the main threads.
    pub fn thread_count(&self) -> usize {
        self.processes.iter().map(|process| process.threads.len()).sum()
    }

    /// Returns the number of tracks as the trace processor counts them.
    pub fn track_count(&self) -> usize {
        self.track_count
    }

    /// Returns the number of these that have slices.
    pub fn tracks_with_slices(&self) -> usize {
        self.tracks.iter().map(|track| track.lanes_with_slices).sum()
    }

    /// Returns the number of values of all counters.
    pub fn counter_values(&self) -> u64 {
        self.counters.iter().map(|counter| counter.values).sum()
    }
}
