//! Reader of Chrome JSON, which becomes a Perfetto trace.
//!
//! The events are sorted by time first. Then they become packets in one pass, or in two if there
//! are flows: a flow is bound to the slice that is open when its event comes, and the packet of
//! that slice must name it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, BufRead, Read};

use esatto_schema::track_event::Type;
use serde_json::Value;

use super::error::Error;
use super::event::{Event, Scope, hash_of};
use super::order::Ordered;
use super::owners::{Owners, Process, Thread};
use super::packets::{EventParts, Packets};
use super::stacks::{Open, Refused, Stack};
use super::tokenizer::Tokenizer;
use esatto_trace::sorter::{Sorter, SpillFile};

/// Lanes for slices of a thread that overlap others; further ones are left out.
const MAX_LANES: usize = 256;
/// Bytes of events that are sorted in memory before they are written to a temporary file.
const SORT_MEMORY: usize = 64 << 20;
/// Bytes of packets that are made at a time.
const BATCH_BYTES: usize = 1 << 16;

/// Counts of what was read and of what was left out.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct JsonSummary {
    /// Events that were read.
    pub events: u64,
    /// Elements of the list that are no events.
    pub malformed: u64,
    /// Events without a time, or with a negative one.
    pub without_time: u64,
    /// Events that need a duration, an id or values, and have none.
    pub incomplete: u64,
    /// Events of phases that have no meaning here, by phase.
    pub skipped: BTreeMap<char, u64>,
    /// Ends without a begin.
    pub unmatched_ends: u64,
    /// Slices that overlap others of their thread. They are on further tracks.
    pub overlapping: u64,
    /// Slices that are nested too deep, or overlap too many others. They are left out.
    pub dropped_slices: u64,
    /// Flows without a slice at one of their ends.
    pub unbound_flows: u64,
    /// The file ends inside a value.
    pub is_torn: bool,
    /// The file has kernel events as text, which are not read.
    pub has_system_events: bool,
    /// The error that ended reading.
    pub error: Option<Error>,
}

/// A Perfetto trace that is made of Chrome JSON while it is read.
///
/// The content of the JSON is in temporary files where it takes more than some memory.
#[derive(Debug)]
pub struct ChromeJson {
    events: Ordered,
    threads: HashMap<Thread, ThreadState>,
    described: HashSet<u64>,
    owners: Owners,
    packets: Packets,
    /// Flows by the number of the event of their slice.
    flows: HashMap<u64, Vec<u64>>,
    summary: JsonSummary,
    /// Bytes of `packets` that were read already.
    read: usize,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct ThreadState {
    stack: Stack,
    /// Ends of the last slices on further tracks.
    lanes: Vec<i64>,
}

impl ChromeJson {
    /// Reads all events of a file. `seed` makes the ids of tracks different from those of other
    /// files that are read together with this one.
    ///
    /// # Errors
    ///
    /// The file has no events, or a temporary file fails. If only a part of the file can be read,
    /// the [summary](Self::summary) says why.
    pub fn read(file: impl BufRead, seed: u64) -> Result<Self, Error> {
        Self::read_with(file, seed, SORT_MEMORY)
    }

    pub(super) fn read_with(file: impl BufRead, seed: u64, memory: usize) -> Result<Self, Error> {
        let mut summary = JsonSummary::default();
        let mut owners = Owners::new(seed);
        let mut sorter = Sorter::new(memory, SpillFile::default());
        let mut tokenizer = Tokenizer::new(file);
        let mut has_flows = false;
        loop {
            let json = match tokenizer.next() {
                Ok(Some(json)) => json,
                Ok(None) => break,
                Err(error) if summary.events == 0 => return Err(error),
                Err(error) => {
                    summary.error = Some(error);
                    break;
                }
            };
            let Some(event) = Event::parse(json) else {
                // An empty object ends many lists, so that the comma before it is allowed.
                summary.malformed += u64::from(json != b"{}");
                continue;
            };
            summary.events += 1;
            has_flows |= matches!(event.phase, 's' | 't' | 'f') || event.bound.is_some();
            match (event.phase, event.ts) {
                ('M', _) => owners.name(&event),
                (_, Some(ts)) if ts >= 0 => {
                    sorter.push(ts, 0, |bytes| bytes.extend_from_slice(json));
                    if let Some(error) = sorter.take_failure() {
                        return Err(Error::Sort(error));
                    }
                }
                _ => summary.without_time += 1,
            }
        }
        if summary.events == 0 {
            return Err(Error::NoEvent);
        }
        summary.is_torn = tokenizer.is_torn;
        summary.has_system_events = tokenizer.has_system_events;
        let mut trace = Self {
            events: Ordered::new(sorter.into_sorted().map_err(Error::Sort)?),
            threads: HashMap::new(),
            described: HashSet::new(),
            owners,
            packets: Packets::new(1),
            flows: HashMap::new(),
            summary,
            read: 0,
            has_ended: false,
        };
        if has_flows {
            trace.bind_flows().map_err(Error::Sort)?;
        }
        trace.describe_named();
        Ok(trace)
    }

