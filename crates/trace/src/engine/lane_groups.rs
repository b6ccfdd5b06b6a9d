//! Groups of lanes of asynchronous slices that are not on tracks of track events.

use super::context::Context;
use super::lanes::{LaneGroup, LaneGroups, Lanes};
use super::slices::Begin;
use super::tracks::{Dimension, TrackSpec};
use crate::string_table::Symbol;
use crate::tables::{Arg, Row};

impl Context {
    fn lane_group(&mut self, key: LaneGroup) -> usize {
        // Both kinds of slices share the numbers of lanes.
        let key = LaneGroup { is_timed: false, ..key };
        let LaneGroups { index, groups, .. } = &mut self.lane_groups;
        *index.entry(key).or_insert_with(|| {
            groups.push(Lanes::default());
            groups.len() - 1
        })
    }

    /// Begins a slice, or adds a whole one, in a group. `source` is for a new track.
    pub(crate) fn begin_in_group(
        &mut self,
        key: LaneGroup,
        member: u64,
        mut begin: impl FnMut(Row) -> Begin,
        source: &[Arg],
        ts: i64,
    ) -> Option<Row> {
        let group = self.lane_group(key);
        let lanes = &mut self.lane_groups.groups[group];
        let chosen = if key.is_timed {
            lanes.choose_timed(&mut self.slices, &mut self.tables, &mut self.stats, ts)
        } else {
            lanes.choose(&mut self.slices, &mut self.tables, &mut self.stats, member, ts)
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
                let spec = TrackSpec { machine, ..TrackSpec::new(key.kind, key.title.or(key.name), &dimensions) };
                let (track, _) = self.tracks.intern(&mut self.tables, &spec);
                let mut source = source.to_vec();
                self.tables.track.source_arg_set_id[track.index()] = self.tables.args.add(&mut source);
                let lanes = &mut self.lane_groups.groups[group];
                if key.is_timed { lanes.push_timed(track) } else { lanes.push(track) }
            }
        };
        let track = self.lane_groups.groups[group].track(lane);
        let slice = self.slices.begin(&mut self.tables, &mut self.stats, begin(track));
        if !key.is_timed {
            self.lane_groups.groups[group].occupy(&self.slices, &self.tables, lane, member);
        }
        slice
    }

    /// Ends the slice of a member.
    pub(crate) fn end_in_group(
        &mut self,
        key: LaneGroup,
        member: u64,
        ts: i64,
        name: Option<Symbol>,
        category: Option<Symbol>,
    ) -> Option<Row> {
        let group = self.lane_group(key);
        let lane = self.lane_groups.groups[group].lane_of(member)?;
        let track = self.lane_groups.groups[group].track(lane);
        let slice = self.slices.end(&mut self.tables, &mut self.stats, track, ts, name, category);
        self.lane_groups.groups[group].note(&self.slices, &self.tables, lane);
        slice
    }
}
