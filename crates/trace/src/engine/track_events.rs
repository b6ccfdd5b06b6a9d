//! Import of track events in the order of time.

use super::context::{Context, Generation};
use super::event_details::ImportedEvent;
use super::event_track_rows::EventTrack;
use super::event_tracks::Scope;
use super::record::{LegacyRecord, TrackEventRecord};
use super::slices::{Begin, PENDING};
use crate::event_type::EventType;
use crate::problems::Problem;
use crate::tables::{Arg, LogRow, Row};

const BEGIN: u8 = 1;
const END: u8 = 2;
const INSTANT: u8 = 3;
const COUNTER: u8 = 4;

impl Context {
    /// Imports an event. Its machine is that of its track.
    pub(crate) fn import_track_event(&mut self, ts: i64, machine: u32, event: &TrackEventRecord) {
        let track = self.track_of_event(machine, event);
        let slice = match track {
            Some((track, scope)) => self.import_event_on_track(ts, machine, event, (track, scope)),
            None => {
                self.stats.count("track_event_parser_errors");
                self.problems.count(Problem::MissingAncestor);
                None
            }
        };
        if let Some(detail) = event.detail {
            let track = track.and_then(|(track, _)| self.row_of(track));
            let ends = self.details.list[detail].event_type() == EventType::SliceEnd;
            let slice = slice.filter(|_| !ends);
            self.details.imported.push(ImportedEvent { detail, ts, track, slice });
        }
    }

    /// Returns the row of a track, or of its first lane.
    fn row_of(&mut self, track: EventTrack) -> Option<Row> {
        match track {
            EventTrack::Single(row) => Some(row),
            EventTrack::Lanes { group, .. } => self.lanes(group).first(),
        }
    }

    /// Returns the track of an event, and who it belongs to; `None` if an ancestor of the track is
    /// missing.
    fn track_of_event(&mut self, machine: u32, event: &TrackEventRecord) -> Option<(EventTrack, Scope)> {
        let generation = *self.generations.get(event.sequence)?;
        let own_thread = generation.thread;
        if let (false, Some((pid, tid))) = (event.has_track, own_thread) {
            let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
            return Some((EventTrack::Single(self.tracks.thread(&mut self.tables, utid)), Scope::Thread(utid)));
        }
        // Most events of the older form need a thread.
        let needs_thread = event.action == 0 && event.legacy.is_some_and(LegacyRecord::needs_thread);
        let resolved = self.resolve_track(event.track);
        if needs_thread && own_thread.is_none() && !matches!(resolved, Some((Scope::Thread(_), _))) {
            return None;
        }
        let first_name = if event.action == COUNTER { None } else { event.name };
        let track = self.event_track(event.track, first_name, generation.has_first)?;
        let scope = self.resolve_track(event.track).map_or(Scope::Global, |(scope, _)| scope);
        Some((track, scope))
    }

    /// Imports an event. Returns the slice that it began or ended.
    fn import_event_on_track(
        &mut self,
        ts: i64,
        machine: u32,
        event: &TrackEventRecord,
        (track, scope): (EventTrack, Scope),
    ) -> Option<Row> {
        let generation = *self.generations.get(event.sequence)?;
        let own_thread = generation.thread;
        let mut args = event.args.clone();
        let is_default = self.event_tracks.slots.get(event.track).is_none_or(|slot| slot.uuid == 0);
        if let (false, Some((pid, tid)), false) = (matches!(scope, Scope::Thread(_)), own_thread, is_default) {
            let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
            args.push(self.row_arg("legacy_event.passthrough_utid", utid));
        }
        let thread_time = self.add_extra_counters(ts, event, generation);
        if let Some(log) = event.log {
            let utid = match scope {
                Scope::Thread(utid) => Some(utid),
                _ => own_thread.map(|(pid, tid)| self.processes.thread_of(&mut self.tables, machine, tid, pid)),
            };
            self.tables.android_logs.push(LogRow { ts, utid, prio: log.priority, tag: log.tag, msg: log.body });
        }
        let slice = match (event.action, event.legacy) {
            (COUNTER, _) => {
                self.count(track, ts, event.value, &mut args);
                None
            }
            (BEGIN, _) => self.begin_event(track, ts, PENDING, event, &mut args, generation),
            (INSTANT, _) => self.begin_event(track, ts, 0, event, &mut args, generation),
            (END, _) => self.end_event(track, ts, event, &args),
            (_, Some(legacy)) => self.legacy_event((track, scope), ts, event, &legacy, &mut args, generation),
            _ => None,
        };
        let slice = slice?;
        if let (Some(time), true) = (thread_time, matches!(scope, Scope::Thread(_))) {
            self.set_thread_time(slice, time);
        }
        for &id in &event.flows {
            self.flows.step(&mut self.tables, machine, id, slice);
        }
        for &id in &event.terminating {
            self.flows.end(&mut self.tables, machine, id, slice, true);
        }
        if let Some((legacy, id)) = event.legacy.and_then(|legacy| Some((legacy, legacy.bind_id?))) {
            match legacy.direction {
                1 => self.flows.end(&mut self.tables, machine, id, slice, false),
                2 | 3 => self.flows.step(&mut self.tables, machine, id, slice),
                _ => {}
            }
        }
        Some(slice)
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
                let (lane, track) = self.lane_for_begin(group, member, ts, generation.has_first);
                let begin = Begin { track, ts, dur, category, name, args };
                let slice = self.slices.begin(&mut self.tables, &mut self.stats, begin);
                self.occupy_lane(group, lane, member);
                slice
            }
        }
    }

    fn end_event(&mut self, track: EventTrack, ts: i64, event: &TrackEventRecord, args: &[Arg]) -> Option<Row> {
        let (category, name) = (event.category, event.name);
        let slice = match track {
            EventTrack::Single(track) => self.slices.end(&mut self.tables, &mut self.stats, track, ts, name, category),
            EventTrack::Lanes { group, member } => self.lanes(group).lane_of(member).and_then(|lane| {
                let track = self.lanes(group).track(lane);
                let slice = self.slices.end(&mut self.tables, &mut self.stats, track, ts, name, category);
                self.note_lane(group, lane);
                slice
            }),
        };
        let Some(slice) = slice else {
            self.problems.count(Problem::UnmatchedEnd);
            return None;
        };
        self.extend_slice(slice, args);
        Some(slice)
    }

    fn legacy_event(
        &mut self,
        (track, scope): (EventTrack, Scope),
        ts: i64,
        event: &TrackEventRecord,
        legacy: &LegacyRecord,
        args: &mut Vec<Arg>,
        generation: Generation,
    ) -> Option<Row> {
        match legacy.phase {
            b'B' => self.begin_event(track, ts, PENDING, event, args, generation),
            b'E' => self.end_event(track, ts, event, args),
            b'X' => {
                let dur = legacy.duration_us.max(0).saturating_mul(1000);
                self.begin_event(track, ts, dur, event, args, generation)
            }
            b'I' | b'i' | b'R' => {
                let track = self.instant_track(track, scope, legacy, args, generation);
                if legacy.phase == b'R' {
                    args.push(self.text_arg("legacy_event.phase", "R"));
                }
                self.begin_event(track, ts, 0, event, args, generation)
            }
            b'b' | b'e' | b'n' | b'S' | b'T' | b'p' | b'F' => {
                self.async_event(scope, ts, event, legacy, args, generation)
            }
            _ => {
                self.problems.count(Problem::LegacyPhase);
                None
            }
        }
    }
}
