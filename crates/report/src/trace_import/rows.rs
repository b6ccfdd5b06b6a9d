//! Rows of the timeline, made when their first content comes.

use std::collections::HashMap;

use esatto_trace::tables::{Row, Table as _, Tables};

use crate::report::{ProcessRow, Report, ThreadRow};
use crate::timeline::{Timeline, Track, TrackId, TrackKind};

/// Numbers of processors of one machine in the tables.
pub(super) const CPUS_OF_MACHINE: u32 = 4096;

/// Key of a row: tracks that are shown as one share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Machine(usize),
    /// The processors of a machine.
    Processors(usize),
    Processor(u32),
    Process(Row),
    /// Threads whose process is not known.
    OtherThreads(usize),
    Thread(Row),
    States(Row),
    /// The samples of a thread, by their source.
    Samples(Row, String),
    /// The heap of a process, by its name.
    Heap(Row, String),
    /// The states of other sessions on a machine.
    Sessions(usize),
    /// The states of a track.
    TrackStates(Row),
    /// The kernel events of a machine.
    KernelEvents(usize),
    KernelEventsOf(u32),
    /// Tracks of one name and kind that belong to the same row.
    Named(Option<TrackId>, String, String),
    /// Counters of a machine.
    Counters(usize),
    Counter(Row),
}

pub(super) struct Rows<'t> {
    tables: &'t Tables,
    rows: HashMap<Key, TrackId>,
    /// The row of each track with slices, and its lane there.
    of_tracks: HashMap<Row, (TrackId, u32)>,
    /// Lanes of rows that show several tracks.
    lanes: HashMap<TrackId, u32>,
    has_machines: bool,
}

impl<'t> Rows<'t> {
    pub(super) fn new(report: &mut Report, tables: &'t Tables) -> Self {
        let text = |symbol: Option<_>| symbol.map(|symbol| tables.strings.get(symbol).to_owned()).unwrap_or_default();
        let process = &tables.process;
        for row in 0..process.rows() {
            let (name, cmdline) = (text(process.name[row]), text(process.cmdline[row]));
            report.processes.push(ProcessRow { name, pid: process.pid[row], cmdline });
        }
        let thread = &tables.thread;
        for row in 0..thread.rows() {
            let process = thread.upid[row].map(Row::index);
            let name = text(thread.name[row]);
            report.threads.push(ThreadRow { name, tid: thread.tid[row], process, track: None, cpu_time: 0 });
        }
        let has_machines = process.machine_id.iter().chain(&thread.machine_id).any(Option::is_some);
        Self { tables, rows: HashMap::new(), of_tracks: HashMap::new(), lanes: HashMap::new(), has_machines }
    }

    pub(super) fn has_thread(&self, thread: Row) -> bool {
        thread.index() < self.tables.thread.rows()
    }

    /// Returns the name of a thread, or its tid.
    pub(super) fn thread_name(&self, report: &Report, thread: Row) -> String {
        let row = &report.threads[thread.index()];
        if row.name.is_empty() { format!("Thread {}", row.tid) } else { row.name.clone() }
    }

    fn row(&mut self, timeline: &mut Timeline, key: Key, make: impl FnOnce() -> Track) -> TrackId {
        *self.rows.entry(key).or_insert_with(|| timeline.add_track(make()))
    }

    /// Returns the row of a machine, if there are several.
    fn of_machine(&mut self, timeline: &mut Timeline, machine: usize) -> Option<TrackId> {
        self.has_machines.then(|| {
            let name = if machine == 0 { "Host".to_owned() } else { format!("Machine {machine}") };
            self.row(timeline, Key::Machine(machine), || track(name, TrackKind::Group, None))
        })
    }

    /// Returns the row of a processor, by its number in the tables.
    pub(super) fn of_processor(&mut self, timeline: &mut Timeline, cpu: u32) -> TrackId {
        let parent = self.of_processors(timeline, cpu);
        let name = format!("CPU {}", cpu % CPUS_OF_MACHINE);
        self.row(timeline, Key::Processor(cpu), || track(name, TrackKind::Cpu, Some(parent)))
    }

    fn of_processors(&mut self, timeline: &mut Timeline, cpu: u32) -> TrackId {
        let machine = (cpu / CPUS_OF_MACHINE) as usize;
        let parent = self.of_machine(timeline, machine);
        let new = || Track { is_first: true, ..track("Processors".to_owned(), TrackKind::Group, parent) };
        self.row(timeline, Key::Processors(machine), new)
    }

    fn of_process(&mut self, report: &mut Report, process: Row) -> TrackId {
        let machine = self.tables.process.machine_id[process.index()].map_or(0, Row::index);
        let parent = self.of_machine(&mut report.timeline, machine);
        let row = &report.processes[process.index()];
        // Of a path, the last part tells more than the first one.
        let name = match row.name.rsplit('/').next() {
            Some(name) if !name.is_empty() => name.to_owned(),
            _ => format!("Process {}", row.pid),
        };
        let detail = format!("pid {}", row.pid);
        let new = || Track { detail, ..track(name, TrackKind::Process, parent) };
        self.row(&mut report.timeline, Key::Process(process), new)
    }

