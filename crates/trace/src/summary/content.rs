//! Content of a summary, counted in what was read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    ClockSummary, CounterSummary, MachineSummary, NameSummary, ProcessSummary, SequenceSummary, SliceSummary, Summary,
    TRACING_STARTED, ThreadSummary, TrackSummary, TypeSummary,
};
use crate::clock_conversion::{BOOTTIME, ClockKey, clock_name};
use crate::counters::Scope;
use crate::error::Error;
use crate::import::Import;
use crate::machines::HOST;
use crate::processes::{Process, StartTimes};
use crate::string_table::Symbol;
use crate::timeline::Timeline;
use crate::trace::TrackType;

/// Longest name of a track; longer ones are cut.
const MAX_TRACK_NAME_CHARS: usize = 1000;

impl Summary {
    pub(super) fn new(mut import: Import, timeline: &Timeline, errors: Vec<Error>, counts: (u64, u64, bool)) -> Self {
        let starts = starts(&mut import);
        let (slices, categories) = slices(&import, timeline);
        let counters = counters(&import, timeline);
        let bounds_ns =
            timeline.bounds.map(|(from, to)| if from == to { (from, to.saturating_add(1)) } else { (from, to) });
        let interning = import.problems.iter().filter(|(problem, _)| problem.is_interning());
        Self {
            errors,
            more_errors: 0,
            work: 0,
            malformed_packets: 0,
            is_torn: false,
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
            machines: machines(&import),
            sequences: sequences(&import),
            skipped_packets: import.sequences.iter().map(|sequence| sequence.skipped).sum(),
            processes: processes(&import, timeline, &starts),
            tracks: timeline
                .groups
                .iter()
                .map(|group| TrackSummary {
                    track_type: group.kind.into(),
                    machine_id: group.track.machine,
                    uuid: group.track.uuid,
                    name: group.name.map(|name| shortened(import.strings.get(name))),
                    pid: group.process.map(|index| import.processes.processes[index].pid),
                    process_name: group
                        .process
                        .and_then(|index| import.processes.processes[index].name)
                        .map(|name| shortened(import.strings.get(name))),
                    tid: group.thread.map(|index| import.processes.threads[index].tid),
                    thread_name: group
                        .thread
                        .and_then(|index| import.processes.threads[index].name)
                        .map(|name| shortened(import.strings.get(name))),
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
            ftrace_report: import.ftrace_report,
            trace_clock: import.clocks.trace_clock(),
            clocks: import
                .clocks
                .seen()
                .iter()
                .map(|(&(machine_id, id), seen)| ClockSummary {
                    machine_id,
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
            first_stats: import.meta.first_stats,
            progress: import.meta.progress,
            service_events: import.meta.events,
            triggers: import.meta.triggers,
            data_source_problems: import.meta.data_source_problems,
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

fn machines(import: &Import) -> Vec<MachineSummary> {
    let ids: BTreeSet<u32> = import.sequences.iter().map(|sequence| sequence.machine).collect();
    let machine = |id| MachineSummary {
        id,
        ahead_ns: import.machines.ahead(id, import.clocks.trace_clock()),
        system: if id == HOST { import.meta.system.clone() } else { import.machines.system(id).cloned() },
    };
    ids.into_iter().map(machine).collect()
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

/// When a process began, in the time of the trace.
#[derive(Clone, Copy, Default)]
struct Start {
    connected: Option<i64>,
    enabled: Option<i64>,
    first_packet: Option<i64>,
    missing: Option<i64>,
}

/// Returns when each process began.
fn starts(import: &mut Import) -> Vec<Start> {
    let mut first_packets: HashMap<(u32, i64), i64> = HashMap::new();
    for sequence in &import.sequences {
        if let (Some(pid), Some((ns, _))) = (sequence.pid, sequence.times) {
            let first = first_packets.entry((sequence.machine, pid.into())).or_insert(ns);
            *first = ns.min(*first);
        }
    }
    let began = import.meta.events.iter().find(|event| event.name == TRACING_STARTED).and_then(|event| event.ts_ns);
    let start = |process: &Process| {
        let boottime = ClockKey::of_machine(BOOTTIME, process.machine);
        // As the events of its machine.
        let ahead = import.machines.ahead(process.machine, import.clocks.trace_clock()).unwrap_or(0);
        let mut in_trace = |ns: Option<u64>| {
            let ns = import.clocks.machine_time(boottime, i64::try_from(ns?).ok()?)?;
            Some(ns.saturating_sub(ahead))
        };
        let StartTimes { connected, ready, enabled } = process.start;
        let [connected, ready, enabled] = [connected, ready, enabled].map(&mut in_trace);
        let missing = match (began, connected, enabled) {
            // A program that was there before begins with the session.
            (Some(began), Some(connected), Some(enabled)) if connected >= began => {
                Some(ready.map_or(0, |ready| enabled.saturating_sub(ready).max(0)))
            }
            _ => None,
        };
        let first_packet = first_packets.get(&(process.machine, process.pid)).copied();
        Start { connected, enabled, first_packet, missing }
    };
    import.processes.processes.iter().map(start).collect()
}

fn processes(import: &Import, timeline: &Timeline, starts: &[Start]) -> Vec<ProcessSummary> {
    let text = |symbol: Symbol| import.strings.owned(symbol);
    let all = &import.processes;
    let mut list: Vec<ProcessSummary> = all
        .processes
        .iter()
        .zip(starts)
        .map(|(process, start)| ProcessSummary {
            machine_id: process.machine,
            pid: process.pid,
            name: process.name.map(text),
            cmdline: process.cmdline.iter().copied().map(text).collect(),
            parent_pid: process.parent,
            uid: process.uid,
            connected_ns: start.connected,
            enabled_ns: start.enabled,
            first_packet_ns: start.first_packet,
            missing_ns: start.missing,
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
    let mut by_name: HashMap<(Option<Symbol>, TrackType), NameSummary> = HashMap::new();
    let mut by_category: HashMap<Symbol, u64> = HashMap::new();
    for slice in &timeline.slices {
        summary.instants += u64::from(slice.instant);
        summary.unfinished += u64::from(slice.duration.is_none());
        summary.max_depth = summary.max_depth.max(slice.depth + 1);
        let track_type = timeline.group(slice.track).map_or(TrackType::Custom, |group| group.kind.into());
        let entry = by_name.entry((slice.name, track_type)).or_insert_with(|| NameSummary {
            name: slice.name.map(|name| import.strings.owned(name)),
            track_type,
            count: 0,
            instants: 0,
            unfinished: 0,
            total_ns: 0,
            min_ns: i64::MAX,
            max_ns: 0,
        });
        entry.count += 1;
        entry.instants += u64::from(slice.instant);
        entry.unfinished += u64::from(slice.duration.is_none());
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
    summary.by_name.sort_by(|a, b| {
        let by_count = b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name));
        by_count.then_with(|| a.track_type.name().cmp(b.track_type.name()))
    });
    let categories = by_category.into_iter().map(|(name, count)| (import.strings.owned(name), count)).collect();
    (summary, categories)
}

fn counters(import: &Import, timeline: &Timeline) -> Vec<CounterSummary> {
    let pid_of = |index: usize| import.processes.processes[index].pid;
    let counter = |counter: &crate::counters::Counter| {
        let (mut name, mut pid) = (import.strings.owned(counter.name), None);
        let machine_id = match counter.scope {
            Scope::Machine(machine) | Scope::Cpu(machine, _) | Scope::Item(machine, _) => machine,
            Scope::Process(index) => import.processes.processes[index].machine,
            Scope::Track(track) => track.machine,
        };
        let scope = match &counter.scope {
            Scope::Machine(_) => String::new(),
            Scope::Cpu(_, cpu) => format!("cpu {cpu}"),
            Scope::Item(_, item) => item.clone(),
            Scope::Process(index) => {
                pid = Some(pid_of(*index));
                format!("process {}", pid_of(*index))
            }
            Scope::Track(track) => {
                let group = timeline.group(*track);
                let process = group.and_then(|group| group.process);
                let thread = group.and_then(|group| group.thread);
                pid = process.map(pid_of);
                if name.is_empty() {
                    name = format!("track {:#x}", track.uuid);
                }
                match (thread, pid) {
                    (Some(thread), _) => format!("thread {}", import.processes.threads[thread].tid),
                    (None, Some(pid)) => format!("process {pid}"),
                    (None, None) => String::new(),
                }
            }
        };
        CounterSummary {
            machine_id,
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
