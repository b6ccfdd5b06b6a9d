//! First stage of the import: packets in the order of the file.
//!
//! It keeps the state of sequences, resolves interned values, converts clocks, and passes each
//! event to the sorter of its machine.

use std::collections::BTreeMap;

use esatto_protozero::Fields;
use esatto_schema::trace_packet::field as packet_field;
use hashbrown::{HashMap, HashSet};

use super::context::{Context, Generation};
use super::event_tracks::Refused;
use super::origins::{Origins, Refusal};
use super::placement::FileClocks;
use super::record::{Kind, Put as _, TrackEventRecord};
use super::stacks::{PerfSessions, Stacks};
use super::survey::{Survey, widen};
use crate::clock_conversion::{ClockKey, Clocks, clock_name};
use crate::envelope::{Envelope, read_snapshot};
use crate::error::Error;
use crate::machines::{HOST, Machines};
use crate::merge_plan::{FileRules, MergePlan};
use crate::packet_reader::Packet;
use crate::packet_sequence::{NEEDS_STATE, STATE_CLEARED, Sequence};
use crate::problems::Problem;
use crate::service_report::read_system_info;
use crate::sorter::{Queue, Sorter, SpillFile};
use crate::string_table::Symbol;
use crate::tables::{ClockSnapshotRow, signed};

/// Queue of all records but those of the kernel.
const MAIN_QUEUE: Queue = 0;

/// Sequences that are found without a search, because a packet of theirs was just read.
const RECENT: usize = 64;

/// Clocks of a snapshot that are tried, if it lacks the clock of the trace. Each may cost a search.
const MAX_TRIED_CLOCKS: usize = 4;

/// State of the first stage.
#[derive(Debug)]
pub(crate) struct Tokenizer {
    pub(crate) context: Context,
    pub(crate) clocks: Clocks,
    pub(crate) machines: Machines,
    pub(crate) survey: Survey,
    /// Sorters by machine.
    pub(crate) sorters: BTreeMap<u32, Sorter>,
    sort_memory: usize,
    spill_file: SpillFile,
    pub(crate) sequences: Vec<Sequence>,
    /// The current generation of each sequence.
    current: Vec<usize>,
    index: HashMap<(u32, u32), usize>,
    /// Sequences that were read last, by a part of their ids.
    recent: [usize; RECENT],
    /// Records whose clock is not known yet.
    pending: Vec<Pending>,
    pub(super) latest: i64,
    pub(super) joined_categories: HashMap<Vec<Symbol>, Symbol>,
    pub(super) event: TrackEventRecord,
    /// Memory for the categories of an event.
    pub(super) categories: Vec<Symbol>,
    /// Position in the file of the packet that is read.
    pub(super) offset: u64,
    /// Number of snapshots of each machine.
    snapshots: HashMap<u32, u32>,
    pub(super) stacks: Stacks,
    /// Processors of machines that have a bundle of kernel events.
    pub(super) ftrace_cpus: HashSet<(u32, u32)>,
    /// Instances of the data source of perf samples, by sequence.
    pub(super) perf: PerfSessions,
    /// Files so far. The clocks of the current one are in `clocks`.
    pub(crate) files: Vec<FileClocks>,
    /// Rules say that the current file has no clocks.
    is_pinned: bool,
    /// Reason for which the rest of the current file is not read.
    refusal: Option<String>,
}

#[derive(Debug)]
struct Pending {
    machine: u32,
    clock: ClockKey,
    absolute: i64,
    record: Vec<u8>,
}

/// Time of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Time {
    /// It is known.
    Known(i64),
    /// A later snapshot may tell it.
    Unknown(ClockKey, i64),
}

/// Returns the sorter of a machine.
fn sorter<'s>(sorters: &'s mut BTreeMap<u32, Sorter>, machine: u32, limit: usize, file: &SpillFile) -> &'s mut Sorter {
    sorters.entry(machine).or_insert_with(|| Sorter::new(limit, file.clone()))
}

impl Tokenizer {
    pub(crate) fn new(sort_memory: usize, plan: &MergePlan) -> Self {
        Self {
            context: Context { origins: Origins::new(plan), ..Context::default() },
            clocks: Clocks::default(),
            machines: Machines::default(),
            survey: Survey::default(),
            sorters: BTreeMap::new(),
            sort_memory,
            spill_file: SpillFile::default(),
            sequences: Vec::new(),
            current: Vec::new(),
            index: HashMap::new(),
            recent: [0; RECENT],
            pending: Vec::new(),
            latest: 0,
            joined_categories: HashMap::new(),
            event: TrackEventRecord::default(),
            categories: Vec::new(),
            offset: 0,
            snapshots: HashMap::new(),
            stacks: Stacks::default(),
            ftrace_cpus: HashSet::new(),
            perf: PerfSessions::default(),
            files: Vec::new(),
            is_pinned: false,
            refusal: None,
        }
    }