    /// Returns what has become of the file. The counts of slices and flows are complete after the
    /// last packet.
    pub fn summary(&self) -> &JsonSummary {
        &self.summary
    }

    /// Finds the slices of all flows.
    fn bind_flows(&mut self) -> io::Result<()> {
        let mut binder = super::flows::Binder::default();
        while let Some((number, ts, event)) = self.events.next()? {
            let (_, thread) = self.owners.of(&event);
            binder.add(number, ts, &event, thread);
        }
        (self.flows, self.summary.unbound_flows) = binder.finish();
        let owners = &self.owners;
        self.flows.values_mut().flatten().for_each(|flow| *flow = owners.uuid("flow", 0, *flow));
        self.events.rewind()
    }

    /// Describes the processes and threads that have names.
    fn describe_named(&mut self) {
        for process in self.owners.named_processes() {
            self.describe_process(process);
        }
        for thread in self.owners.named_threads() {
            self.describe_thread(thread);
        }
    }

    /// Returns the id of the track of a process, and describes it.
    fn describe_process(&mut self, process: Process) -> u64 {
        let uuid = self.owners.uuid("process", process.0, 0);
        if self.described.insert(uuid) {
            let name = self.owners.process_name(process);
            let (labels, order) = self.owners.process_facts(process);
            self.packets.packet(None, |mut packet| {
                let mut track = packet.track_descriptor();
                track.uuid(uuid);
                let mut descriptor = track.process();
                descriptor.pid(i32::from_ne_bytes(process.0.to_ne_bytes()));
                if let Some(name) = name {
                    descriptor.process_name(name);
                }
                if let Some(labels) = labels {
                    descriptor.process_labels(labels);
                }
                if let Some(order) = order {
                    descriptor.legacy_sort_index(order);
                }
            });
        }
        uuid
    }

    /// Returns the id of the track of a thread, and describes it.
    fn describe_thread(&mut self, thread: Thread) -> u64 {
        let uuid = self.owners.uuid("thread", thread.pid, u64::from(thread.tid));
        if !self.described.contains(&uuid) {
            let parent = self.describe_process(Process(thread.pid));
            self.described.insert(uuid);
            let name = self.owners.thread_name(thread);
            let order = self.owners.thread_order(thread);
            self.packets.packet(None, |mut packet| {
                let mut track = packet.track_descriptor();
                track.uuid(uuid).parent_uuid(parent);
                let mut descriptor = track.thread();
                descriptor.pid(i32::from_ne_bytes(thread.pid.to_ne_bytes()));
                descriptor.tid(i64::from(thread.tid));
                if let Some(name) = name {
                    descriptor.thread_name(name);
                }
                if let Some(order) = order {
                    descriptor.legacy_sort_index(order);
                }
            });
        }
        uuid
    }

    /// Makes further packets. Returns false after the last one.
    fn advance(&mut self) -> io::Result<bool> {
        while self.packets.out.len() < BATCH_BYTES {
            let Some((number, ts, event)) = self.events.next()? else {
                if !self.has_ended {
                    self.has_ended = true;
                    self.finish();
                }
                break;
            };
            self.add(number, ts, &event);
        }
        Ok(!self.packets.out.is_empty())
    }

    /// Ends the slices whose ends are known.
    fn finish(&mut self) {
        let mut threads: Vec<_> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            let mut ended = Vec::new();
            if let Some(state) = self.threads.get_mut(&thread) {
                state.stack.finish(&mut ended);
            }
            let track = self.describe_thread(thread);
            self.end_slices(track, &ended);
        }
    }

