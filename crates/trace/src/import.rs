//! Import of packets as events, in the order of the file.

use std::collections::{BTreeMap, HashMap, HashSet};

use esatto_protozero::Fields;
use esatto_schema::{
    DATA_SOURCE_PROBLEM_FIELD, clock_snapshot, ftrace_event_bundle, process_tree, trace_packet::field as packet_field,
};

use crate::clock_conversion::{ClockKey, Clocks, Reading};
use crate::counters::Counters;
use crate::debug_annotation::{self, Annotation, AnnotationErrors, AnnotationReader, RawAnnotation};
use crate::error::Error;
use crate::field_names;
use crate::ftrace_report::FtraceReport;
use crate::machines::{HOST, Machines};
use crate::packet_reader::Packet;
use crate::packet_sequence::{NEEDS_STATE, STATE_CLEARED, Sequence};
use crate::problems::{Problem, Problems};
use crate::processes::Processes;
use crate::service_report::{Meta, read_system_info};
use crate::string_table::Strings;
use crate::track_descriptors::{self, Refused, Tracks};
use crate::track_event::{self, Events};

/// The sequence of the service's own packets. Programs have higher numbers.
const SERVICE_SEQUENCE: u32 = 1;

/// Number and size of packets of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// The content of a trace.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) strings: Strings,
    pub(crate) by_type: BTreeMap<u32, Tally>,
    pub(crate) sequences: Vec<Sequence>,
    pub(crate) clocks: Clocks,
    pub(crate) machines: Machines,
    pub(crate) tracks: Tracks,
    pub(crate) processes: Processes,
    pub(crate) counters: Counters,
    pub(crate) events: Events,
    /// Annotations of all events; empty unless they are kept.
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) annotation_count: u64,
    pub(crate) arguments: u64,
    pub(crate) distinct_arguments: u64,
    pub(crate) problems: Problems,
    pub(crate) meta: Meta,
    pub(crate) ftrace_events: u64,
    pub(crate) ftrace_losses: u64,
    pub(crate) ftrace_report: FtraceReport,
    /// The earliest and the latest timestamp of any packet.
    pub(crate) packet_times: Option<(i64, i64)>,
    /// The same for statistics and kernel events, which are not among `events`.
    pub(crate) sample_times: Option<(i64, i64)>,
    keep_annotations: bool,
    index: HashMap<(u32, u32), usize>,
    argument_sets: HashSet<u64>,
    /// Events whose clock is not known yet.
    pending: Vec<(usize, ClockKey, i64)>,
}

/// Fields of a packet beside its payload.
#[derive(Default)]
pub(crate) struct Envelope<'p> {
    pub(crate) timestamp: Option<u64>,
    pub(crate) clock: Option<u32>,
    pub(crate) sequence: u32,
    pub(crate) machine: u32,
    pub(crate) flags: u32,
    pub(crate) dropped: u32,
    pub(crate) first: bool,
    uid: Option<i32>,
    pid: Option<i32>,
    pub(crate) interned: Vec<&'p [u8]>,
    pub(crate) defaults: Option<&'p [u8]>,
    pub(crate) payload: Option<(u32, &'p [u8])>,
    pub(crate) snapshot: Option<&'p [u8]>,
}

impl<'p> Envelope<'p> {
    pub(crate) fn read(bytes: &'p [u8]) -> (Self, Fields<'p>) {
        let mut found = Self::default();
        let mut fields = Fields::new(bytes);
        for f in fields.by_ref() {
            match f.id {
                packet_field::TIMESTAMP => found.timestamp = Some(f.as_u64()),
                packet_field::TIMESTAMP_CLOCK_ID => found.clock = Some(f.as_u32()),
                packet_field::TRUSTED_PACKET_SEQUENCE_ID => found.sequence = f.as_u32(),
                packet_field::MACHINE_ID => found.machine = f.as_u32(),
                packet_field::SEQUENCE_FLAGS => found.flags |= f.as_u32(),
                packet_field::INCREMENTAL_STATE_CLEARED if f.as_bool() => found.flags |= STATE_CLEARED,
                packet_field::INCREMENTAL_STATE_CLEARED => {}
                packet_field::PREVIOUS_PACKET_DROPPED => found.dropped |= f.as_u32(),
                packet_field::FIRST_PACKET_ON_SEQUENCE => found.first = f.as_bool(),
                packet_field::TRUSTED_UID => found.uid = Some(f.as_i32()),
                packet_field::TRUSTED_PID => found.pid = Some(f.as_i32()),
                packet_field::INTERNED_DATA => found.interned.push(f.as_bytes()),
                packet_field::TRACE_PACKET_DEFAULTS => found.defaults = Some(f.as_bytes()),
                _ => {
                    if f.id == packet_field::CLOCK_SNAPSHOT {
                        found.snapshot = Some(f.as_bytes());
                    }
                    found.payload = Some((f.id, f.as_bytes()));
                }
            }
        }
        (found, fields)
    }
}