    /// Begins with a file. `has_clocks` says that it may have times of clocks.
    pub(crate) fn begin_file(&mut self, name: &str, rules: Option<&FileRules>, has_clocks: bool) {
        let origins = &mut self.context.origins;
        origins.begin_file(self.files.len(), rules);
        let base = origins.number(HOST).unwrap_or(HOST);
        self.is_pinned = rules.and_then(|rules| rules.clocks.as_ref()).is_some_and(|rule| rule.clock.is_none());
        let is_clockless = !has_clocks || self.is_pinned;
        self.files.push(FileClocks { name: name.to_owned(), clocks: Clocks::default(), base, is_clockless });
        self.clocks = Clocks::default();
        self.latest = 0;
        self.refusal = None;
    }

    /// Reads the next packet.
    ///
    /// # Errors
    ///
    /// The packet is malformed. The fields before the malformed one have been read.
    pub(crate) fn add(&mut self, packet: &Packet) -> Result<(), Error> {
        let (mut envelope, fields) = Envelope::read(&packet.bytes);
        envelope.machine = self.number(&envelope, packet)?;
        self.context.arg_keys.allow(packet.bytes.len() as u64);
        self.offset = packet.place.offset;
        self.survey.add_packet(&envelope, packet.bytes.len() as u64);
        let sequence = self.sequence(envelope.machine, envelope.sequence);
        let entry = &mut self.sequences[sequence];
        let admitted = entry.admit(packet.bytes.len() as u64, envelope.flags, envelope.dropped, envelope.first);
        let begins = entry.begins;
        entry.uid = envelope.uid.or(entry.uid);
        entry.pid = envelope.pid.or(entry.pid);
        if envelope.flags & STATE_CLEARED != 0 {
            let thread = self.context.generations[self.current[sequence]].thread;
            self.current[sequence] = self.context.generations.len();
            self.context.generations.push(Generation { thread, has_first: begins });
        }
        self.context.generations[self.current[sequence]].has_first = begins;
        if admitted && (envelope.flags & NEEDS_STATE == 0 || envelope.sequence != 0) {
            self.take(sequence, &envelope);
        } else {
            self.context.stats.count("tokenizer_skipped_packets");
            if envelope.flags & NEEDS_STATE != 0 && envelope.sequence == 0 {
                self.context.problems.count(Problem::FlagsWithoutSequence);
            }
        }
        if self.refusal.is_some() {
            return Err(self.left_out(packet));
        }
        if fields.is_malformed() {
            return Err(Error::Malformed { place: packet.place, at: fields.offset() as u64 });
        }
        Ok(())
    }

    /// Returns the number of the machine of a packet.
    fn number(&mut self, envelope: &Envelope<'_>, packet: &Packet) -> Result<u32, Error> {
        let refusal = match self.context.origins.number(envelope.machine) {
            Ok(number) if number != HOST && self.is_pinned && envelope.machine != HOST => {
                format!(
                    "a file whose times the manifest pins has one machine, and this is machine {}",
                    envelope.machine
                )
            }
            Ok(number) => return Ok(number),
            Err(Refusal::Undeclared(id)) => format!("the manifest does not declare machine {id}"),
            Err(Refusal::Several(id)) => {
                format!("the manifest says that the file is of one machine, and this is machine {id}; use `machines`")
            }
        };
        self.refusal = Some(refusal);
        Err(self.left_out(packet))
    }

    /// Returns the error for the rest of a file that does not fit to the rules for it.
    fn left_out(&mut self, packet: &Packet) -> Error {
        let name = self.files.last().map(|file| file.name.clone()).unwrap_or_default();
        let why = self.refusal.take().unwrap_or_default();
        Error::LeftOut { name, why: format!("everything from {} on: {why}", packet.place) }
    }

    fn sequence(&mut self, machine: u32, id: u32) -> usize {
        let slot = id as usize % RECENT;
        let is_it = |sequence: &Sequence| (sequence.machine, sequence.id) == (machine, id);
        if self.sequences.get(self.recent[slot]).is_some_and(is_it) {
            return self.recent[slot];
        }
        let index = self.look_up_sequence(machine, id);
        self.recent[slot] = index;
        index
    }

