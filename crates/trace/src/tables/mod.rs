//! Tables of a trace, named like those of the trace processor.
//!
//! A table is a set of columns. Strings are numbers ([`Symbol`](crate::Symbol)), and references to
//! other tables are row numbers ([`Row`]), so a row takes few bytes.

mod args;
mod coded;
mod columns;
mod compact;
mod events;
mod scheduling;
mod service;
mod stacks;
mod tracks;

pub(crate) use args::signed;
pub use args::{Arg, ArgTable, ArgValue};
pub use coded::{Code, Coded};
pub(crate) use columns::plain_name;
pub use columns::{Cell, Column, ColumnInfo, Kind, Near, RawValue, Row, Rows, Sparse, Table, Value};
pub use compact::{Narrow, Rare};
pub use events::{
    CounterRow, CounterTable, FileDescriptorRow, FileDescriptorTable, FlowRow, FlowTable, FtraceEventRow,
    FtraceEventTable, LogRow, LogTable, SliceRow, SliceTable, StateRow, StateTable,
};
pub use scheduling::{SchedRow, SchedTable, SpuriousWakeupRow, SpuriousWakeupTable, ThreadStateRow, ThreadStateTable};
pub use service::{
    ClockSnapshotRow, ClockSnapshotTable, CpuRow, CpuTable, MachineRow, MachineTable, MetadataRow, MetadataTable,
    StatRow, StatTable,
};
pub use stacks::{
    AllocationRow, AllocationTable, CallsiteRow, CallsiteTable, FrameRow, FrameTable, MappingRow, MappingTable,
    PerfSampleRow, PerfSampleTable, StackSampleRow, StackSampleTable, SymbolRow, SymbolTable,
};
pub use tracks::{ProcessRow, ProcessTable, ThreadRow, ThreadTable, TrackRow, TrackTable};

use crate::machines::HOST;
use crate::string_table::Strings;

/// The tables of a trace, and their strings.
#[derive(Debug, Default)]
pub struct Tables {
    /// The texts of all columns.
    pub strings: Strings,
    /// Processes over time.
    pub process: ProcessTable,
    /// Threads over time.
    pub thread: ThreadTable,
    /// Tracks of every kind.
    pub track: TrackTable,
    /// Slices and instants.
    pub slice: SliceTable,
    /// States of the tracks that have one at a time.
    pub state: StateTable,
    /// Arrows between slices.
    pub flow: FlowTable,
    /// Values of counters.
    pub counter: CounterTable,
    /// Arguments of all other rows.
    pub args: ArgTable,
    /// Intervals in which a CPU ran a thread.
    pub sched: SchedTable,
    /// States of threads.
    pub thread_state: ThreadStateTable,
    /// Wake-ups of threads that were running or runnable.
    pub spurious_sched_wakeup: SpuriousWakeupTable,
    /// Events of the kernel as they were recorded.
    pub ftrace_event: FtraceEventTable,
    /// Open files of processes.
    pub filedescriptor: FileDescriptorTable,
    /// Log messages.
    pub android_logs: LogTable,
    /// Counts of losses and mistakes.
    pub stats: StatTable,
    /// Facts about the trace.
    pub metadata: MetadataTable,
    /// Processors.
    pub cpu: CpuTable,
    /// Machines.
    pub machine: MachineTable,
    /// Values of clocks at common moments.
    pub clock_snapshot: ClockSnapshotTable,
    /// Files that are mapped into processes.
    pub stack_profile_mapping: MappingTable,
    /// Places in code.
    pub stack_profile_frame: FrameTable,
    /// Functions and lines of places in code.
    pub stack_profile_symbol: SymbolTable,
    /// Call stacks, as a tree of frames.
    pub stack_profile_callsite: CallsiteTable,
    /// Allocations of heap profiles.
    pub heap_profile_allocation: AllocationTable,
    /// Samples of the kernel's perf events.
    pub perf_sample: PerfSampleTable,
    /// Samples of call stacks that programs took themselves.
    pub cpu_profile_stack_sample: StackSampleTable,
    /// The engine's numbers of machines, by their rows.
    pub(crate) machine_numbers: Vec<u32>,
}

impl Tables {
    /// Returns the number of a machine; in a single trace it is the id in packets.
    pub(crate) fn machine_id(&self, machine: Option<Row>) -> u32 {
        machine.map_or(HOST, |row| self.machine_numbers[row.index()])
    }

    /// Returns the thread and the process of a track.
    pub(crate) fn owner_of_track(&self, track: usize) -> (Option<Row>, Option<Row>) {
        let utid = self.track.utid[track];
        let upid = utid.and_then(|utid| self.thread.upid[utid.index()]).or(self.track.upid[track]);
        // Tracks of asynchronous events of the older form name their process as an argument.
        let named = || {
            let set = self.track.source_arg_set_id[track]?;
            let arg = self.args.set(set).iter().find(|arg| self.strings.get(arg.key) == "upid")?;
            match arg.value {
                ArgValue::Int(upid) => {
                    usize::try_from(upid).ok().filter(|upid| *upid < self.process.rows()).map(Row::new)
                }
                _ => None,
            }
        };
        (utid, upid.or_else(named))
    }

    /// Returns all tables.
    pub fn all(&self) -> Vec<&dyn Table> {
        vec![
            &self.process,
            &self.thread,
            &self.track,
            &self.slice,
            &self.state,
            &self.flow,
            &self.counter,
            &self.args,
            &self.sched,
            &self.thread_state,
            &self.spurious_sched_wakeup,
            &self.ftrace_event,
            &self.filedescriptor,
            &self.android_logs,
            &self.stats,
            &self.metadata,
            &self.cpu,
            &self.machine,
            &self.clock_snapshot,
            &self.stack_profile_mapping,
            &self.stack_profile_frame,
            &self.stack_profile_symbol,
            &self.stack_profile_callsite,
            &self.heap_profile_allocation,
            &self.perf_sample,
            &self.cpu_profile_stack_sample,
        ]
    }
}
