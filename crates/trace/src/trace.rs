//! A whole trace in memory, with all references resolved.

use std::collections::BTreeMap;
use std::io::Read;

use crate::debug_annotation::Annotation;
use crate::engine::event_details::{EventDetail, ImportedEvent};
use crate::engine::event_tracks::Owner;
use crate::engine::{Import, PENDING, ReadOptions};
use crate::error::Error;
use crate::event_type::{CounterValue, EventType};
use crate::string_table::Symbol;
use crate::tables::{Row, Table as _, Tables};
use hashbrown::HashMap;

/// A track event.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Its time in nanoseconds of the trace clock.
    pub ts_ns: i64,
    /// Its machine; 0 is that of the service.
    pub machine_id: u32,
    /// The uuid of its track.
    pub track: u64,
    /// The name of its track, if it has one.
    pub track_name: Option<String>,
    /// Its effect.
    pub event_type: EventType,
    /// Its name, if it has one and it could be resolved.
    pub name: Option<String>,
    /// Its categories; `unknown(N)` for one that could not be resolved.
    pub categories: Vec<String>,
    /// Its debug annotations.
    pub annotations: Vec<Annotation>,
    /// Flows that pass through it.
    pub flows: Vec<u64>,
    /// Flows that end at it.
    pub terminating_flows: Vec<u64>,
    /// The value of a counter event: summed up if incremental, and multiplied by its unit.
    pub counter: Option<CounterValue>,
    /// Counters sampled with it, by the uuid of their track.
    pub extra_counters: Vec<(u64, CounterValue)>,
    /// The process that its track belongs to.
    pub pid: Option<i64>,
    /// The thread that its track belongs to.
    pub tid: Option<i64>,
    /// Its packet sequence.
    pub sequence: u32,
    /// Position in the file of its packet, or of the compressed packet that contains it.
    pub offset: u64,
}

/// A slice or an instant.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Slice {
    /// Its begin in nanoseconds of the trace clock.
    pub ts_ns: i64,
    /// Its duration; `None` if it did not end.
    pub duration_ns: Option<i64>,
    /// True if it is an instant.
    pub instant: bool,
    /// Its machine; 0 is that of the service.
    pub machine_id: u32,
    /// Its name.
    pub name: Option<String>,
    /// Number of slices that contain it.
    pub depth: u32,
    /// The slice that directly contains it, by its index in [`Trace::slices`].
    pub parent: Option<usize>,
    /// The event that began it, by its index in [`Trace::events`].
    pub event: usize,
    /// The uuid of its track.
    pub track: u64,
    /// The name of its track.
    pub track_name: Option<String>,
    /// The process that its track belongs to.
    pub pid: Option<i64>,
    /// The thread that its track belongs to.
    pub tid: Option<i64>,
}

/// An arrow from one slice to another, by their indices in [`Trace::slices`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// The slice that began earlier.
    pub from: usize,
    /// The other slice.
    pub to: usize,
}

/// Kind of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TrackType {
    /// It is the track of a process.
    Process,
    /// It is the track of a thread.
    Thread,
    /// It has counter values.
    Counter,
    /// It has states.
    State,
    /// It is none of these.
    Custom,
}

/// A described track.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Track {
    /// Its kind.
    pub track_type: TrackType,
    /// Its name, as described.
    pub name: Option<String>,
    /// The uuid of its parent.
    pub parent: Option<u64>,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// Its machine; 0 is that of the service.
    pub machine_id: u32,
    /// Its pid.
    pub pid: i64,
    /// Its name.
    pub name: Option<String>,
    /// Its arguments.
    pub cmdline: Vec<String>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread {
    /// Its machine; 0 is that of the service.
    pub machine_id: u32,
    /// Its tid.
    pub tid: i64,
    /// The pid of its process.
    pub pid: i64,
    /// Its name.
    pub name: Option<String>,
}