    fn look_up_sequence(&mut self, machine: u32, id: u32) -> usize {
        if let Some(&index) = self.index.get(&(machine, id)) {
            return index;
        }
        let index = self.sequences.len();
        self.sequences.push(Sequence::new(machine, id));
        self.current.push(self.context.generations.len());
        self.context.generations.push(Generation { thread: None, has_first: false });
        self.index.insert((machine, id), index);
        self.add_machine(machine);
        index
    }

    pub(super) fn known_sequence(&self, machine: u32, id: u32) -> Option<&Sequence> {
        self.index.get(&(machine, id)).map(|&index| &self.sequences[index])
    }

    pub(super) fn generation(&self, sequence: usize) -> usize {
        self.current[sequence]
    }

    fn take(&mut self, sequence: usize, envelope: &Envelope<'_>) {
        let state = &mut self.sequences[sequence].state;
        if let Some(defaults) = envelope.defaults {
            state.set_defaults(defaults);
            // Events after new defaults may belong to another thread.
            let generation = self.context.generations[self.current[sequence]];
            self.current[sequence] = self.context.generations.len();
            self.context.generations.push(generation);
        }
        if state.valid {
            for data in &envelope.interned {
                state.intern(data, &mut self.context.tables.strings);
                state.keep_entries(data);
            }
        } else if !envelope.interned.is_empty() {
            self.context.stats.add("interned_data_tokenizer_errors", None, 1);
        }
        // A packet with a clock snapshot has no other payload.
        if let Some(snapshot) = envelope.snapshot {
            self.add_snapshot(snapshot, sequence, envelope.machine);
            return;
        }
        let machine = envelope.machine;
        let clock = envelope.clock.or(state.clock).map(|id| ClockKey::new(id, machine, sequence));
        let ticks = envelope.timestamp.filter(|&ticks| i64::try_from(ticks).is_ok());
        let time = match ticks {
            None => None,
            Some(ticks) => {
                let absolute = self.clocks.absolute(clock, ticks);
                if absolute < 0 {
                    self.refuse_time(envelope);
                    return;
                }
                let converted = self.clocks.machine_time(clock, absolute);
                if let Some(ts) = converted {
                    self.latest = self.latest.max(ts);
                    widen(&mut self.sequences[sequence].times, ts);
                }
                match (converted, clock) {
                    (Some(ts), _) => Some(Time::Known(ts)),
                    (None, Some(clock)) => Some(Time::Unknown(clock, absolute)),
                    (None, None) => Some(Time::Known(absolute)),
                }
            }
        };
        let Some((id, payload)) = envelope.payload else { return };
        match id {
            packet_field::TRACK_EVENT => {
                let Some(time) = time.filter(|_| envelope.sequence != 0) else {
                    self.context.stats.count("track_event_tokenizer_errors");
                    match time {
                        Some(_) => self.context.problems.count(Problem::EventWithoutSequence),
                        None => self.refuse_time(envelope),
                    }
                    return;
                };
                if self.read_event(payload, sequence, machine) {
                    self.push_event(machine, time);
                }
            }
            packet_field::TRACK_DESCRIPTOR => {
                self.describe(payload, sequence, machine, time, envelope.pid.map(i64::from));
            }
            packet_field::EXTENSION_DESCRIPTOR => {
                use esatto_schema::extension_descriptor::field;
                for set in Fields::new(payload).filter(|f| f.id == field::EXTENSION_SET) {
                    self.context.types.add_set(set.as_bytes());
                }
            }
            packet_field::FTRACE_EVENTS => self.add_ftrace(payload, sequence, machine),
            packet_field::REMOTE_CLOCK_SYNC if !self.context.origins.is_base(machine) => {
                self.add_clock_sync(payload, machine)
            }
            packet_field::PERF_SAMPLE => {
                if let Some(time) = time {
                    self.add_perf_sample(payload, sequence, machine, time);
                }
            }
            packet_field::PROFILE_PACKET => {
                let time = time.unwrap_or(Time::Known(self.latest));
                self.add_heap_profile(payload, sequence, machine, time);
            }
            packet_field::STREAMING_PROFILE_PACKET => self.add_stack_samples(payload, sequence, machine),
            packet_field::MODULE_SYMBOLS => self.keep_symbols(payload),
            packet_field::ANDROID_LOG => self.add_log(payload, machine),
            packet_field::PROCESS_TREE
            | packet_field::PROCESS_STATS
            | packet_field::SYS_STATS
            | packet_field::THREAD_DESCRIPTOR
            | packet_field::PROCESS_DESCRIPTOR
            | packet_field::TRIGGER
            | packet_field::CHROME_TRIGGER
            | packet_field::CONCURRENT_SESSION_EVENT
            | packet_field::CLONE_SNAPSHOT_TRIGGER => {
                if id == packet_field::THREAD_DESCRIPTOR {
                    self.note_thread(payload, sequence);
                }
                let time = time.unwrap_or(Time::Known(self.latest));
                self.push(machine, time, MAIN_QUEUE, |out| {
                    out.kind(Kind::Packet);
                    out.number(u64::from(id));
                    out.extend(payload);
                });
            }
            _ => {
                self.report(id, payload, machine, time, sequence);
                self.add_fact(id, payload, machine, time, sequence);
            }
        }
    }

