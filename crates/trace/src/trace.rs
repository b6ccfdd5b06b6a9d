//! A whole trace in memory, with all references resolved.

use std::collections::BTreeMap;
use std::io::Read;

use crate::debug_annotation::Annotation;
use crate::error::Error;
use crate::import::Import;
use crate::packet_reader::PacketReader;
use crate::string_table::Symbol;
use crate::timeline::{GroupKind, Timeline};
use crate::track_event::{Action, CounterValue, RawEvent};
use crate::track_key::TrackKey;

/// Effect of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventType {
    /// Opens a slice.
    SliceBegin,
    /// Closes a slice.
    SliceEnd,
    /// Marks a moment.
    Instant,
    /// Sets a counter.
    Counter,
    /// Sets a state.
    State,
    /// Records a whole slice (the older form).
    Complete,
}

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
        let mut import = Import::new(true);
        let mut errors = Vec::new();
        for packet in PacketReader::new(file) {
            if let Err(error) = packet.and_then(|packet| import.add(&packet)) {
                errors.push(error);
            }
        }
        import.finish();
        let timeline = Timeline::new(&mut import);
        let resolve = Resolve { import: &import, timeline: &timeline };
        Self {
            events: import.events.list.iter().map(|event| resolve.event(event)).collect(),
            slices: resolve.slices(),
            flows: timeline.flows.iter().map(|&(from, to)| Flow { from: from as usize, to: to as usize }).collect(),
            tracks: resolve.tracks(),
            processes: resolve.processes(),
            threads: resolve.threads(),
            problems: import.problems.iter().map(|(problem, number)| (problem.key(), number)).collect(),
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
    timeline: &'i Timeline,
}

impl Resolve<'_> {
    fn text(&self, symbol: Option<Symbol>) -> Option<String> {
        symbol.map(|symbol| self.import.strings.owned(symbol))
    }

    /// Returns name, pid and tid of a track.
    fn place(&self, track: TrackKey) -> (Option<String>, Option<i64>, Option<i64>) {
        let Some(group) = self.timeline.group(track) else { return (None, None, None) };
        let processes = &self.import.processes;
        let pid = group.process.map(|index| processes.processes[index].pid);
        let tid = group.thread.map(|index| processes.threads[index].tid);
        (self.text(group.name), pid, tid)
    }

    fn event(&self, event: &RawEvent) -> Event {
        let (track_name, pid, tid) = self.place(event.track);
        let events = &self.import.events;
        let annotations = event.annotations.start as usize..event.annotations.end as usize;
        Event {
            ts_ns: event.ts,
            machine_id: event.track.machine,
            track: event.track.uuid,
            track_name,
            event_type: match event.action {
                Action::Begin => EventType::SliceBegin,
                Action::End => EventType::SliceEnd,
                Action::Instant => EventType::Instant,
                Action::Counter(_) => EventType::Counter,
                Action::State => EventType::State,
                Action::Complete(_) => EventType::Complete,
            },
            name: self.text(event.name),
            categories: events.categories(event).iter().map(|&name| self.import.strings.owned(name)).collect(),
            annotations: self.import.annotations[annotations].to_vec(),
            flows: events.flows(event).to_vec(),
            terminating_flows: events.terminating(event).to_vec(),
            counter: match event.action {
                Action::Counter(value) => Some(value),
                _ => None,
            },
            extra_counters: events.extra(event).iter().map(|&(track, value)| (track.uuid, value)).collect(),
            pid,
            tid,
            sequence: event.sequence,
            offset: event.offset,
        }
    }

    fn slices(&self) -> Vec<Slice> {
        let slice = |slice: &crate::timeline::RawSlice| {
            let (track_name, pid, tid) = self.place(slice.track);
            Slice {
                ts_ns: slice.ts,
                duration_ns: slice.duration,
                instant: slice.instant,
                machine_id: slice.track.machine,
                name: self.text(slice.name),
                depth: slice.depth,
                parent: slice.parent.map(|parent| parent as usize),
                event: slice.event as usize,
                track: slice.track.uuid,
                track_name,
                pid,
                tid,
            }
        };
        self.timeline.slices.iter().map(slice).collect()
    }

    fn tracks(&self) -> BTreeMap<(u32, u64), Track> {
        use crate::track_descriptors::TrackKind;
        let track = |descriptor: &crate::track_descriptors::Descriptor| Track {
            track_type: match descriptor.kind {
                TrackKind::Process(_) => TrackType::Process,
                TrackKind::Thread(_) => TrackType::Thread,
                TrackKind::Counter => TrackType::Counter,
                TrackKind::State => TrackType::State,
                TrackKind::Plain => TrackType::Custom,
            },
            name: self.text(descriptor.name),
            parent: descriptor.parent,
        };
        self.import
            .tracks
            .descriptors
            .iter()
            .map(|(&key, descriptor)| ((key.machine, key.uuid), track(descriptor)))
            .collect()
    }

    fn processes(&self) -> Vec<Process> {
        let process = |process: &crate::processes::Process| Process {
            machine_id: process.machine,
            pid: process.pid,
            name: self.text(process.name),
            cmdline: process.cmdline.iter().map(|&part| self.import.strings.owned(part)).collect(),
        };
        self.import.processes.processes.iter().map(process).collect()
    }

    fn threads(&self) -> Vec<Thread> {
        let thread = |thread: &crate::processes::Thread| {
            let process = &self.import.processes.processes[thread.process];
            Thread { machine_id: process.machine, tid: thread.tid, pid: process.pid, name: self.text(thread.name) }
        };
        self.import.processes.threads.iter().map(thread).collect()
    }
}

impl From<GroupKind> for TrackType {
    fn from(kind: GroupKind) -> Self {
        match kind {
            GroupKind::Process => Self::Process,
            GroupKind::Thread => Self::Thread,
            GroupKind::Counter => Self::Counter,
            GroupKind::State => Self::State,
            GroupKind::Plain => Self::Custom,
        }
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