impl Import {
    pub(crate) fn new(keep_annotations: bool) -> Self {
        Self {
            strings: Strings::default(),
            by_type: BTreeMap::new(),
            sequences: Vec::new(),
            clocks: Clocks::new(),
            machines: Machines::default(),
            tracks: Tracks::default(),
            processes: Processes::default(),
            counters: Counters::default(),
            events: Events::default(),
            annotations: Vec::new(),
            annotation_count: 0,
            arguments: 0,
            distinct_arguments: 0,
            problems: Problems::default(),
            meta: Meta::default(),
            ftrace_events: 0,
            ftrace_losses: 0,
            ftrace_report: FtraceReport::default(),
            packet_times: None,
            sample_times: None,
            keep_annotations,
            index: HashMap::new(),
            argument_sets: HashSet::new(),
            pending: Vec::new(),
        }
    }

    /// Reads the next packet.
    ///
    /// # Errors
    ///
    /// The packet is malformed. The fields before the malformed one have been read.
    pub(crate) fn add(&mut self, packet: &Packet) -> Result<(), Error> {
        let (envelope, fields) = Envelope::read(&packet.bytes);
        let tally = self.by_type.entry(envelope.payload.map_or(0, |(id, _)| id)).or_default();
        tally.packets += 1;
        tally.bytes += packet.bytes.len() as u64;
        let sequence = self.sequence(envelope.machine, envelope.sequence);
        let entry = &mut self.sequences[sequence];
        entry.uid = envelope.uid.or(entry.uid);
        entry.pid = envelope.pid.or(entry.pid);
        if envelope.uid.is_some() && envelope.sequence > SERVICE_SEQUENCE {
            self.meta.progress.add_packet();
        }
        let admitted = entry.admit(packet.bytes.len() as u64, envelope.flags, envelope.dropped, envelope.first);
        if envelope.flags & NEEDS_STATE != 0 && envelope.sequence == 0 {
            self.problems.count(Problem::FlagsWithoutSequence);
        } else if admitted {
            self.take(sequence, &envelope, packet);
        }
        if fields.is_malformed() {
            return Err(Error::Malformed { place: packet.place, at: fields.offset() as u64 });
        }
        Ok(())
    }

    fn sequence(&mut self, machine: u32, id: u32) -> usize {
        *self.index.entry((machine, id)).or_insert_with(|| {
            self.sequences.push(Sequence::new(machine, id));
            self.sequences.len() - 1
        })
    }

