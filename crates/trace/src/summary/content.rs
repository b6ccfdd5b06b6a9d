//! Content of a summary, counted in the tables and in what the tables do not keep.

use std::collections::{BTreeMap, BTreeSet};

use super::track_groups::TrackGroups;
use super::{
    ClockSummary, MachineSummary, NameSummary, ProcessSummary, SequenceSummary, SliceSummary, Summary, TRACING_STARTED,
    ThreadSummary, TypeSummary,
};
use crate::clock_conversion::{BOOTTIME, ClockKey, Clocks, clock_name};
use crate::engine::event_tracks::{Owner, Scope, StartTimes};
use crate::engine::survey::{packet_type, widen};
use crate::engine::{Import, PENDING};
use crate::error::Error;
use crate::machines::HOST;
use crate::problems::Problem;
use crate::service_report::Meta;
use crate::session_progress::SERVICE_SEQUENCE;
use crate::string_table::Symbol;
use crate::tables::{Arg, Row, Table as _, Tables};
use crate::trace::TrackType;
use hashbrown::{HashMap, HashSet};

/// Distance between the packets of a program and the recording that is told. Events of a program
/// before its session are nearer.
const MIN_APART_NS: u64 = 600_000_000_000;
/// Data source of kernel events from before the start of the machine.
const FROZEN_FTRACE: &[u8] = b"linux.frozen_ftrace";

impl Summary {
    /// Counts the content of a trace. It takes the errors and the reports of the service away.
    pub(super) fn new(import: &mut Import) -> Self {
        let packet_times_ns = use_time_of_host(import);
        let starts = starts(import);
        let mut survey = core::mem::take(&mut import.survey);
        let system = survey.meta.system.take();
        if import.is_merged {
            survey.meta = Meta::default();
        }
        let Import { engine, context, sequences, .. } = &*import;
        let clocks = || core::iter::once(&import.clocks).chain(&import.other_clocks);
        let tables = &engine.tables;
        let groups = TrackGroups::new(tables, context);
        let (slices, categories) = slices(tables, &groups);
        let (arguments, distinct_arguments) = arguments(tables);
        let problems = &context.problems;
        let recorded = recorded(import, survey.meta.config.as_deref());
        let interning = problems.iter().filter(|(problem, _)| problem.is_interning());
        let mut summary = Self {
            errors: Vec::new(),
            more_errors: engine.more_errors,
            work: import.work,
            malformed_packets: import.malformed_packets,
            is_torn: import.is_torn,
            unread_bytes: import.unread_bytes,
            trace_bytes: import.trace_bytes,
            is_being_written: false,
            packets: survey.by_type.values().map(|tally| tally.packets).sum(),
            packet_bytes: survey.by_type.values().map(|tally| tally.bytes).sum(),
            compressed_packets: import.compressed_packets,
            inflated_bytes: import.inflated_bytes,
            gzipped: import.is_gzipped,
            packets_by_type: survey
                .by_type
                .iter()
                .map(|(&id, tally)| (packet_type(id), TypeSummary { packets: tally.packets, bytes: tally.bytes }))
                .collect(),
            machines: machine_list(import, system.as_ref()),
            sequences: sequences.iter().map(|entry| sequence(import, entry, recorded)).collect(),
            early_ftrace_events: import.context.kernel_events.early,
            scheduling_gap_ns: context.scheduling.gaps.longest(),
            skipped_packets: sequences.iter().map(|sequence| sequence.skipped).sum(),
            processes: processes(import, &groups, &starts),
            tracks: groups.summaries(tables),
            track_count: tables.track.rows(),
            slices,
            states: survey.states,
            counters: groups.counters(tables),
            flows: tables.flow.rows() as u64,
            annotations: survey.annotations,
            arguments,
            distinct_arguments,
            categories,
            ftrace_events: survey.ftrace_events,
            ftrace_losses: survey.ftrace_losses,
            ftrace_report: survey.ftrace_report,
            trace_clock: import.trace_clock,
            clocks: clocks()
                .flat_map(|clocks| clocks.seen())
                .map(|(&(machine, id), seen)| ClockSummary {
                    machine_id: context.origins.home(machine),
                    id,
                    name: clock_name(id),
                    snapshots: seen.snapshots,
                    first: seen.first,
                    last: seen.last,
                })
                .collect(),
            clock_snapshots: clocks().map(Clocks::snapshots).sum(),
            sequence_clocks: clocks().map(Clocks::sequence_clocks).sum(),
            bounds_ns: bounds(tables, import.context.kernel_events.bounds),
            packet_times_ns,
            config_text: None,
            uuid: survey.meta.uuid.map(|(msb, lsb)| uuid(msb, lsb)),
            interning_errors: interning.map(|(_, number)| number).sum(),
            parts: Vec::new(),
            problems: problems.iter().map(|(problem, number)| (problem.key(), number)).collect(),
            config: survey.meta.config,
            system: system.filter(|_| !import.is_merged),
            stats: survey.meta.stats,
            first_stats: survey.meta.first_stats,
            progress: survey.meta.progress,
            service_events: survey.meta.events,
            triggers: survey.meta.triggers,
            data_source_problems: survey.meta.data_source_problems,
        };
        summary.errors = core::mem::take(&mut import.engine.errors);
        if let Some(error) = &import.engine.sort_error {
            summary.errors.push(Error::of_temporary_file(error));
        }
        summary
    }
}