/// A trace.
#[derive(Debug)]
#[non_exhaustive]
pub struct Trace {
    /// All track events, sorted by time. Events of the same time keep the order of the file.
    pub events: Vec<Event>,
    /// Slices and instants of these events, sorted by their begin.
    pub slices: Vec<Slice>,
    /// Arrows between slices.
    pub flows: Vec<Flow>,
    /// The described tracks by machine and uuid.
    pub tracks: BTreeMap<(u32, u64), Track>,
    /// The processes, without the idle one.
    pub processes: Vec<Process>,
    /// Their threads.
    pub threads: Vec<Thread>,
    /// Rules of the format that the trace breaks, by name, with counts.
    pub problems: BTreeMap<&'static str, u64>,
    /// Packets that were not usable because the state that they needed was lost.
    pub skipped_packets: u64,
    /// Errors of the file. Everything readable has been read.
    pub errors: Vec<Error>,
}

/// Returns the events of a trace; see [`Trace`] for more.
pub fn events(trace: &[u8]) -> Vec<Event> {
    Trace::read(trace).events
}

impl Trace {
    /// Reads a trace to its end.
    pub fn read(file: impl Read) -> Self {
        let mut import = Import::read(file, &ReadOptions::default(), true);
        let errors = core::mem::take(&mut import.engine.errors);
        let imported = core::mem::take(&mut import.context.details.imported);
        let mut details: Vec<Option<EventDetail>> =
            core::mem::take(&mut import.context.details.list).into_iter().map(Some).collect();
        let resolve = Resolve { import: &import, tables: &import.engine.tables };
        let (slices, places) = resolve.slices(&imported, &details);
        let event = |event: &ImportedEvent| Some(resolve.event(event, details[event.detail].take()?));
        Self {
            events: imported.iter().filter_map(event).collect(),
            flows: resolve.flows(&places),
            slices,
            tracks: resolve.tracks(),
            processes: resolve.processes(),
            threads: resolve.threads(),
            problems: import.context.problems.iter().map(|(problem, number)| (problem.key(), number)).collect(),
            skipped_packets: import.sequences.iter().map(|sequence| sequence.skipped).sum(),
            errors,
        }
    }

    /// Returns the annotations of the event that began a slice.
    pub fn annotations(&self, slice: &Slice) -> &[Annotation] {
        self.events.get(slice.event).map_or(&[], |event| &event.annotations)
    }
}

struct Resolve<'i> {
    import: &'i Import,
    tables: &'i Tables,
}

