//! Asynchronous events and instants of the older form.

use super::context::{Context, Generation};
use super::event_track_rows::EventTrack;
use super::event_tracks::Scope;
use super::lanes::LaneGroup;
use super::record::{LegacyRecord, TrackEventRecord};
use super::slices::{Begin, PENDING};
use super::tracks::{Dimension, TrackSpec};
use crate::tables::{Arg, ArgValue, Row};

/// Scope of an instant.
const SCOPE_GLOBAL: u8 = 1;
const SCOPE_PROCESS: u8 = 2;
/// Field of an id that is local to a process.
const LOCAL_ID: u8 = 10;

impl Context {
    /// Returns the thread that wrote an event of the older form.
    pub(super) fn writer(&mut self, scope: Scope, generation: Generation) -> (Option<Row>, Option<Row>) {
        let utid = match scope {
            Scope::Thread(utid) => Some(utid),
            Scope::Process(_) | Scope::Global => {
                generation.thread.map(|(pid, tid)| self.processes.thread_of(&mut self.tables, 0, tid, pid))
            }
        };
        let upid = match scope {
            Scope::Process(upid) => Some(upid),
            _ => utid.and_then(|utid| self.tables.thread.upid[utid.index()]),
        };
        (utid, upid)
    }

    /// Returns the track of an instant of the older form.
    pub(crate) fn instant_track(
        &mut self,
        track: EventTrack,
        scope: Scope,
        legacy: &LegacyRecord,
        args: &mut Vec<Arg>,
        generation: Generation,
    ) -> EventTrack {
        let (utid, upid) = self.writer(scope, generation);
        let spec = match (legacy.instant_scope, upid) {
            (SCOPE_GLOBAL, _) => TrackSpec::new("legacy_chrome_global_instants", None, &[]),
            (SCOPE_PROCESS, Some(upid)) => {
                return self.instant_track_of("chrome_process_instant", &[Dimension::Process(upid)], utid, args);
            }
            _ => return track,
        };
        self.instant_track_of(spec.kind, &[], utid, args)
    }

    fn instant_track_of(
        &mut self,
        kind: &'static str,
        dimensions: &[Dimension<'_>],
        utid: Option<Row>,
        args: &mut Vec<Arg>,
    ) -> EventTrack {
        let (track, is_new) = self.tracks.intern(&mut self.tables, &TrackSpec::new(kind, None, dimensions));
        if is_new {
            let mut source = vec![self.text_arg("source", "chrome")];
            self.tables.track.source_arg_set_id[track.index()] = self.tables.args.add(&mut source);
        }
        if let Some(utid) = utid {
            args.push(self.row_arg("legacy_event.passthrough_utid", utid));
        }
        EventTrack::Single(track)
    }

    pub(crate) fn async_event(
        &mut self,
        scope: Scope,
        ts: i64,
        event: &TrackEventRecord,
        legacy: &LegacyRecord,
        args: &mut Vec<Arg>,
        generation: Generation,
    ) -> Option<Row> {
        let (utid, upid) = self.writer(scope, generation);
        let is_local = legacy.id_field == LOCAL_ID;
        let is_old = matches!(legacy.phase, b'S' | b'T' | b'p' | b'F');
        let mut id_scope = if is_old { event.name } else { event.category };
        if let Some(own) = legacy.id_scope {
            let strings = &self.tables.strings;
            let category = event.category.map_or("", |category| strings.get(category));
            let text = format!("{category}:{}", strings.get(own));
            id_scope = Some(self.symbol(&text));
        }
        let owner = if is_local { upid } else { None };
        // The first event of an id names its track.
        let first = self.lane_groups.first_name((owner, id_scope, legacy.id), event.name);
        let kind = if is_local { "legacy_async_process_slice" } else { "legacy_async_global_slice" };
        let key = LaneGroup { kind, upid: owner, scope: id_scope, name: first, ..LaneGroup::default() };
        #[allow(clippy::cast_possible_wrap, reason = "the same bits")]
        let id = legacy.id as i64;
        args.push(self.arg("legacy_trace_source_id", ArgValue::Int(id)));
        if !args.iter().any(|arg| self.tables.strings.get(arg.key) == "legacy_event.passthrough_utid") {
            if let Some(utid) = utid {
                args.push(self.row_arg("legacy_event.passthrough_utid", utid));
            }
        }
        if is_old && legacy.phase != b'F' {
            let phase = char::from(legacy.phase).to_string();
            args.push(self.text_arg("legacy_event.phase", &phase));
        }
        if matches!(legacy.phase, b'e' | b'F') {
            let slice = self.end_in_group(key, legacy.id, ts, event.name, event.category)?;
            self.extend_slice(slice, args);
            return Some(slice);
        }
        let dur = if matches!(legacy.phase, b'b' | b'S') { PENDING } else { 0 };
        let mut source =
            vec![self.text_arg("source", "chrome"), self.arg("trace_id_is_process_scoped", ArgValue::Bool(is_local))];
        if let Some(upid) = upid {
            let number = i64::from(upid.number()) - 1;
            source.push(self.arg("upid", ArgValue::Int(number)));
        }
        if let Some(id_scope) = id_scope {
            source.push(self.arg("source_scope", ArgValue::Text(Some(id_scope))));
        }
        let args = self.tables.args.add(args);
        let (category, name) = (event.category, event.name);
        let begin = |track| Begin { track, ts, dur, category, name, args };
        self.begin_in_group(key, legacy.id, begin, &source, ts)
    }
}