    /// Counts an event without a time.
    fn refuse_time(&mut self, envelope: &Envelope<'_>) {
        if envelope.payload.is_some_and(|(id, _)| id == packet_field::TRACK_EVENT) {
            self.context.problems.count(Problem::EventWithoutTimestamp);
        }
    }

    /// Notes what the service, the probes and relays report about the recording.
    fn report(&mut self, id: u32, payload: &[u8], machine: u32, time: Option<Time>, sequence: usize) {
        match id {
            packet_field::FTRACE_STATS => {
                self.survey.ftrace_report.add_stats(self.sequences[sequence].id, payload);
            }
            packet_field::SYSTEM_INFO if machine != HOST => {
                self.machines.set_system(machine, read_system_info(payload));
            }
            _ => {
                let ts = match time {
                    Some(Time::Known(ts)) => Some(ts),
                    _ => None,
                };
                let ahead = self.machines.ahead(machine, self.clocks.trace_clock());
                self.survey.meta.add(id, payload, ts.zip(ahead).map(|(ts, ahead)| ts.saturating_sub(ahead)));
            }
        }
    }

    /// Notes the thread that a sequence describes, and the base of its times.
    fn note_thread(&mut self, payload: &[u8], sequence: usize) {
        use esatto_schema::thread_descriptor::field;
        let find = |id: u32| Fields::new(payload).filter(|f| f.id == id).last();
        if let (Some(pid), Some(tid)) = (find(field::PID), find(field::TID)) {
            let thread = Some((i64::from(pid.as_i32()), tid.as_i64()));
            self.context.generations[self.current[sequence]].thread = thread;
        }
        self.note_reference_time(payload, sequence);
    }

    /// Passes the event that was read to the sorter.
    fn push_event(&mut self, machine: u32, time: Time) {
        let Self { event, sorters, sort_memory, spill_file, pending, .. } = self;
        match time {
            Time::Known(ts) => {
                let sorter = sorter(sorters, machine, *sort_memory, spill_file);
                sorter.push(ts, MAIN_QUEUE, |out| event.put(out));
            }
            Time::Unknown(clock, absolute) => {
                let mut record = Vec::new();
                event.put(&mut record);
                pending.push(Pending { machine, clock, absolute, record });
            }
        }
    }

    /// Passes a record to the sorter.
    pub(super) fn push(&mut self, machine: u32, time: Time, queue: Queue, write: impl FnOnce(&mut Vec<u8>)) {
        match time {
            Time::Known(ts) => self.sorter(machine).push(ts, queue, write),
            Time::Unknown(clock, absolute) => {
                let mut record = Vec::new();
                write(&mut record);
                self.pending.push(Pending { machine, clock, absolute, record });
            }
        }
    }

    pub(super) fn sorter(&mut self, machine: u32) -> &mut Sorter {
        sorter(&mut self.sorters, machine, self.sort_memory, &self.spill_file)
    }

