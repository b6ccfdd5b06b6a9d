//! State of the second stage of the import, in which records come in the order of time.

use std::collections::BTreeMap;

use super::counter_tracks::CounterTracks;
use super::current_states::CurrentStates;
use super::event_details::EventDetails;
use super::event_tracks::EventTracks;
use super::flows::Flows;
use super::generic_event::GenericEvent;
use super::kernel_names::KernelNames;
use super::kernel_state::{FtraceBounds, KernelSlices, Network, Power, ThreadCounters, Writers};
use super::lanes::LaneGroups;
use super::origins::Origins;
use super::processes::Processes;
use super::proto_descriptors::ProtoTypes;
use super::recent_sets::RecentSets;
use super::scheduling_state::Scheduling;
use super::slices::Slices;
use super::stacks::Heaps;
use super::stats::{Fact, Stats, TimedFact};
use super::task_state::KernelVersion;
use super::tracks::TrackIndex;
use crate::debug_annotation::ArgKeys;
use crate::problems::Problems;
use crate::string_table::Symbol;
use crate::tables::{Arg, ArgValue, CounterRow, Row, Tables};
use hashbrown::HashMap;

/// Key of the argument for the thread that wrote an event of no thread.
pub(crate) const WRITER_KEY: &str = "legacy_event.passthrough_utid";

/// Sequence state that events refer to: from one clear to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Generation {
    /// Pid and tid of the thread that the sequence described last.
    pub(crate) thread: Option<(i64, i64)>,
    /// True if the trace has the first packet of the sequence.
    pub(crate) has_first: bool,
}

/// The rows of `ftrace_event`.
#[derive(Debug, Default)]
pub(crate) struct KernelEvents {
    /// The table stays empty.
    pub(crate) are_left_out: bool,
    /// The times of the first and the last event, in the table or not.
    pub(crate) bounds: Option<(i64, i64)>,
    /// Events before the start of the recording, which are not imported.
    pub(crate) early: u64,
}

/// State of the import of a file, while records of another one are imported.
#[derive(Debug, Default)]
pub(crate) struct FileState {
    counters: CounterTracks,
    heaps: Heaps,
    kernel_slices: KernelSlices,
    writers: Writers,
    kernel_names: KernelNames,
}

/// Tables that grow, and the state that they grow by.
#[derive(Debug, Default)]
pub(crate) struct Context {
    pub(crate) tables: Tables,
    pub(crate) stats: Stats,
    /// Rules of the format that the trace breaks.
    pub(crate) problems: Problems,
    pub(crate) details: EventDetails,
    pub(crate) kernel_events: KernelEvents,
    /// Memory for the arguments of a kernel event, and of a track event.
    pub(crate) kernel_args: Vec<Arg>,
    pub(crate) spare_args: Vec<Arg>,
    /// Arguments of switches, and of wake-ups of the compact form.
    pub(crate) switch_sets: RecentSets,
    pub(crate) waking_sets: RecentSets,
    pub(crate) processes: Processes,
    pub(crate) tracks: TrackIndex,
    pub(crate) event_tracks: EventTracks,
    pub(crate) lane_groups: LaneGroups,
    pub(crate) slices: Slices,
    pub(crate) current_states: CurrentStates,
    pub(crate) flows: Flows,
    pub(crate) scheduling: Scheduling,
    pub(crate) counters: CounterTracks,
    pub(crate) heaps: Heaps,
    pub(crate) thread_counters: ThreadCounters,
    pub(crate) kernel_slices: KernelSlices,
    pub(crate) writers: Writers,
    pub(crate) power: Power,
    pub(crate) network: Network,
    /// The time from which on each machine has the kernel events of all processors that it had
    /// events of when recording began.
    pub(crate) ftrace_starts: HashMap<u32, i64>,
    /// Moments from which on kernel events count, by file.
    pub(crate) ftrace_bounds: Vec<FtraceBounds>,
    pub(crate) generations: Vec<Generation>,
    /// Rows of machines by their ids in packets.
    pub(crate) machines: HashMap<u32, Row>,
    pub(crate) machine_arch: HashMap<u32, String>,
    pub(crate) kernel_versions: HashMap<u32, KernelVersion>,
    pub(crate) page_sizes: HashMap<u32, u32>,
    pub(crate) facts: BTreeMap<&'static str, Fact>,
    /// Keys of arguments that were made of shorter ones.
    pub(crate) arg_keys: ArgKeys,
    /// Types of fields that only some programs write.
    pub(crate) types: ProtoTypes,
    pub(crate) kernel_names: KernelNames,
    /// Kernel events that the schema does not have, by machine and the numbers of their fields.
    pub(crate) generic_events: HashMap<(u32, u32), GenericEvent>,
    /// Moments that are facts, by machine, on its trace clock.
    pub(crate) timed_facts: Vec<(u32, TimedFact, i64)>,
    /// Moments at which all data sources were flushed.
    pub(crate) flushes: Vec<i64>,
    /// States of the files whose records are not imported now.
    pub(crate) file_states: Vec<FileState>,
    /// Machines of all files.
    pub(crate) origins: Origins,
    /// Machines of the rows of clock snapshots.
    pub(crate) snapshot_machines: Vec<u32>,
}

