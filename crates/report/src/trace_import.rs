//! From a trace to the rows of the page.

use std::collections::{BTreeMap, HashMap};

use esatto_trace::{Annotation, AnnotationValue, CounterValue, Event, EventType, Slice, Summary, Trace, TrackType};

use crate::arguments::{Argument, ArgumentSet};
use crate::report::{ProcessRow, Report, ThreadRow};
use crate::timeline::{Span, SpanId, Track, TrackId, TrackKind};

/// Adds the content of a trace to a report.
pub(crate) fn add(report: &mut Report, trace: &Trace, summary: &Summary) {
    let (begin, end) = summary.bounds_ns.unwrap_or_default();
    report.duration = end.saturating_sub(begin);
    let mut rows = Rows::new(report, trace);
    let import = Import { trace, begin };
    let spans = import.spans(report, &mut rows);
    for flow in &trace.flows {
        if let (Some(from), Some(to)) = (spans[flow.from], spans[flow.to]) {
            report.timeline.add_flow(from, to);
        }
    }
    import.counters(report, &mut rows);
    facts(report, trace, summary);
}

struct Import<'t> {
    trace: &'t Trace,
    begin: i64,
}

impl Import<'_> {
    /// Adds all slices and instants; returns their numbers.
    fn spans(&self, report: &mut Report, rows: &mut Rows<'_>) -> Vec<Option<SpanId>> {
        let mut spans = Vec::with_capacity(self.trace.slices.len());
        for slice in &self.trace.slices {
            let track = rows.of_slice(report, slice);
            let event = &self.trace.events[slice.event];
            let category = event.categories.join(",");
            let span = Span {
                track,
                depth: slice.depth,
                begin: slice.ts_ns.saturating_sub(self.begin),
                duration: slice.duration_ns.map(|duration| duration.max(0)),
                name: report.texts.number(slice.name.as_deref().unwrap_or_default()),
                category: report.texts.number(&category),
                arguments: arguments(report, event),
                thread: 0,
            };
            spans.push(report.timeline.add_span(span));
        }
        spans
    }

    fn counters(&self, report: &mut Report, rows: &mut Rows<'_>) {
        for event in &self.trace.events {
            let time = event.ts_ns.saturating_sub(self.begin);
            if let (EventType::Counter, Some(value)) = (event.event_type, event.counter) {
                let track = rows.of_counter(report, event, event.track, event.track_name.as_deref());
                report.timeline.add_point(track, time, number(value));
            }
            for &(uuid, value) in &event.extra_counters {
                let name = self.trace.tracks.get(&(event.machine_id, uuid)).and_then(|track| track.name.as_deref());
                let track = rows.of_counter(report, event, uuid, name);
                report.timeline.add_point(track, time, number(value));
            }
        }
    }
}

fn number(value: CounterValue) -> f64 {
    value.as_f64()
}

fn arguments(report: &mut Report, event: &Event) -> ArgumentSet {
    let mut list = Vec::new();
    for annotation in &event.annotations {
        flatten(&annotation.name, &annotation.value, &mut list);
    }
    let Report { arguments, texts, .. } = report;
    arguments.add(list.iter().map(|(name, value)| (name.as_str(), *value)), texts)
}

/// Adds a value, and those inside it with names such as `list[0].name`.
fn flatten<'a>(name: &str, value: &'a AnnotationValue, list: &mut Vec<(String, Argument<'a>)>) {
    let argument = match value {
        AnnotationValue::Bool(value) => Argument::Bool(*value),
        AnnotationValue::Uint(value) => Argument::Unsigned(*value),
        AnnotationValue::Int(value) => Argument::Integer(*value),
        AnnotationValue::Double(value) => Argument::Double(*value),
        AnnotationValue::String(text) | AnnotationValue::Json(text) => Argument::Text(text),
        AnnotationValue::Pointer(value) => Argument::Pointer(*value),
        AnnotationValue::Dict(entries) => {
            for Annotation { name: inner, value, .. } in entries {
                flatten(&format!("{name}.{inner}"), value, list);
            }
            return;
        }
        AnnotationValue::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                flatten(&format!("{name}[{index}]"), value, list);
            }
            return;
        }
        AnnotationValue::Proto { type_name, .. } => Argument::Text(type_name),
        _ => Argument::Text(""),
    };
    list.push((name.to_owned(), argument));
}

/// Key of a row: tracks that are shown as one share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum RowKey {
    Machine(u32),
    Process(u32, i64),
    Thread(u32, i64),
    /// Tracks of one name that belong to the same process or parent.
    Named(u32, Option<i64>, Option<u64>, String),
    Counter(u32, u64),
}

/// Rows of the timeline, made when their first event comes.
struct Rows<'t> {
    trace: &'t Trace,
    /// Rows by the machine and uuid of a track.
    of_uuid: HashMap<(u32, u64), TrackId>,
    rows: HashMap<RowKey, TrackId>,
    processes: BTreeMap<(u32, i64), usize>,
    threads: BTreeMap<(u32, i64), usize>,
    many_machines: bool,
}