/// Converts the times of packets to those of the host. Returns the earliest and the latest one. A
/// machine whose clocks are not related to those of the host keeps its own times, as in the trace
/// processor.
fn use_time_of_host(import: &mut Import) -> Option<(i64, i64)> {
    let trace_clock = import.trace_clock;
    let first = import.sequences.first().map(|sequence| sequence.machine);
    let (mut all, mut is_several, mut unrelated) = (None, false, HashSet::new());
    for sequence in &mut import.sequences {
        is_several |= first != Some(sequence.machine);
        let Some((from, to)) = &mut sequence.times else { continue };
        let map = import.maps.get(&sequence.machine);
        let is_related = match map {
            Some(map) if import.is_merged => map.is_placed(),
            _ => import.machines.ahead(sequence.machine, trace_clock).is_some(),
        };
        if !is_related {
            unrelated.insert(sequence.machine);
        }
        for ts in [from, to] {
            *ts = map.map_or(*ts, |map| map.convert(*ts));
            widen(&mut all, *ts);
        }
    }
    if is_several {
        import.context.problems.add(Problem::UnrelatedMachine, unrelated.len() as u64);
    }
    all
}

/// Returns the begin of the first event and the end of the last one.
fn bounds(tables: &Tables, kernel_events: Option<(i64, i64)>) -> Option<(i64, i64)> {
    let mut bounds = kernel_events;
    for row in 0..tables.slice.rows() {
        let (ts, dur) = (tables.slice.ts.get(row), tables.slice.dur.get(row));
        widen(&mut bounds, ts);
        widen(&mut bounds, ts.saturating_add(dur.max(0)));
    }
    let events = [&tables.counter.ts, &tables.sched.ts, &tables.android_logs.ts];
    for column in events {
        for row in 0..column.len() {
            widen(&mut bounds, column.get(row));
        }
    }
    for ts in tables.perf_sample.ts.iter().chain(&tables.cpu_profile_stack_sample.ts) {
        widen(&mut bounds, *ts);
    }
    bounds.map(|(from, to)| if from == to { (from, to.saturating_add(1)) } else { (from, to) })
}