impl Context {
    /// Begins to import events of a file.
    pub(crate) fn set_file(&mut self, file: usize) {
        let before = self.tracks.file;
        if before == file {
            return;
        }
        self.file_states.resize_with(self.file_states.len().max(before.max(file) + 1), FileState::default);
        self.swap_state(before);
        self.swap_state(file);
        self.tracks.file = file;
        self.scheduling.file = file;
    }

    /// Takes the state of a file, or puts it back.
    fn swap_state(&mut self, file: usize) {
        let state = &mut self.file_states[file];
        core::mem::swap(&mut self.counters, &mut state.counters);
        core::mem::swap(&mut self.heaps, &mut state.heaps);
        core::mem::swap(&mut self.kernel_slices, &mut state.kernel_slices);
        core::mem::swap(&mut self.writers, &mut state.writers);
        core::mem::swap(&mut self.kernel_names, &mut state.kernel_names);
    }

    /// Returns when the kernel events of a file count.
    pub(crate) fn ftrace_bounds(&mut self, file: usize) -> &mut FtraceBounds {
        if self.ftrace_bounds.len() <= file {
            self.ftrace_bounds.resize(file + 1, FtraceBounds::default());
        }
        &mut self.ftrace_bounds[file]
    }

    pub(crate) fn symbol(&mut self, text: &str) -> Symbol {
        self.tables.strings.add_str(text)
    }

    /// Makes an argument of a text.
    pub(crate) fn text_arg(&mut self, key: &str, value: &str) -> Arg {
        let value = ArgValue::Text(Some(self.symbol(value)));
        Arg::new(self.symbol(key), value)
    }

    /// Makes an argument.
    pub(crate) fn arg(&mut self, key: &str, value: ArgValue) -> Arg {
        Arg::new(self.symbol(key), value)
    }

    /// Makes an argument that refers to a row.
    pub(crate) fn row_arg(&mut self, key: &str, row: Row) -> Arg {
        self.arg(key, ArgValue::Uint(u64::from(row.number()) - 1))
    }

    pub(crate) fn add_counter(&mut self, track: Row, ts: i64, value: f64) -> Row {
        self.tables.counter.push(CounterRow { ts, track_id: track, value, arg_set_id: None })
    }

    /// Adds arguments to a slice. The thread that wrote it stays the first one.
    pub(crate) fn extend_slice(&mut self, slice: Row, args: &[Arg]) {
        if args.is_empty() {
            return;
        }
        let writer = self.symbol(WRITER_KEY);
        let set = &mut self.tables.slice.arg_set_id[slice.index()];
        let own = set.map_or(&[][..], |set| self.tables.args.set(set));
        if args.iter().chain(own).filter(|arg| arg.key == writer).count() < 2 {
            *set = self.tables.args.extend(*set, args);
        } else {
            let others: Vec<Arg> = args.iter().filter(|arg| arg.key != writer).copied().collect();
            *set = self.tables.args.extend(*set, &others);
        }
    }
}