    fn take(&mut self, sequence: usize, envelope: &Envelope<'_>, packet: &Packet) {
        let state = &mut self.sequences[sequence].state;
        if let Some(defaults) = envelope.defaults {
            state.set_defaults(defaults);
        }
        if state.valid {
            for data in &envelope.interned {
                state.intern(data, &mut self.strings);
            }
        }
        // A packet with a clock snapshot has no other payload.
        if let Some(snapshot) = envelope.snapshot {
            self.add_snapshot(snapshot, sequence, envelope.machine);
            return;
        }
        let machine = envelope.machine;
        let clock = envelope.clock.or(state.clock).map(|id| ClockKey::new(id, machine, sequence));
        // Readers treat timestamps as signed.
        let ticks = envelope.timestamp.filter(|&ticks| i64::try_from(ticks).is_ok());
        let absolute = ticks.map(|ticks| self.clocks.absolute(clock, ticks));
        let ts = absolute.filter(|&ns| ns >= 0).and_then(|ns| self.clocks.machine_time(clock, ns));
        if let Some(ts) = ts {
            widen(&mut self.sequences[sequence].times, ts);
        }
        let Some((id, payload)) = envelope.payload else { return };
        match id {
            packet_field::TRACK_EVENT => self.add_event(payload, sequence, envelope, (clock, absolute, ts), packet),
            packet_field::TRACK_DESCRIPTOR => {
                let added = self.tracks.add(payload, machine, &mut self.strings, &mut self.processes);
                match added {
                    Ok(()) => {}
                    Err(Refused::Incomplete) => self.problems.count(Problem::DescriptorIncomplete),
                    Err(Refused::Conflict) => self.problems.count(Problem::DescriptorConflict),
                }
            }
            packet_field::PROCESS_DESCRIPTOR => {
                track_descriptors::add_process(payload, machine, None, &mut self.strings, &mut self.processes);
            }
            packet_field::THREAD_DESCRIPTOR => {
                track_descriptors::add_thread(payload, machine, None, &mut self.strings, &mut self.processes);
            }
            packet_field::PROCESS_TREE => self.add_process_tree(payload, machine),
            packet_field::PROCESS_STATS | packet_field::SYS_STATS => {
                let Some(ts) = ts else {
                    self.problems.count(Problem::ClockUnresolved);
                    return;
                };
                let before = self.counters.values();
                if id == packet_field::SYS_STATS {
                    self.counters.add_sys_stats(payload, machine, ts, &mut self.strings);
                } else {
                    let (strings, processes) = (&mut self.strings, &mut self.processes);
                    self.counters.add_process_stats(payload, machine, ts, strings, processes);
                }
                if self.counters.values() > before {
                    widen(&mut self.sequences[sequence].sample_times, ts);
                }
            }
            packet_field::FTRACE_EVENTS => self.add_ftrace(payload, sequence),
            packet_field::FTRACE_STATS => self.ftrace_report.add_stats(self.sequences[sequence].id, payload),
            packet_field::REMOTE_CLOCK_SYNC if machine != HOST => self.add_clock_sync(payload, machine),
            packet_field::SYSTEM_INFO if machine != HOST => {
                self.machines.set_system(machine, read_system_info(payload));
            }
            _ => {
                let ahead = self.machines.ahead(machine, self.clocks.trace_clock());
                self.meta.add(id, payload, ts.zip(ahead).map(|(ts, ahead)| ts.saturating_sub(ahead)));
            }
        }
    }

    fn add_event(
        &mut self,
        payload: &[u8],
        sequence: usize,
        envelope: &Envelope<'_>,
        (clock, absolute, ts): (Option<ClockKey>, Option<i64>, Option<i64>),
        packet: &Packet,
    ) {
        let Some(absolute) = absolute.filter(|&ns| ns >= 0) else {
            self.problems.count(Problem::EventWithoutTimestamp);
            return;
        };
        if envelope.sequence == 0 {
            self.problems.count(Problem::EventWithoutSequence);
            return;
        }
        let mut encoded = Vec::new();
        let (owner, events) = (&mut self.sequences[sequence], &mut self.events);
        let (strings, problems) = (&mut self.strings, &mut self.problems);
        let read = track_event::read(payload, owner, &self.tracks, strings, events, problems, |bytes| {
            encoded.push(bytes);
        });
        if !read {
            return;
        }
        let annotations = self.read_annotations(sequence, &encoded);
        let index = self.events.list.len() - 1;
        let event = &mut self.events.list[index];
        event.annotations = annotations;
        event.sequence = envelope.sequence;
        event.offset = packet.place.offset;
        match (ts, clock) {
            (Some(ts), _) => event.ts = ts,
            (None, Some(clock)) => self.pending.push((index, clock, absolute)),
            (None, None) => event.ts = absolute,
        }
    }

    fn read_annotations(&mut self, sequence: usize, encoded: &[&[u8]]) -> core::ops::Range<u32> {
        let start = track_event::position(&self.annotations);
        if encoded.is_empty() {
            return start..start;
        }
        let state = &self.sequences[sequence].state;
        let mut reader = AnnotationReader { state, errors: AnnotationErrors::default() };
        let list: Vec<RawAnnotation<'_>> = encoded.iter().filter_map(|bytes| reader.read(bytes)).collect();
        self.problems.add(Problem::UnresolvedAnnotationName, reader.errors.unresolved_names);
        self.problems.add(Problem::UnresolvedString, reader.errors.unresolved_strings);
        self.problems.add(Problem::AnnotationWithoutName, reader.errors.nameless);
        self.annotation_count += list.len() as u64;
        let arguments = debug_annotation::arguments(&list, &self.strings);
        self.arguments += arguments.len() as u64;
        if self.argument_sets.insert(debug_annotation::fingerprint(&arguments)) {
            self.distinct_arguments += arguments.len() as u64;
        }
        if self.keep_annotations {
            self.annotations.extend(list.iter().map(|annotation| annotation.to_owned(&self.strings)));
        }
        start..track_event::position(&self.annotations)
    }

