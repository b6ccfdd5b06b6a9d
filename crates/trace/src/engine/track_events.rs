//! Import of track events in the order of time.

use super::context::{Context, Generation, WRITER_KEY};
use super::event_details::ImportedEvent;
use super::event_track_rows::EventTrack;
use super::event_tracks::Scope;
use super::lanes::LaneUse;
use super::proto_args::ProtoArgs;
use super::record::{LegacyRecord, TrackEventRecord};
use super::slices::{Begin, PENDING};
use crate::event_type::EventType;
use crate::packet_sequence::State;
use crate::problems::Problem;
use crate::tables::{Arg, LogRow, Row};

/// Scopes of instants of the older form.
const SCOPE_GLOBAL: u8 = 1;
const SCOPE_PROCESS: u8 = 2;

/// An event has no usable track.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoTrack;

/// Returns the number of a thread whose own number is only known in its process.
fn synthetic_tid(tid: i64, pid: i64) -> i64 {
    (pid << 32) | tid
}

const BEGIN: u8 = 1;
const END: u8 = 2;
const INSTANT: u8 = 3;
const COUNTER: u8 = 4;
const STATE: u8 = 5;

/// Thread and process that an event belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Owner {
    pub(super) utid: Option<Row>,
    pub(super) upid: Option<Row>,
    /// The thread that wrote an event of no thread.
    writer: Option<Row>,
    /// True if the event is on the track of its thread, and names no other.
    is_on_thread: bool,
}

impl Context {
    /// Imports an event. Its machine is that of its track.
    pub(crate) fn import_track_event(&mut self, ts: i64, machine: u32, event: &TrackEventRecord) {
        let Some(&generation) = self.generations.get(event.sequence) else { return };
        let legacy = event.legacy.unwrap_or_default();
        let owner = self.event_owner(machine, event, &legacy, generation);
        let slice = match owner {
            Some(owner) => {
                let mut args = core::mem::take(&mut self.spare_args);
                args.clone_from(&event.args);
                let slice = self.import_event_of(owner, (ts, machine), event, legacy, generation, &mut args);
                self.spare_args = args;
                slice
            }
            None => {
                self.stats.count("track_event_parser_errors");
                self.problems.count(Problem::MissingAncestor);
                None
            }
        };
        if let Some(detail) = event.detail {
            let track = owner.and_then(|owner| self.own_track(event, owner, generation).ok());
            let track = track.and_then(|track| self.row_of(track));
            let ends = self.details.list[detail].event_type() == EventType::SliceEnd;
            let slice = slice.filter(|_| !ends);
            self.details.imported.push(ImportedEvent { detail, ts, track, slice });
        }
    }

    /// Returns the row of a track, or of its first lane.
    fn row_of(&self, track: EventTrack) -> Option<Row> {
        match track {
            EventTrack::Single(row) => Some(row),
            EventTrack::Lanes { group, .. } => self.event_tracks.groups[group].lanes.first(),
        }
    }

    /// Imports an event. Returns the slice that it began or ended. `args` are its arguments, to
    /// which others are added.
    fn import_event_of(
        &mut self,
        mut owner: Owner,
        (ts, machine): (i64, u32),
        event: &TrackEventRecord,
        legacy: LegacyRecord,
        generation: Generation,
        args: &mut Vec<Arg>,
    ) -> Option<Row> {
        let has_owner = match legacy.phase {
            b'b' | b'e' | b'n' | b'S' | b'T' | b'p' | b'F' => {
                owner.writer = owner.utid;
                true
            }
            b'i' | b'I' => match legacy.instant_scope {
                SCOPE_GLOBAL | SCOPE_PROCESS => {
                    owner.writer = owner.utid.take();
                    legacy.instant_scope == SCOPE_GLOBAL || owner.upid.is_some()
                }
                _ => owner.utid.is_some(),
            },
            _ => true,
        };
        if !has_owner {
            self.stats.count("track_event_parser_errors");
            return None;
        }
        self.add_late_arguments(event, args);
        if let Some(writer) = owner.writer {
            let key = self.symbol(WRITER_KEY);
            if args.iter().all(|arg| arg.key != key) {
                args.push(self.row_arg(WRITER_KEY, writer));
            }
        }
        let thread_time = self.add_extra_counters(ts, event, generation);
        if let (Some(log), Some(utid)) = (event.log, owner.utid) {
            let row = LogRow { ts, utid: Some(utid), prio: log.priority, tag: log.tag, msg: log.body };
            self.tables.android_logs.push(row);
        }
        let imported = self.import_phase((ts, machine), event, &legacy, owner, args, generation);
        let Ok(slice) = imported else {
            self.stats.count("track_event_parser_errors");
            return None;
        };
        let slice = slice?;
        if let (Some(time), true) = (thread_time, owner.utid.is_some()) {
            self.set_thread_time(slice, time);
        }
        if let Some(id) = legacy.bind_id {
            match legacy.direction {
                1 => self.flows.end(&mut self.tables, machine, id, slice, false),
                2 => self.flows.begin(machine, id, slice),
                3 => self.flows.continue_open(&mut self.tables, machine, id, slice),
                _ => {}
            }
        }
        for &id in &event.flows {
            self.flows.step(&mut self.tables, machine, id, slice);
        }
        for &id in &event.terminating {
            self.flows.end(&mut self.tables, machine, id, slice, true);
        }
        Some(slice)
    }