    fn end_slices(&mut self, track: u64, ended: &[Open]) {
        for slice in ended {
            let Some(end) = slice.end else { continue };
            let parts = EventParts {
                track,
                kind: Some(Type::TYPE_SLICE_END),
                name: &slice.name,
                category: &slice.category,
                thread_time: slice.thread_end,
                ..EventParts::default()
            };
            self.packets.event(end, parts, |_| {});
        }
    }

    fn add(&mut self, number: u64, ts: i64, event: &Event) {
        let (process, thread) = self.owners.of(event);
        match event.phase {
            'B' | 'X' => self.add_slice(number, ts, event, thread),
            'E' => self.end_slice(ts, event, thread),
            'i' | 'I' | 'R' => self.add_instant(number, ts, event, process, thread),
            'b' | 'e' | 'n' | 'S' | 'F' | 'T' | 'p' | 'N' | 'D' | 'O' => self.add_async(number, ts, event, thread),
            'C' => self.add_counters(ts, event, process, thread),
            // Flows are named by their slices.
            's' | 't' | 'f' => {}
            other => *self.summary.skipped.entry(other).or_default() += 1,
        }
    }

    fn add_slice(&mut self, number: u64, ts: i64, event: &Event, thread: Thread) {
        let end = match (event.phase, event.dur) {
            ('B', _) => None,
            // The trace processor does not know the end of such a slice.
            (_, Some(dur)) if dur >= 0 => Some(ts.saturating_add(dur)),
            _ => {
                self.summary.incomplete += 1;
                return;
            }
        };
        let mut slice = Open::new(number, ts, end, &event.name, &event.category);
        slice.thread_begin = event.thread_ts;
        slice.thread_end = event.thread_ts.zip(event.thread_dur).map(|(ts, dur)| ts.saturating_add(dur));
        let track = self.describe_thread(thread);
        let mut ended = Vec::new();
        let state = self.threads.entry(thread).or_default();
        let placed = state.stack.begin(slice.clone(), &mut ended);
        self.end_slices(track, &ended);
        let kind = if end == Some(ts) { Type::TYPE_INSTANT } else { Type::TYPE_SLICE_BEGIN };
        let flows = self.flows.remove(&number).unwrap_or_default();
        let parts = EventParts {
            track,
            kind: Some(kind),
            name: &event.name,
            category: &event.category,
            thread_time: event.thread_ts.filter(|_| end.is_none() || slice.thread_end.is_some()),
            args: Some(&event.args),
            flows: &flows,
        };
        match (placed, end) {
            (Ok(()), _) => self.packets.event(ts, parts, |_| {}),
            (Err(Refused::Overlaps), Some(end)) => {
                let Some(track) = self.lane(thread, track, ts, end) else {
                    self.summary.dropped_slices += 1;
                    return;
                };
                self.summary.overlapping += 1;
                self.packets.event(ts, EventParts { track, ..parts }, |_| {});
                self.end_slices(track, &[slice]);
            }
            _ => self.summary.dropped_slices += 1,
        }
    }

    /// Returns a track for a slice that overlaps others.
    fn lane(&mut self, thread: Thread, parent: u64, ts: i64, end: i64) -> Option<u64> {
        let lanes = &mut self.threads.entry(thread).or_default().lanes;
        let lane = lanes.iter().position(|last| *last <= ts).unwrap_or(lanes.len());
        if lane >= MAX_LANES {
            return None;
        }
        if lane == lanes.len() {
            lanes.push(end);
        }
        lanes[lane] = end;
        let uuid = self.owners.uuid("lane", thread.pid, u64::from(thread.tid) << 16 | lane as u64);
        if self.described.insert(uuid) {
            self.packets.packet(None, |mut packet| {
                packet.track_descriptor().uuid(uuid).parent_uuid(parent).name("Overlapping slices");
            });
        }
        Some(uuid)
    }

    fn end_slice(&mut self, ts: i64, event: &Event, thread: Thread) {
        let track = self.describe_thread(thread);
        let mut ended = Vec::new();
        let state = self.threads.entry(thread).or_default();
        let found = state.stack.end(ts, &event.name, &event.category, &mut ended);
        self.end_slices(track, &ended);
        let Some(found) = found else {
            self.summary.unmatched_ends += 1;
            return;
        };
        let parts = EventParts {
            track,
            kind: Some(Type::TYPE_SLICE_END),
            name: &found.name,
            category: &found.category,
            // If only one of both has a time, the trace processor makes a difference of nothing.
            thread_time: found.thread_begin.map(|begin| event.thread_ts.unwrap_or(begin)),
            args: Some(&event.args),
            flows: &[],
        };
        self.packets.event(ts, parts, |_| {});
    }

