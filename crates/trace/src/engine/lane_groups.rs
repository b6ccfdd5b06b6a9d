//! Groups of lanes of asynchronous slices that are not on tracks of track events.

use super::context::Context;
use super::lanes::{LaneGroup, LaneGroups, LaneUse, Lanes};
use super::slices::Begin;
use super::tracks::{Dimension, TrackSpec};
use crate::string_table::Symbol;
use crate::tables::{Arg, ArgValue, Row};

/// Kind of groups whose slices cannot nest: a second begin is no slice.
const UNNESTABLE: &str = "atrace_async_slice";

impl Context {
    fn lane_group(&mut self, key: LaneGroup) -> usize {
        let LaneGroups { index, groups, .. } = &mut self.lane_groups;
        *index.entry(key).or_insert_with(|| {
            groups.push(Lanes::default());
            groups.len() - 1
        })
    }

    /// Returns the track for a slice of a member. `source` is for a new track, whose name may be
    /// that of the event.
    pub(super) fn lane_track(
        &mut self,
        key: LaneGroup,
        member: u64,
        lane_use: LaneUse,
        source: &[Arg],
        title: Option<Symbol>,
    ) -> Row {
        let group = self.lane_group(key);
        let lanes = &mut self.lane_groups.groups[group];
        let chosen = match lane_use {
            LaneUse::Timed { ts, .. } => lanes.take_timed(ts),
            _ => lanes.take(member),
        };
        let lane = match chosen {
            Some(lane) => lane,
            None => {
                let number = i64::try_from(self.lane_groups.groups[group].len()).unwrap_or(i64::MAX);
                let dimensions: Vec<Dimension<'_>> = (key.upid.map(Dimension::Process).into_iter())
                    .chain(key.scope.map(|scope| Dimension::Symbol("scope", scope)))
                    .chain(key.name.map(|name| Dimension::Symbol("name", name)))
                    .chain([Dimension::Number("track_compressor_idx", number)])
                    .collect();
                let machine = self.processes.machine_row(key.machine);
                let title = key.title.or(title).or(key.name);
                let spec = TrackSpec { machine, ..TrackSpec::new(key.kind, title, &dimensions) };
                let (track, _) = self.tracks.intern(&mut self.tables, &spec);
                let mut source = source.to_vec();
                self.tables.track.source_arg_set_id[track.index()] = self.tables.args.add(&mut source);
                let lanes = &mut self.lane_groups.groups[group];
                match lane_use {
                    LaneUse::Timed { .. } => lanes.push_timed(track),
                    _ => lanes.push(track, member),
                }
            }
        };
        let lanes = &mut self.lane_groups.groups[group];
        match lane_use {
            LaneUse::Begin => lanes.begin(lane, key.kind != UNNESTABLE),
            LaneUse::End => lanes.end(lane),
            LaneUse::Instant => {
                lanes.begin(lane, true);
                lanes.end(lane);
            }
            LaneUse::Timed { ts, dur } => lanes.set_end(lane, ts.saturating_add(dur)),
        }
        lanes.track(lane)
    }

    /// Begins a slice, or adds a whole one, in a group.
    pub(crate) fn begin_in_group(
        &mut self,
        key: LaneGroup,
        member: u64,
        lane_use: LaneUse,
        begin: impl FnOnce(Row) -> Begin,
    ) -> Option<Row> {
        let track = self.lane_track(key, member, lane_use, &[], None);
        let begin = begin(track);
        if key.kind == UNNESTABLE {
            let repeated = self.lane_groups.repeated.entry(track).or_default();
            *repeated = (repeated.0.saturating_add(1), begin.ts);
            if self.slices.top(track).is_some() {
                return None;
            }
        }
        self.slices.begin(&mut self.tables, &mut self.stats, begin)
    }

    /// Ends the slice of a member.
    pub(crate) fn end_in_group(&mut self, key: LaneGroup, member: u64, ts: i64) -> Option<Row> {
        let track = self.lane_track(key, member, LaneUse::End, &[], None);
        let slice = self.slices.end(&mut self.tables, &mut self.stats, track, ts, None, None)?;
        if let Some(&(count, last)) = self.lane_groups.repeated.get(&track) {
            let args = [
                self.arg("legacy_unnestable_begin_count", ArgValue::Int(count)),
                self.arg("legacy_unnestable_last_begin_ts", ArgValue::Int(last)),
            ];
            self.extend_slice(slice, &args);
        }
        Some(slice)
    }
}