    /// Adds the arguments of fields whose types came after them in the trace.
    fn add_late_arguments(&mut self, event: &TrackEventRecord, args: &mut Vec<Arg>) {
        if event.late.is_empty() {
            return;
        }
        let state = State::default();
        let (keys, strings) = (&mut self.arg_keys, &mut self.tables.strings);
        let types = &self.types;
        let mut out =
            ProtoArgs { types, state: &state, keys, strings, args, late: None, depth: 0, native: None, errors: 0 };
        out.add_late(&event.late);
        if out.errors > 0 {
            let errors = out.errors;
            self.stats.add("track_event_parser_errors", None, errors);
        }
    }

    /// Finds thread and process of an event. `None` if its track cannot be resolved.
    fn event_owner(
        &mut self,
        machine: u32,
        event: &TrackEventRecord,
        legacy: &LegacyRecord,
        generation: Generation,
    ) -> Option<Owner> {
        let own = generation.thread;
        let has_override = legacy.pid.is_some() || (legacy.tid.is_some() && own.is_some());
        if !event.has_track && (own.is_some() || has_override) {
            let (mut pid, mut tid) = own.unwrap_or_default();
            let is_synthetic = tid >> 32 != 0;
            if let Some(other) = legacy.pid {
                // Threads of other processes that are not named are one thread of each.
                (pid, tid) = (other, synthetic_tid(-1, other));
            }
            if let Some(other) = legacy.tid {
                tid = if is_synthetic { synthetic_tid(other, pid) } else { other };
            }
            if pid == 0 || tid == 0 {
                return None;
            }
            let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
            let upid = self.tables.thread.upid[utid.index()];
            return Some(Owner { utid: Some(utid), upid, writer: None, is_on_thread: true });
        }
        if self.event_tracks.slots.get(event.track).is_none_or(|slot| slot.uuid == 0) {
            return Some(Owner::default());
        }
        let (scope, _) = self.resolve_track(event.track)?;
        Some(match (scope, own) {
            (Scope::Thread(utid), _) => {
                Owner { utid: Some(utid), upid: self.tables.thread.upid[utid.index()], ..Owner::default() }
            }
            (Scope::Process(upid), None) => Owner { upid: Some(upid), ..Owner::default() },
            (Scope::Process(upid), Some((pid, tid))) => {
                let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
                let writer = (self.tables.thread.upid[utid.index()] == Some(upid)).then_some(utid);
                Owner { upid: Some(upid), writer, ..Owner::default() }
            }
            (Scope::Global, Some((pid, tid))) => {
                let writer = self.processes.thread_of(&mut self.tables, machine, tid, pid);
                Owner { writer: Some(writer), ..Owner::default() }
            }
            (Scope::Global, None) => Owner::default(),
        })
    }

    /// Returns the track that an event names, or that of its thread.
    pub(super) fn own_track(
        &mut self,
        event: &TrackEventRecord,
        owner: Owner,
        generation: Generation,
    ) -> Result<EventTrack, NoTrack> {
        if let (true, Some(utid)) = (owner.is_on_thread, owner.utid) {
            return Ok(EventTrack::Single(self.tracks.thread(&mut self.tables, utid)));
        }
        let first_name = if event.action == COUNTER { None } else { event.name };
        self.event_track(event.track, first_name, generation.has_first).ok_or(NoTrack)
    }