    fn describe(&mut self, payload: &[u8], sequence: usize, machine: u32, time: Option<Time>, pid: Option<i64>) {
        let context = &mut self.context;
        let slot = match context.event_tracks.describe(payload, machine, &mut context.tables.strings) {
            Ok(slot) => slot,
            Err(refused) => {
                context.stats.count("track_event_tokenizer_errors");
                context.problems.count(match refused {
                    Refused::Incomplete => Problem::DescriptorIncomplete,
                    Refused::Conflict => Problem::DescriptorConflict,
                });
                return;
            }
        };
        let entry = &mut context.event_tracks.slots[slot];
        entry.trusted_pid = pid.or(entry.trusted_pid);
        use super::event_tracks::Owner;
        let owner = context.event_tracks.slots[slot].description.as_ref().map(|description| description.owner);
        let is_valid = self.sequences[sequence].state.valid;
        if let (Some(Owner::Thread { pid, tid }), true) = (owner, is_valid) {
            context.generations[self.current[sequence]].thread = Some((pid, tid));
        }
        let time = time.unwrap_or(Time::Known(self.latest));
        self.push(machine, time, MAIN_QUEUE, |out| {
            out.kind(Kind::Descriptor);
            out.index(slot);
        });
    }

    fn add_snapshot(&mut self, bytes: &[u8], sequence: usize, machine: u32) {
        if self.is_pinned {
            let why = "the manifest pins the file, so it must have no clocks, and this is a snapshot of clocks";
            self.refusal = Some(format!("{why}; name the clock in `clocks`"));
            return;
        }
        let (readings, primary) = read_snapshot(bytes, sequence, machine);
        let primary = primary.filter(|_| self.context.origins.is_base(machine));
        if self.clocks.add(&readings, primary).is_err() {
            self.context.stats.count("invalid_clock_snapshots");
            self.context.problems.count(Problem::ClockSnapshotInvalid);
            return;
        }
        let trace_clock = ClockKey::of_machine(self.clocks.trace_clock(), machine);
        let own = readings.iter().find(|reading| Some(reading.clock) == trace_clock).map(|reading| reading.ticks);
        let ts = own.map(signed).or_else(|| {
            readings
                .iter()
                .take(MAX_TRIED_CLOCKS)
                .find_map(|reading| self.clocks.machine_time(Some(reading.clock), signed(reading.ticks)))
        });
        let Some(ts) = ts else { return };
        let snapshots = self.snapshots.entry(machine).or_default();
        let snapshot_id = *snapshots;
        *snapshots += 1;
        let machine_id = self.context.processes.machine_row(machine);
        for reading in &readings {
            let own = reading.clock.sequence.map_or(0, |sequence| i64::from(self.sequences[sequence].id) << 32);
            let name = clock_name(reading.clock.id).filter(|_| own == 0 && reading.clock.id <= 6);
            let clock_name = name.map(|name| self.context.symbol(name));
            self.context.tables.clock_snapshot.push(ClockSnapshotRow {
                ts,
                clock_id: own | i64::from(reading.clock.id),
                clock_name,
                clock_value: signed(reading.ticks.saturating_mul(reading.multiplier)),
                snapshot_id,
                machine_id,
            });
            self.context.snapshot_machines.push(machine);
        }
    }

    fn add_clock_sync(&mut self, bytes: &[u8], machine: u32) {
        use crate::clock_conversion::Reading;
        for values in self.machines.add_clock_sync(machine, bytes) {
            *self.snapshots.entry(machine).or_default() += 1;
            let reading = |(id, ticks)| {
                let clock = ClockKey::of_machine(id, machine)?;
                Some(Reading { clock, ticks, incremental: false, multiplier: 1 })
            };
            let readings: Option<Vec<Reading>> = values.into_iter().map(reading).collect();
            if readings.is_none_or(|readings| self.clocks.relate(&readings).is_err()) {
                self.context.stats.count("invalid_clock_snapshots");
                self.context.problems.count(Problem::ClockSnapshotInvalid);
            }
        }
    }

    /// Ends a file: converts the records whose clock was not known. Call it after the last packet.
    pub(crate) fn finish_file(&mut self) {
        for Pending { machine, clock, absolute, record } in core::mem::take(&mut self.pending) {
            match self.clocks.machine_time(Some(clock), absolute) {
                Some(ts) => self.sorter(machine).push(ts, MAIN_QUEUE, |out| out.extend(record)),
                None => {
                    self.context.stats.count("clock_sync_failure_no_path");
                    self.context.problems.count(Problem::ClockUnresolved);
                }
            }
        }
        if let Some(file) = self.files.last_mut() {
            file.clocks = core::mem::take(&mut self.clocks);
        }
    }

    /// Ends the first stage, after the last file.
    pub(crate) fn finish(&mut self) {
        self.resolve_symbols();
        if self.context.arg_keys.left_out > 0 {
            let number = i64::try_from(self.context.arg_keys.left_out).unwrap_or(i64::MAX);
            self.context.stats.add("arguments_left_out", None, number);
        }
    }
}