    fn add_snapshot(&mut self, bytes: &[u8], sequence: usize, machine: u32) {
        let (readings, primary) = read_snapshot(bytes, sequence, machine);
        if self.clocks.add(&readings, primary.filter(|_| machine == HOST)).is_err() {
            self.problems.count(Problem::ClockSnapshotInvalid);
        }
    }

    fn add_clock_sync(&mut self, bytes: &[u8], machine: u32) {
        for values in self.machines.add_clock_sync(machine, bytes) {
            let reading = |(id, ticks)| {
                let clock = ClockKey::of_machine(id, machine)?;
                Some(Reading { clock, ticks, incremental: false, multiplier: 1 })
            };
            let readings: Option<Vec<Reading>> = values.into_iter().map(reading).collect();
            if readings.is_none_or(|readings| self.clocks.relate(&readings).is_err()) {
                self.problems.count(Problem::ClockSnapshotInvalid);
            }
        }
    }

    fn add_process_tree(&mut self, bytes: &[u8], machine: u32) {
        use process_tree::{field, process::field as process_field, thread::field as thread_field};
        for f in Fields::new(bytes) {
            match f.id {
                field::PROCESSES => {
                    let (mut pid, mut parent, mut uid, mut cmdline) = (None, None, None, Vec::new());
                    for f in Fields::new(f.as_bytes()) {
                        match f.id {
                            process_field::PID => pid = Some(i64::from(f.as_i32())),
                            process_field::PPID => parent = Some(i64::from(f.as_i32())),
                            process_field::UID => uid = Some(f.as_i32()),
                            process_field::CMDLINE => cmdline.push(self.strings.add(f.as_bytes())),
                            _ => {}
                        }
                    }
                    let Some(pid) = pid else { continue };
                    if let Some(parent) = parent.filter(|&pid| pid != 0) {
                        self.processes.process(machine, parent, None);
                    }
                    let index = self.processes.process(machine, pid, None);
                    let process = &mut self.processes.processes[index];
                    process.parent = parent.or(process.parent);
                    process.uid = uid.or(process.uid);
                    process.name = process.name.or_else(|| cmdline.first().copied());
                    if !cmdline.is_empty() {
                        process.cmdline = cmdline;
                    }
                }
                field::THREADS => {
                    let (mut tid, mut pid, mut name) = (None, None, None);
                    for f in Fields::new(f.as_bytes()) {
                        match f.id {
                            thread_field::TID => tid = Some(i64::from(f.as_i32())),
                            thread_field::TGID => pid = Some(i64::from(f.as_i32())),
                            thread_field::NAME => name = Some(self.strings.add(f.as_bytes())),
                            _ => {}
                        }
                    }
                    let (Some(tid), Some(pid)) = (tid, pid) else { continue };
                    let index = self.processes.thread(machine, pid, tid, None);
                    let thread = &mut self.processes.threads[index];
                    thread.name = thread.name.or(name);
                }
                _ => {}
            }
        }
    }

    fn add_ftrace(&mut self, bytes: &[u8], sequence: usize) {
        /// Field of `FtraceEvent`, which is generated only with the feature `ftrace`.
        const TIMESTAMP: u32 = 1;
        for f in Fields::new(bytes) {
            match f.id {
                ftrace_event_bundle::field::EVENT => {
                    self.ftrace_events += 1;
                    let ts = Fields::new(f.as_bytes()).find(|f| f.id == TIMESTAMP).map(|f| f.as_i64());
                    if let Some(ts) = ts.filter(|&ts| ts >= 0) {
                        widen(&mut self.sequences[sequence].sample_times, ts);
                    }
                }
                ftrace_event_bundle::field::COMPACT_SCHED => {
                    let compact = ftrace_event_bundle::CompactSchedReader::new(f.as_bytes());
                    self.add_deltas(compact.switch_timestamp(), sequence);
                    self.add_deltas(compact.waking_timestamp(), sequence);
                }
                ftrace_event_bundle::field::LOST_EVENTS => self.ftrace_losses += u64::from(f.as_bool()),
                _ => {}
            }
            self.ftrace_report.add_bundle_field(f.id, || f.as_u64());
        }
    }