    fn import_phase(
        &mut self,
        (ts, machine): (i64, u32),
        event: &TrackEventRecord,
        legacy: &LegacyRecord,
        owner: Owner,
        args: &mut Vec<Arg>,
        generation: Generation,
    ) -> Result<Option<Row>, NoTrack> {
        if event.action == COUNTER {
            let track = self.own_track(event, owner, generation)?;
            self.count(track, ts, event.value, args);
            return Ok(None);
        }
        if event.action == STATE {
            let EventTrack::Single(track) = self.own_track(event, owner, generation)? else { return Err(NoTrack) };
            self.set_state(track, ts, (event.category, event.name), args);
            return Ok(None);
        }
        let phase = match (legacy.phase, event.action) {
            (0, BEGIN) => b'B',
            (0, END) => b'E',
            (0, INSTANT) => b'i',
            (phase, _) => phase,
        };
        let has_phase = legacy.phase != 0;
        if owner.utid.is_none() && has_phase && matches!(phase, b'B' | b'E' | b'X') {
            return Err(NoTrack);
        }
        match phase {
            b'B' => {
                let track = self.own_track(event, owner, generation)?;
                Ok(self.begin_event(track, ts, PENDING, event, args, generation))
            }
            b'E' => {
                let track = self.own_track(event, owner, generation)?;
                Ok(self.end_event(track, ts, event, args, generation))
            }
            b'X' => {
                let dur = legacy.duration_us.checked_mul(1000).filter(|dur| *dur >= 0).ok_or(NoTrack)?;
                let track @ EventTrack::Single(_) = self.own_track(event, owner, generation)? else {
                    return Err(NoTrack);
                };
                Ok(self.begin_event(track, ts, dur, event, args, generation))
            }
            b'i' | b'I' | b'R' => {
                let track = match (phase, legacy.instant_scope, owner.upid) {
                    (b'i' | b'I', SCOPE_GLOBAL, _) => self.scoped_instant_track("legacy_chrome_global_instants", None),
                    (b'i' | b'I', SCOPE_PROCESS, Some(upid)) => {
                        self.scoped_instant_track("chrome_process_instant", Some(upid))
                    }
                    _ => self.own_track(event, owner, generation)?,
                };
                if phase == b'R' {
                    args.push(self.text_arg("legacy_event.phase", "R"));
                }
                Ok(self.begin_event(track, ts, 0, event, args, generation))
            }
            b'b' | b'e' | b'n' | b'S' | b'T' | b'p' | b'F' => {
                self.async_event(owner, (ts, machine), event, legacy, args)
            }
            b's' | b't' | b'f' => {
                let EventTrack::Single(track) = self.own_track(event, owner, generation)? else { return Err(NoTrack) };
                self.flow_event(machine, track, event, legacy)?;
                Ok(None)
            }
            b'M' => {
                self.metadata_event(event, owner)?;
                Ok(None)
            }
            // Other phases have no meaning beside the export as JSON.
            _ => {
                self.problems.count(Problem::LegacyPhase);
                if owner.utid.is_none() { Err(NoTrack) } else { Ok(None) }
            }
        }
    }

    /// Notes the processor time at the begin or at the end of a slice.
    fn set_thread_time(&mut self, slice: Row, time: i64) {
        use crate::tables::Column as _;
        let table = &mut self.tables.slice;
        match table.thread_ts.cell(slice.index()) {
            None if table.dur.get(slice.index()) == PENDING => table.thread_ts.set(slice, time),
            None => {}
            Some(begin) => table.thread_dur.set(slice, time.saturating_sub(begin)),
        }
    }

    fn count(&mut self, track: EventTrack, ts: i64, value: f64, args: &mut Vec<Arg>) {
        let EventTrack::Single(track) = track else { return };
        let row = self.add_counter(track, ts, value);
        if let Some(set) = self.tables.args.add(args) {
            self.tables.counter.arg_set_id.set(row, set);
        }
    }

    /// Adds the values of further counters. Returns the processor time of the thread.
    fn add_extra_counters(&mut self, ts: i64, event: &TrackEventRecord, generation: Generation) -> Option<i64> {
        let mut thread_time = None;
        for &(slot, value) in &event.extra {
            let Some(EventTrack::Single(track)) = self.event_track(slot, None, generation.has_first) else { continue };
            self.add_counter(track, ts, value);
            let description = self.event_tracks.slots[slot].description.as_ref();
            if description.and_then(|found| found.counter.as_ref()).is_some_and(|counter| counter.kind == 1) {
                #[allow(clippy::cast_possible_truncation, reason = "saturates, and times are integers")]
                let time = value as i64;
                thread_time = Some(time);
            }
        }
        thread_time
    }

    fn begin_event(
        &mut self,
        track: EventTrack,
        ts: i64,
        dur: i64,
        event: &TrackEventRecord,
        args: &mut Vec<Arg>,
        generation: Generation,
    ) -> Option<Row> {
        let args = self.tables.args.add(args);
        let (category, name) = (event.category, event.name);
        match track {
            EventTrack::Single(track) => {
                let begin = Begin { track, ts, dur, category, name, args };
                self.slices.begin(&mut self.tables, &mut self.stats, begin)
            }
            EventTrack::Lanes { group, member } => {
                let lane_use = if dur == PENDING { LaneUse::Begin } else { LaneUse::Instant };
                let track = self.member_track(group, member, lane_use, generation.has_first);
                let begin = Begin { track, ts, dur, category, name, args };
                self.slices.begin(&mut self.tables, &mut self.stats, begin)
            }
        }
    }

    fn end_event(
        &mut self,
        track: EventTrack,
        ts: i64,
        event: &TrackEventRecord,
        args: &[Arg],
        generation: Generation,
    ) -> Option<Row> {
        let (category, name) = (event.category, event.name);
        let track = match track {
            EventTrack::Single(track) => track,
            EventTrack::Lanes { group, member } => self.member_track(group, member, LaneUse::End, generation.has_first),
        };
        let slice = self.slices.end(&mut self.tables, &mut self.stats, track, ts, name, category);
        let Some(slice) = slice else {
            self.problems.count(Problem::UnmatchedEnd);
            return None;
        };
        self.extend_slice(slice, args);
        Some(slice)
    }
}