    /// Returns the row above those of a thread.
    fn above_thread(&mut self, report: &mut Report, thread: Row) -> TrackId {
        if let Some(process) = self.tables.thread.upid[thread.index()] {
            return self.of_process(report, process);
        }
        let machine = self.tables.thread.machine_id[thread.index()].map_or(0, Row::index);
        let parent = self.of_machine(&mut report.timeline, machine);
        let new = || track("Threads of unknown processes".to_owned(), TrackKind::Group, parent);
        self.row(&mut report.timeline, Key::OtherThreads(machine), new)
    }

    /// Returns the row for the slices of a thread.
    fn of_thread(&mut self, report: &mut Report, thread: Row) -> TrackId {
        let parent = self.above_thread(report, thread);
        let name = self.thread_name(report, thread);
        let is_first = self.tables.thread.is_main_thread[thread.index()] == Some(true);
        let detail = format!("tid {}", report.threads[thread.index()].tid);
        let new = || Track { detail, is_first, ..track(name, TrackKind::Thread, Some(parent)) };
        let row = self.row(&mut report.timeline, Key::Thread(thread), new);
        report.threads[thread.index()].track = Some(row.0);
        row
    }

    /// Returns the row for the states of a thread.
    pub(super) fn of_states(&mut self, report: &mut Report, thread: Row) -> TrackId {
        if let Some(&row) = self.rows.get(&Key::States(thread)) {
            return row;
        }
        // Below the slices of the thread, if it has any.
        let slices = self.rows.get(&Key::Thread(thread)).copied();
        let parent = slices.unwrap_or_else(|| self.above_thread(report, thread));
        let name = if slices.is_some() { "State".to_owned() } else { self.thread_name(report, thread) };
        let is_first = self.tables.thread.is_main_thread[thread.index()] == Some(true);
        let detail =
            if slices.is_some() { String::new() } else { format!("tid {}", report.threads[thread.index()].tid) };
        let new = || Track { detail, is_first, ..track(name, TrackKind::State, Some(parent)) };
        let row = self.row(&mut report.timeline, Key::States(thread), new);
        report.threads[thread.index()].track.get_or_insert(row.0);
        row
    }

    /// Returns the row for the samples of a thread that come from a source, such as a counter.
    pub(super) fn of_samples(&mut self, report: &mut Report, thread: Row, source: &str) -> TrackId {
        let key = Key::Samples(thread, source.to_owned());
        if let Some(&row) = self.rows.get(&key) {
            return row;
        }
        // Below the slices or the states of the thread, if it has any.
        let own = [Key::Thread(thread), Key::States(thread)].iter().find_map(|key| self.rows.get(key)).copied();
        let parent = own.unwrap_or_else(|| self.above_thread(report, thread));
        let (name, detail) = match own {
            Some(_) => ("Samples".to_owned(), String::new()),
            None => (self.thread_name(report, thread), format!("tid {}", report.threads[thread.index()].tid)),
        };
        let is_first = self.tables.thread.is_main_thread[thread.index()] == Some(true);
        let unit = source.to_owned();
        let new = || Track { detail, unit, is_first, ..track(name, TrackKind::Samples, Some(parent)) };
        let row = self.row(&mut report.timeline, key, new);
        report.threads[thread.index()].track.get_or_insert(row.0);
        row
    }

    /// Returns the row for the dumps of a heap.
    pub(super) fn of_heap(&mut self, report: &mut Report, process: Row, heap: &str) -> TrackId {
        let parent = self.of_process(report, process);
        let name = if heap.is_empty() { "Heap".to_owned() } else { format!("Heap {heap}") };
        let new = || track(name, TrackKind::Heap, Some(parent));
        self.row(&mut report.timeline, Key::Heap(process, heap.to_owned()), new)
    }

    /// Returns the row for the kernel events of a processor, by its number in the tables.
    pub(super) fn of_kernel_events(&mut self, timeline: &mut Timeline, cpu: u32) -> TrackId {
        if let Some(&row) = self.rows.get(&Key::KernelEventsOf(cpu)) {
            return row;
        }
        let machine = (cpu / CPUS_OF_MACHINE) as usize;
        let above = self.of_machine(timeline, machine);
        let new = || track("Kernel events".to_owned(), TrackKind::Group, above);
        let parent = self.row(timeline, Key::KernelEvents(machine), new);
        let name = format!("CPU {}", cpu % CPUS_OF_MACHINE);
        self.row(timeline, Key::KernelEventsOf(cpu), || track(name, TrackKind::Events, Some(parent)))
    }

    /// Returns the row for the states of a track that a program has described.
    pub(super) fn of_track_states(&mut self, report: &mut Report, track_id: Row) -> TrackId {
        if let Some(&row) = self.rows.get(&Key::TrackStates(track_id)) {
            return row;
        }
        let index = track_id.index();
        let parent = if self.tables.strings.get(self.tables.track.r#type[index]) == "concurrent_tracing_sessions" {
            let machine = self.tables.track.machine_id[index].map_or(0, Row::index);
            let above = self.of_machine(&mut report.timeline, machine);
            let new = || track("Other tracing sessions".to_owned(), TrackKind::Group, above);
            Some(self.row(&mut report.timeline, Key::Sessions(machine), new))
        } else {
            self.above_track(report, index)
        };
        let name = self.tables.track.name[index].map_or("", |name| self.tables.strings.get(name));
        let name = if name.is_empty() { "State".to_owned() } else { name.to_owned() };
        self.row(&mut report.timeline, Key::TrackStates(track_id), || track(name, TrackKind::States, parent))
    }