fn uuid(msb: u64, lsb: u64) -> String {
    let digits = format!("{msb:016x}{lsb:016x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

fn machine_list(import: &Import, host: Option<&crate::service_report::SystemInfo>) -> Vec<MachineSummary> {
    let origins = &import.context.origins;
    let ids: BTreeSet<u32> = import.sequences.iter().map(|sequence| origins.home(sequence.machine)).collect();
    let machine = |id| MachineSummary {
        id,
        plan_name: origins.identity(id).1.map(str::to_owned),
        ahead_ns: match import.maps.get(&id) {
            Some(map) if import.is_merged => map.is_placed().then(|| map.ahead_at(0)),
            _ => import.machines.ahead(id, import.trace_clock),
        },
        system: if id == HOST { host.cloned() } else { import.machines.system(id).cloned() },
    };
    ids.into_iter().map(machine).collect()
}

/// Returns the times of the service's packets. Those of programs lie between them, apart from
/// events of earlier boots.
fn recorded(import: &Import, config: Option<&[u8]>) -> Option<(i64, i64)> {
    let has_old_events = |config: &[u8]| config.windows(FROZEN_FTRACE.len()).any(|name| name == FROZEN_FTRACE);
    if import.is_merged || config.is_some_and(has_old_events) {
        return None;
    }
    import.sequences.iter().find(|sequence| sequence.id == SERVICE_SEQUENCE && sequence.machine == HOST)?.times
}

/// Returns the distance between two spans of time, if it is large.
fn apart((from, to): (i64, i64), recorded: (i64, i64)) -> Option<i64> {
    let before = to.saturating_sub(recorded.0).min(0);
    let after = from.saturating_sub(recorded.1).max(0);
    Some(before.saturating_add(after)).filter(|apart| apart.unsigned_abs() > MIN_APART_NS)
}

fn sequence(
    import: &Import,
    sequence: &crate::packet_sequence::Sequence,
    recorded: Option<(i64, i64)>,
) -> SequenceSummary {
    SequenceSummary {
        id: sequence.id,
        machine_id: import.context.origins.home(sequence.machine),
        uid: sequence.uid,
        pid: sequence.pid,
        packets: sequence.packets,
        bytes: sequence.bytes,
        begins: sequence.begins,
        state_clears: sequence.cleared,
        skipped_packets: sequence.skipped,
        skipped_at_begin: sequence.skipped_at_begin,
        losses: sequence.losses,
        loss_causes: sequence.causes.clone(),
        apart_ns: sequence.times.zip(recorded).and_then(|(times, recorded)| apart(times, recorded)),
    }
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
    if import.is_merged {
        // The summaries of the parts tell them.
        return vec![Start::default(); import.engine.tables.process.rows()];
    }
    let mut first_packets: HashMap<(u32, i64), i64> = HashMap::new();
    for sequence in &import.sequences {
        if let (Some(pid), Some((ns, _))) = (sequence.pid, sequence.times) {
            let first = first_packets.entry((sequence.machine, pid.into())).or_insert(ns);
            *first = ns.min(*first);
        }
    }
    let mut told: HashMap<Row, StartTimes> = HashMap::new();
    for slot in &import.context.event_tracks.slots {
        let Some(description) = &slot.description else { continue };
        if let (Owner::Process { .. }, Some(Scope::Process(upid))) = (description.owner, slot.scope()) {
            told.insert(upid, description.start);
        }
    }
    let events = &import.survey.meta.events;
    let began = events.iter().find(|event| event.name == TRACING_STARTED).and_then(|event| event.ts_ns);
    let tables = &import.engine.tables;
    let start = |row: usize| {
        let (machine, pid) = (tables.machine_id(tables.process.machine_id[row]), tables.process.pid[row]);
        let boottime = ClockKey::of_machine(BOOTTIME, machine);
        // As the events of its machine.
        let ahead = import.machines.ahead(machine, import.trace_clock).unwrap_or(0);
        let mut in_trace = |ns: Option<u64>| {
            let ns = import.clocks.machine_time(boottime, i64::try_from(ns?).ok()?)?;
            Some(ns.saturating_sub(ahead))
        };
        let StartTimes { connected, ready, enabled } = told.get(&Row::new(row)).copied().unwrap_or_default();
        let [connected, ready, enabled] = [connected, ready, enabled].map(&mut in_trace);
        let missing = match (began, connected, enabled) {
            // A program that was there before begins with the session.
            (Some(began), Some(connected), Some(enabled)) if connected >= began => {
                Some(ready.map_or(0, |ready| enabled.saturating_sub(ready).max(0)))
            }
            _ => None,
        };
        Start { connected, enabled, first_packet: first_packets.get(&(machine, pid)).copied(), missing }
    };
    (0..tables.process.rows()).map(start).collect()
}

fn processes(import: &Import, groups: &TrackGroups, starts: &[Start]) -> Vec<ProcessSummary> {
    let tables = &import.engine.tables;
    let (processes, threads) = (&tables.process, &tables.thread);
    let text = |symbol: Symbol| tables.strings.owned(symbol);
    let cmdline = |row: usize| import.context.processes.cmdlines.get(&Row::new(row));
    let mut list: Vec<ProcessSummary> = (0..processes.rows())
        .zip(starts)
        .map(|(row, start)| ProcessSummary {
            machine_id: tables.machine_id(processes.machine_id[row]),
            pid: processes.pid[row],
            name: processes.name[row].map(text),
            cmdline: cmdline(row).map_or_else(Vec::new, |words| words.iter().copied().map(text).collect()),
            parent_pid: processes.parent_upid[row].map(|parent| processes.pid[parent.index()]).filter(|&pid| pid != 0),
            uid: processes.uid[row].and_then(|uid| i32::try_from(uid).ok()),
            connected_ns: start.connected,
            enabled_ns: start.enabled,
            first_packet_ns: start.first_packet,
            missing_ns: start.missing,
            slices: 0,
            threads: Vec::new(),
        })
        .collect();
    let mut of_threads = vec![0; threads.rows()];
    for (track, &slices) in groups.slices.iter().enumerate() {
        let utid = tables.track.utid[track];
        let upid = utid.and_then(|utid| threads.upid[utid.index()]).or(tables.track.upid[track]);
        if let Some(upid) = upid {
            list[upid.index()].slices += slices;
        }
        if let Some(utid) = utid {
            of_threads[utid.index()] += slices;
        }
    }
    for (row, slices) in of_threads.into_iter().enumerate() {
        if let Some(upid) = threads.upid[row] {
            let summary = ThreadSummary { tid: threads.tid[row], name: threads.name[row].map(text), slices };
            list[upid.index()].threads.push(summary);
        }
    }
    // The idle process of each machine.
    list.retain(|process| process.pid != 0);
    list.sort_by_key(|process| (process.machine_id, process.pid));
    for process in &mut list {
        process.threads.sort_by_key(|thread| thread.tid);
    }
    list
}

fn slices(tables: &Tables, groups: &TrackGroups) -> (SliceSummary, BTreeMap<String, u64>) {
    let table = &tables.slice;
    let mut summary = SliceSummary { count: table.rows() as u64, ..SliceSummary::default() };
    let mut by_name: HashMap<(Option<Symbol>, TrackType), NameSummary> = HashMap::new();
    let mut by_category: HashMap<Symbol, u64> = HashMap::new();
    for row in 0..table.rows() {
        let dur = table.dur.get(row);
        let (is_instant, is_unfinished) = (dur == 0, dur == PENDING);
        summary.instants += u64::from(is_instant);
        summary.unfinished += u64::from(is_unfinished);
        summary.max_depth = summary.max_depth.max(u32::from(table.depth[row]) + 1);
        let (name, track_type) = (table.name[row], groups.kind(table.track_id[row]));
        let entry = by_name.entry((name, track_type)).or_insert_with(|| NameSummary {
            name: name.map(|name| tables.strings.owned(name)),
            track_type,
            count: 0,
            instants: 0,
            unfinished: 0,
            total_ns: 0,
            min_ns: i64::MAX,
            max_ns: 0,
        });
        entry.count += 1;
        entry.instants += u64::from(is_instant);
        entry.unfinished += u64::from(is_unfinished);
        if dur > 0 {
            entry.total_ns = entry.total_ns.saturating_add(dur);
            entry.min_ns = entry.min_ns.min(dur);
            entry.max_ns = entry.max_ns.max(dur);
        }
        if let Some(category) = table.category[row] {
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
    let mut categories: BTreeMap<String, u64> = BTreeMap::new();
    for (list, slices) in by_category {
        for category in tables.strings.get(list).split(',') {
            *categories.entry(category.to_owned()).or_default() += slices;
        }
    }
    (summary, categories)
}

/// Counts the arguments that annotations of slices make; the second number counts equal sets once.
fn arguments(tables: &Tables) -> (u64, u64) {
    let mut uses: HashMap<Row, u64> = HashMap::new();
    for set in tables.slice.arg_set_id.iter().flatten() {
        *uses.entry(*set).or_default() += 1;
    }
    let is_of_annotation = |arg: &&Arg| tables.strings.get(arg.key).starts_with("debug.");
    let size = |set: Row| tables.args.set(set).iter().filter(is_of_annotation).count() as u64;
    uses.iter().fold((0, 0), |(all, distinct), (&set, &uses)| (all + size(set) * uses, distinct + size(set)))
}