impl Resolve<'_> {
    fn text(&self, symbol: Option<Symbol>) -> Option<String> {
        symbol.map(|symbol| self.tables.strings.owned(symbol))
    }

    /// Returns name, pid and tid of a track.
    fn place(&self, track: Option<Row>) -> (Option<String>, Option<i64>, Option<i64>) {
        let Some(track) = track else { return (None, None, None) };
        let (utid, upid) = self.tables.owner_of_track(track.index());
        let pid = upid.map(|upid| self.tables.process.pid[upid.index()]);
        let tid = utid.map(|utid| self.tables.thread.tid[utid.index()]);
        (self.text(self.tables.track.name[track.index()]), pid, tid)
    }

    fn event(&self, imported: &ImportedEvent, detail: EventDetail) -> Event {
        let (track_name, pid, tid) = self.place(imported.track);
        Event {
            ts_ns: imported.ts,
            machine_id: detail.machine,
            track: detail.uuid,
            track_name,
            event_type: detail.event_type(),
            name: self.text(detail.name),
            categories: detail.categories.iter().map(|&name| self.tables.strings.owned(name)).collect(),
            annotations: detail.annotations,
            flows: detail.flows,
            terminating_flows: detail.terminating,
            counter: detail.counter,
            extra_counters: detail.extra,
            pid,
            tid,
            sequence: detail.sequence,
            offset: detail.offset,
        }
    }

    /// Returns the slices of track events, and their positions by row.
    fn slices(&self, imported: &[ImportedEvent], details: &[Option<EventDetail>]) -> (Vec<Slice>, HashMap<Row, usize>) {
        let began = imported.iter().enumerate().filter_map(|(event, entry)| Some((entry.slice?, event)));
        let mut began: Vec<(Row, usize)> = began.collect();
        began.sort_unstable();
        let places: HashMap<Row, usize> = began.iter().enumerate().map(|(place, &(row, _))| (row, place)).collect();
        let table = &self.tables.slice;
        let slice = |&(row, event): &(Row, usize)| {
            let detail = details[imported[event].detail].as_ref()?;
            let (index, dur) = (row.index(), table.dur.get(row.index()));
            let (track_name, pid, tid) = self.place(Some(table.track_id[index]));
            Some(Slice {
                ts_ns: table.ts.get(index),
                duration_ns: (dur != PENDING).then_some(dur),
                instant: detail.event_type() == EventType::Instant,
                machine_id: detail.machine,
                name: self.text(table.name[index]),
                depth: u32::from(table.depth[index]),
                parent: table.parent_id[index].and_then(|parent| places.get(&parent).copied()),
                event,
                track: detail.uuid,
                track_name,
                pid,
                tid,
            })
        };
        (began.iter().filter_map(slice).collect(), places)
    }

    fn flows(&self, places: &HashMap<Row, usize>) -> Vec<Flow> {
        let table = &self.tables.flow;
        let pairs = table.slice_out.iter().zip(&table.slice_in);
        pairs.filter_map(|(from, to)| Some(Flow { from: *places.get(from)?, to: *places.get(to)? })).collect()
    }

    fn tracks(&self) -> BTreeMap<(u32, u64), Track> {
        let slots = self.import.context.event_tracks.slots.iter();
        let described =
            slots.filter_map(|slot| Some((slot, slot.description.as_ref().filter(|found| !found.is_guess)?)));
        let track = |(slot, description): (
            &crate::engine::event_tracks::TrackSlot,
            &crate::engine::event_tracks::Description,
        )| {
            let track_type = match description.owner {
                Owner::Process { .. } => TrackType::Process,
                Owner::Thread { .. } => TrackType::Thread,
                Owner::Parent if description.counter.is_some() => TrackType::Counter,
                Owner::Parent if description.is_state => TrackType::State,
                Owner::Parent => TrackType::Custom,
            };
            let parent = Some(description.parent).filter(|&parent| parent != 0);
            ((slot.machine, slot.uuid), Track { track_type, name: self.text(description.name), parent })
        };
        described.map(track).collect()
    }

    fn processes(&self) -> Vec<Process> {
        let table = &self.tables.process;
        let process = |row: usize| Process {
            machine_id: self.tables.machine_id(table.machine_id[row]),
            pid: table.pid[row],
            name: self.text(table.name[row]),
            cmdline: match self.import.context.processes.cmdlines.get(&Row::new(row)) {
                Some(words) => words.iter().map(|&word| self.tables.strings.owned(word)).collect(),
                None => Vec::new(),
            },
        };
        (0..table.rows()).filter(|&row| table.pid[row] != 0).map(process).collect()
    }

    fn threads(&self) -> Vec<Thread> {
        let (threads, processes) = (&self.tables.thread, &self.tables.process);
        let thread = |row: usize| {
            let pid = processes.pid[threads.upid[row]?.index()];
            let machine_id = self.tables.machine_id(threads.machine_id[row]);
            Some(Thread { machine_id, tid: threads.tid[row], pid, name: self.text(threads.name[row]) })
        };
        (0..threads.rows()).filter_map(thread).filter(|thread| thread.pid != 0).collect()
    }
}

impl TrackType {
    /// Returns a word for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Counter => "counter",
            Self::State => "state",
            Self::Custom => "custom",
        }
    }
}