impl<'t> Rows<'t> {
    fn new(report: &mut Report, trace: &'t Trace) -> Self {
        let mut processes = BTreeMap::new();
        for process in &trace.processes {
            let name = process.name.clone().unwrap_or_default();
            let cmdline = process.cmdline.join(" ");
            processes.insert((process.machine_id, process.pid), report.processes.len());
            report.processes.push(ProcessRow { name, pid: process.pid, cmdline });
        }
        let mut threads = BTreeMap::new();
        for thread in &trace.threads {
            let Some(&process) = processes.get(&(thread.machine_id, thread.pid)) else { continue };
            let name = thread.name.clone().unwrap_or_default();
            threads.insert((thread.machine_id, thread.tid), report.threads.len());
            report.threads.push(ThreadRow { name, tid: thread.tid, process, track: None });
        }
        let many_machines = trace.processes.iter().any(|process| process.machine_id != 0);
        Self { trace, of_uuid: HashMap::new(), rows: HashMap::new(), processes, threads, many_machines }
    }

    fn row(&mut self, report: &mut Report, key: RowKey, make: impl FnOnce() -> Track) -> TrackId {
        *self.rows.entry(key).or_insert_with(|| report.timeline.add_track(make()))
    }

    /// Returns the row of a process; without a pid, that of its machine if there are several.
    fn of_process(&mut self, report: &mut Report, machine: u32, pid: Option<i64>) -> Option<TrackId> {
        let of_machine = self.many_machines.then(|| {
            let name = if machine == 0 { "Host".to_owned() } else { format!("Machine {machine}") };
            self.row(report, RowKey::Machine(machine), || new_track(name, String::new(), TrackKind::Group, None))
        });
        let Some(pid) = pid else { return of_machine };
        let known = self.processes.get(&(machine, pid)).map(|&index| report.processes[index].name.clone());
        let name = known.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("Process {pid}"));
        let key = RowKey::Process(machine, pid);
        Some(self.row(report, key, || new_track(name, format!("pid {pid}"), TrackKind::Process, of_machine)))
    }

    fn of_slice(&mut self, report: &mut Report, slice: &Slice) -> TrackId {
        let key = (slice.machine_id, slice.track);
        if let Some(&row) = self.of_uuid.get(&key) {
            return row;
        }
        let machine = slice.machine_id;
        let track = self.trace.tracks.get(&key);
        let kind = track.map_or(TrackType::Custom, |track| track.track_type);
        let process = self.of_process(report, machine, slice.pid);
        let row = match (kind, slice.tid) {
            (TrackType::Thread, Some(tid)) => self.of_thread(report, machine, tid, process),
            _ => {
                let name = slice.track_name.clone().filter(|name| !name.is_empty());
                let name = name.unwrap_or_else(|| default_name(kind).to_owned());
                let parent = track.and_then(|track| track.parent);
                let key = RowKey::Named(machine, slice.pid, parent, name.clone());
                self.row(report, key, || new_track(name, String::new(), TrackKind::Slices, process))
            }
        };
        self.of_uuid.insert(key, row);
        row
    }

    fn of_thread(&mut self, report: &mut Report, machine: u32, tid: i64, process: Option<TrackId>) -> TrackId {
        let index = self.threads.get(&(machine, tid)).copied();
        let name = index.map(|index| report.threads[index].name.clone()).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| format!("Thread {tid}"));
        let key = RowKey::Thread(machine, tid);
        let is_first = index.is_some_and(|index| report.processes[report.threads[index].process].pid == tid);
        let row = self.row(report, key, || Track {
            is_first,
            ..new_track(name, format!("tid {tid}"), TrackKind::Thread, process)
        });
        if let Some(index) = index {
            report.threads[index].track = Some(row.0);
        }
        row
    }

    fn of_counter(&mut self, report: &mut Report, event: &Event, uuid: u64, name: Option<&str>) -> TrackId {
        let machine = event.machine_id;
        let process = self.of_process(report, machine, event.pid);
        let name = name.filter(|name| !name.is_empty()).unwrap_or("Counter").to_owned();
        let key = RowKey::Counter(machine, uuid);
        self.row(report, key, || new_track(name, String::new(), TrackKind::Counter, process))
    }
}

fn new_track(name: String, detail: String, kind: TrackKind, parent: Option<TrackId>) -> Track {
    Track { name, kind, detail, unit: String::new(), parent, is_first: false }
}

fn default_name(kind: TrackType) -> &'static str {
    match kind {
        TrackType::Process => "Process",
        TrackType::Counter => "Counter",
        TrackType::State => "State",
        _ => "Track without a name",
    }
}

/// Adds the line below the title, and the facts of the page "Trace".
fn facts(report: &mut Report, trace: &Trace, summary: &Summary) {
    let mut add = |name: &str, value: String| report.facts.push((name.to_owned(), value));
    let seconds = |ns: i64| format!("{:.3} s", ns as f64 / 1e9);
    let duration = summary.bounds_ns.map_or(0, |(begin, end)| end.saturating_sub(begin));
    add("Duration", seconds(duration));
    add("Slices", (summary.slices.count - summary.slices.instants).to_string());
    add("Instants", summary.slices.instants.to_string());
    add("Arrows (flows)", summary.flows.to_string());
    add("Processes", trace.processes.len().to_string());
    add("Threads", trace.threads.len().to_string());
    add("Packets", summary.packets.to_string());
    add("Size of the packets", format!("{} bytes", summary.packet_bytes));
    if let Some(uuid) = &summary.uuid {
        add("Identity", uuid.clone());
    }
    if let Some(system) = &summary.system {
        add("System", format!("{} {} ({})", system.sysname, system.release, system.machine));
        add("Service", system.service_version.clone());
    }
    if let Some(config) = &summary.config_text {
        add("Config", config.clone());
    }
    report.summary = format!(
        "{}, {} slices, {} processes, {} threads",
        seconds(duration),
        summary.slices.count,
        trace.processes.len(),
        trace.threads.len()
    );
}
