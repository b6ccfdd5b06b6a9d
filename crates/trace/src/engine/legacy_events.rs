//! Asynchronous events, instants, arrows and names of the older form.

use super::context::Context;
use super::event_track_rows::EventTrack;
use super::lanes::{LaneGroup, LaneUse};
use super::processes::NameSource;
use super::record::{LegacyRecord, TrackEventRecord};
use super::slices::{Begin, PENDING};
use super::track_events::{NoTrack, Owner};
use super::tracks::{Dimension, TrackSpec};
use crate::tables::{Arg, ArgValue, Row};

/// Field of an id of no declared scope.
const UNSCOPED_ID: u8 = 6;
/// Field of an id that is local to a process.
const LOCAL_ID: u8 = 10;

impl Context {
    /// Returns the track of instants of all processes or of one.
    pub(super) fn scoped_instant_track(&mut self, kind: &'static str, upid: Option<Row>) -> EventTrack {
        let dimensions: Vec<Dimension<'_>> = upid.map(Dimension::Process).into_iter().collect();
        let (track, is_new) = self.tracks.intern(&mut self.tables, &TrackSpec::new(kind, None, &dimensions));
        if is_new {
            let mut source = vec![self.text_arg("source", "chrome")];
            self.tables.track.source_arg_set_id[track.index()] = self.tables.args.add(&mut source);
        }
        EventTrack::Single(track)
    }

    /// Imports an asynchronous event of the older form.
    pub(super) fn async_event(
        &mut self,
        owner: Owner,
        (ts, machine): (i64, u32),
        event: &TrackEventRecord,
        legacy: &LegacyRecord,
        args: &mut Vec<Arg>,
    ) -> Result<Option<Row>, NoTrack> {
        let upid = owner.upid;
        let is_local = legacy.id_field == LOCAL_ID;
        if legacy.id_field == 0 || (is_local && upid.is_none()) {
            return Err(NoTrack);
        }
        let is_old = matches!(legacy.phase, b'S' | b'T' | b'p' | b'F');
        let mut id_scope = if is_old { event.name } else { event.category };
        if let Some(own) = legacy.id_scope {
            let strings = &self.tables.strings;
            let category = event.category.map_or("", |category| strings.get(category));
            let text = format!("{category}:{}", strings.get(own));
            id_scope = Some(self.symbol(&text));
        }
        let process = if is_local { upid } else { None };
        // The first event of an id names its track.
        let first = self.lane_groups.first_name((self.tracks.file, process, legacy.id), event.name);
        let kind = if is_local { "legacy_async_process_slice" } else { "legacy_async_global_slice" };
        let key = LaneGroup { kind, machine, upid: process, scope: id_scope, name: first, ..LaneGroup::default() };
        #[allow(clippy::cast_possible_wrap, reason = "the same bits")]
        let id = legacy.id as i64;
        args.push(self.arg("legacy_trace_source_id", ArgValue::Int(id)));
        if is_old && legacy.phase != b'F' {
            let phase = char::from(legacy.phase).to_string();
            args.push(self.text_arg("legacy_event.phase", &phase));
        }
        let mut source =
            vec![self.text_arg("source", "chrome"), self.arg("trace_id_is_process_scoped", ArgValue::Bool(is_local))];
        let number = upid.map_or(0, |upid| upid.number() - 1);
        source.push(self.arg("upid", ArgValue::Uint(u64::from(number))));
        source.push(self.arg("source_scope", ArgValue::Text(id_scope)));
        let lane_use = match legacy.phase {
            b'b' | b'S' => LaneUse::Begin,
            b'e' | b'T' => LaneUse::End,
            _ => LaneUse::Instant,
        };
        let track = self.lane_track(key, legacy.id, lane_use, &source, event.name);
        let (category, name) = (event.category, event.name);
        if matches!(legacy.phase, b'e' | b'F') {
            let slice = self.slices.end(&mut self.tables, &mut self.stats, track, ts, name, category);
            if let Some(slice) = slice {
                self.extend_slice(slice, args);
            }
            return Ok(slice);
        }
        let dur = if lane_use == LaneUse::Begin { PENDING } else { 0 };
        let args = self.tables.args.add(args);
        let begin = Begin { track, ts, dur, category, name, args };
        Ok(self.slices.begin(&mut self.tables, &mut self.stats, begin))
    }

    /// Imports an arrow of the older form: it links the slices that are open on its tracks.
    pub(super) fn flow_event(
        &mut self,
        machine: u32,
        track: Row,
        event: &TrackEventRecord,
        legacy: &LegacyRecord,
    ) -> Result<(), NoTrack> {
        if legacy.id_field != UNSCOPED_ID {
            self.stats.count("flow_invalid_id");
            return Err(NoTrack);
        }
        let id = self.flows.number_of(legacy.id, event.category, event.name);
        if legacy.phase == b'f' && !legacy.bind_to_enclosing {
            self.slices.await_flow(track, machine, id);
            return Ok(());
        }
        let Some(slice) = self.slices.top(track) else {
            self.stats.count("flow_no_enclosing_slice");
            return Ok(());
        };
        match legacy.phase {
            b's' => self.flows.begin(machine, id, slice),
            b't' => self.flows.continue_open(&mut self.tables, machine, id, slice),
            _ => self.flows.end(&mut self.tables, machine, id, slice, false),
        }
        Ok(())
    }

    /// Ends the flows that waited for the next slice of a track.
    pub(crate) fn end_awaited_flows(&mut self) {
        for (machine, id, slice) in self.slices.take_arrived() {
            self.flows.end(&mut self.tables, machine, id, slice, false);
        }
    }

    /// Imports the name of a thread or of a process, which an event of the older form tells.
    pub(super) fn metadata_event(&mut self, event: &TrackEventRecord, owner: Owner) -> Result<(), NoTrack> {
        let kind = event.name.map(|name| self.tables.strings.get(name)).ok_or(NoTrack)?;
        let is_thread = kind == "thread_name";
        if !is_thread && kind != "process_name" {
            return if owner.utid.is_some() { Ok(()) } else { Err(NoTrack) };
        }
        let is_annotation = |arg: &&Arg| self.tables.strings.get(arg.flat_key).starts_with("debug.");
        let Some(first) = event.args.iter().find(is_annotation) else { return Err(NoTrack) };
        let ArgValue::Text(Some(name)) = first.value else { return Ok(()) };
        if self.tables.strings.get(name).is_empty() {
            return Ok(());
        }
        if is_thread {
            let utid = owner.utid.ok_or(NoTrack)?;
            self.processes.name_thread(&mut self.tables, utid, name, NameSource::ThreadType);
        } else {
            let known = &mut self.tables.process.name[owner.upid.ok_or(NoTrack)?.index()];
            *known = known.or(Some(name));
        }
        Ok(())
    }
}