    /// Returns the row above a track that has one of its own.
    fn above_track(&mut self, report: &mut Report, index: usize) -> Option<TrackId> {
        let tracks = &self.tables.track;
        match (tracks.utid[index], tracks.upid[index], tracks.cpu[index]) {
            (Some(thread), ..) => Some(self.above_thread(report, thread)),
            (_, Some(process), _) => Some(self.of_process(report, process)),
            (_, _, Some(cpu)) => Some(self.of_processors(&mut report.timeline, cpu)),
            _ => {
                let machine = tracks.machine_id[index].map_or(0, Row::index);
                self.of_machine(&mut report.timeline, machine)
            }
        }
    }

    /// Returns the row for the slices of a track, and its lane there.
    pub(super) fn of_slices(&mut self, report: &mut Report, track_id: Row) -> (TrackId, u32) {
        if let Some(&place) = self.of_tracks.get(&track_id) {
            return place;
        }
        let index = track_id.index();
        let tracks = &self.tables.track;
        let kind = self.tables.strings.get(tracks.r#type[index]);
        let row = match tracks.utid[index] {
            Some(thread) if kind.starts_with("thread") && kind != "thread_state_track_event" => {
                self.of_thread(report, thread)
            }
            _ => {
                let parent = self.above_track(report, index);
                let name = tracks.name[index].map(|name| self.tables.strings.get(name)).unwrap_or_default();
                let name = if name.is_empty() { kind.replace('_', " ") } else { name.to_owned() };
                let above = tracks.parent_id[index].map_or(0, |parent| parent.index() + 1);
                let key = Key::Named(parent, format!("{kind}/{above}"), name.clone());
                self.row(&mut report.timeline, key, || track(name, TrackKind::Slices, parent))
            }
        };
        let lanes = self.lanes.entry(row).or_default();
        let place = (row, *lanes);
        *lanes += 1;
        self.of_tracks.insert(track_id, place);
        place
    }

    /// Returns the row above the counters of a machine.
    fn of_counters(&mut self, report: &mut Report, machine: usize) -> TrackId {
        let parent = self.of_machine(&mut report.timeline, machine);
        let new = || track("Counters of the machine".to_owned(), TrackKind::Group, parent);
        self.row(&mut report.timeline, Key::Counters(machine), new)
    }

    /// Returns true for the counter of the idle states of a processor.
    pub(super) fn is_idle_state(&self, track_id: Row) -> bool {
        self.tables.strings.get(self.tables.track.r#type[track_id.index()]) == "cpu_idle"
    }

    pub(super) fn of_counter(&mut self, report: &mut Report, track_id: Row) -> TrackId {
        if let Some(&row) = self.rows.get(&Key::Counter(track_id)) {
            return row;
        }
        let index = track_id.index();
        let tracks = &self.tables.track;
        let text = |symbol: Option<_>| symbol.map(|symbol| self.tables.strings.get(symbol).to_owned());
        let mut name = text(tracks.name[index]).filter(|name| !name.is_empty()).unwrap_or_else(|| "Counter".to_owned());
        let mut unit = text(tracks.unit[index]).unwrap_or_default();
        let kind = self.tables.strings.get(tracks.r#type[index]);
        let parent = match (tracks.utid[index], tracks.upid[index], tracks.cpu[index]) {
            (Some(thread), ..) => {
                name = format!("{name} ({})", self.thread_name(report, thread));
                Some(self.above_thread(report, thread))
            }
            (_, Some(process), _) => Some(self.of_process(report, process)),
            (_, _, Some(cpu)) => {
                name = format!("{name} (CPU {})", cpu % CPUS_OF_MACHINE);
                // Most say how a processor spent its time, which its row shows better.
                if kind.contains("freq") || kind.contains("idle") && !kind.contains("time") {
                    Some(self.of_processors(&mut report.timeline, cpu))
                } else {
                    Some(self.of_counters(report, (cpu / CPUS_OF_MACHINE) as usize))
                }
            }
            _ => {
                let machine = tracks.machine_id[index].map_or(0, Row::index);
                if kind.contains("track_event") {
                    self.of_machine(&mut report.timeline, machine)
                } else {
                    Some(self.of_counters(report, machine))
                }
            }
        };
        if unit == "By" {
            unit = "bytes".to_owned();
        }
        let new = || Track { unit, ..track(name, TrackKind::Counter, parent) };
        self.row(&mut report.timeline, Key::Counter(track_id), new)
    }
}

fn track(name: String, kind: TrackKind, parent: Option<TrackId>) -> Track {
    Track { name, kind, detail: String::new(), unit: String::new(), parent, is_first: false }
}