    /// Counts scheduler events of the compact form: the first timestamp is absolute, all later ones
    /// are deltas.
    fn add_deltas(&mut self, timestamps: impl Iterator<Item = u64>, sequence: usize) {
        let mut ts = 0u64;
        for delta in timestamps {
            ts = ts.wrapping_add(delta);
            self.ftrace_events += 1;
            if let Ok(ts) = i64::try_from(ts) {
                widen(&mut self.sequences[sequence].sample_times, ts);
            }
        }
    }

    /// Converts the times of other machines and sorts the events by time. Call it once, after the
    /// last packet.
    pub(crate) fn finish(&mut self) {
        let mut lost = HashSet::new();
        for (index, clock, absolute) in core::mem::take(&mut self.pending) {
            match self.clocks.machine_time(Some(clock), absolute) {
                Some(ts) => self.events.list[index].ts = ts,
                None => {
                    lost.insert(index);
                }
            }
        }
        self.problems.add(Problem::ClockUnresolved, lost.len() as u64);
        let mut index = 0;
        self.events.list.retain(|_| {
            index += 1;
            !lost.contains(&(index - 1))
        });
        self.use_time_of_host();
        self.events.list.sort_by_key(|event| event.ts);
    }

    /// Converts all times to those of the host. A machine whose clocks are not related to those of
    /// the host keeps its own times, as in the trace processor.
    fn use_time_of_host(&mut self) {
        let trace_clock = self.clocks.trace_clock();
        let mut unrelated = HashSet::new();
        let machines = &self.machines;
        let mut ahead = |machine| {
            machines.ahead(machine, trace_clock).unwrap_or_else(|| {
                unrelated.insert(machine);
                0
            })
        };
        for event in &mut self.events.list {
            event.ts = event.ts.saturating_sub(ahead(event.track.machine));
        }
        let mut is_several = false;
        let first = self.sequences.first().map(|sequence| sequence.machine);
        for sequence in &mut self.sequences {
            is_several |= first != Some(sequence.machine);
            for (times, all) in
                [(&mut sequence.times, &mut self.packet_times), (&mut sequence.sample_times, &mut self.sample_times)]
            {
                let Some((from, to)) = times else { continue };
                let ahead = ahead(sequence.machine);
                for ts in [from, to] {
                    *ts = ts.saturating_sub(ahead);
                    widen(all, *ts);
                }
            }
        }
        if is_several {
            self.problems.add(Problem::UnrelatedMachine, unrelated.len() as u64);
        }
    }

    /// Returns the name of a kind of packet.
    pub(crate) fn type_name(id: u32) -> String {
        match id {
            0 => "(empty)".to_owned(),
            DATA_SOURCE_PROBLEM_FIELD => "data_source_problem".to_owned(),
            id => field_names::name(field_names::trace_packet(), id),
        }
    }
}

/// Reads a `ClockSnapshot`: its clocks, and the clock of the trace if it names one.
pub(crate) fn read_snapshot(bytes: &[u8], sequence: usize, machine: u32) -> (Vec<Reading>, Option<u32>) {
    use clock_snapshot::{clock::field as clock_field, field};
    let (mut readings, mut primary) = (Vec::new(), None);
    for f in Fields::new(bytes) {
        match f.id {
            field::PRIMARY_TRACE_CLOCK => primary = Some(f.as_u32()),
            field::CLOCKS => {
                let (mut id, mut ticks, mut incremental, mut multiplier) = (0, 0, false, 1);
                for f in Fields::new(f.as_bytes()) {
                    match f.id {
                        clock_field::CLOCK_ID => id = f.as_u32(),
                        clock_field::TIMESTAMP => ticks = f.as_u64(),
                        clock_field::IS_INCREMENTAL => incremental = f.as_bool(),
                        clock_field::UNIT_MULTIPLIER_NS => multiplier = f.as_u64().max(1),
                        _ => {}
                    }
                }
                readings.push(Reading { clock: ClockKey::new(id, machine, sequence), ticks, incremental, multiplier });
            }
            _ => {}
        }
    }
    (readings, primary)
}

/// Extends a span of time to contain `ts`.
pub(crate) fn widen(span: &mut Option<(i64, i64)>, ts: i64) {
    let (from, to) = span.unwrap_or((ts, ts));
    *span = Some((from.min(ts), to.max(ts)));
}