    fn add_instant(&mut self, number: u64, ts: i64, event: &Event, process: Process, thread: Thread) {
        let flows = self.flows.remove(&number).unwrap_or_default();
        let mut parts = EventParts {
            kind: Some(Type::TYPE_INSTANT),
            name: &event.name,
            category: &event.category,
            args: Some(&event.args),
            flows: &flows,
            ..EventParts::default()
        };
        match event.scope {
            Scope::Thread => {
                let track = self.describe_thread(thread);
                let mut ended = Vec::new();
                let state = self.threads.entry(thread).or_default();
                let slice = Open::new(number, ts, Some(ts), &event.name, &event.category);
                let is_placed = state.stack.begin(slice, &mut ended).is_ok();
                self.end_slices(track, &ended);
                if !is_placed {
                    self.summary.dropped_slices += 1;
                    return;
                }
                parts.track = track;
                parts.thread_time = event.thread_ts;
            }
            Scope::Process => parts.track = self.describe_process(process),
            Scope::Global => {
                let uuid = self.owners.uuid("global", 0, 0);
                if self.described.insert(uuid) {
                    self.packets.packet(None, |mut packet| {
                        packet.track_descriptor().uuid(uuid).name("Global events");
                    });
                }
                parts.track = uuid;
            }
        }
        self.packets.event(ts, parts, |_| {});
    }

    /// Adds an event of a track that the category and the id name. The fields are those of the
    /// older form, whose rules for tracks are those of this format.
    fn add_async(&mut self, number: u64, ts: i64, event: &Event, thread: Thread) {
        let Some(id) = event.id else {
            self.summary.incomplete += 1;
            return;
        };
        // Objects have a life, and snapshots in it.
        let phase = match event.phase {
            'N' => 'b',
            'D' => 'e',
            'O' => 'n',
            phase => phase,
        };
        let is_object = phase != event.phase;
        let flows = self.flows.remove(&number).unwrap_or_default();
        let parts = EventParts {
            track: self.describe_thread(thread),
            name: &event.name,
            category: &event.category,
            args: Some(&event.args),
            flows: &flows,
            ..EventParts::default()
        };
        self.packets.event(ts, parts, |out| {
            let mut legacy = out.legacy_event();
            legacy.phase(i32::from(u8::try_from(phase).unwrap_or(b'n')));
            if event.is_local {
                legacy.local_id(id);
            } else {
                legacy.unscoped_id(id);
            }
            if is_object {
                legacy.id_scope(format!("object {}", event.name));
            }
        });
    }

    fn add_counters(&mut self, ts: i64, event: &Event, process: Process, thread: Thread) {
        if event.args.is_empty() {
            self.summary.incomplete += 1;
            return;
        }
        self.describe_thread(thread);
        let parent = self.describe_process(process);
        let prefix = match &event.id_text {
            Some(id) => format!("{} id: {id}", event.name),
            None => event.name.clone(),
        };
        for (key, value) in &event.args {
            let value = match value {
                Value::Number(number) => number.as_f64(),
                Value::String(text) => text.parse().ok(),
                _ => None,
            };
            let Some(value) = value else {
                self.summary.incomplete += 1;
                continue;
            };
            let name = format!("{prefix} {key}");
            let track = self.owners.uuid("counter", process.0, hash_of(&name));
            if self.described.insert(track) {
                self.packets.packet(None, |mut packet| {
                    let mut descriptor = packet.track_descriptor();
                    descriptor.uuid(track).parent_uuid(parent).name(&name);
                    descriptor.counter();
                });
            }
            let parts = EventParts { track, kind: Some(Type::TYPE_COUNTER), ..EventParts::default() };
            self.packets.event(ts, parts, |out| _ = out.double_counter_value(value));
        }
    }
}

impl Read for ChromeJson {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.packets.out.len() {
            self.packets.out.clear();
            self.read = 0;
            if !self.advance()? {
                return Ok(0);
            }
        }
        let rest = &self.packets.out[self.read..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Ok(length)
    }
}
