//! Lanes of tracks that are shown as one.

use std::collections::BTreeSet;

use crate::string_table::Symbol;
use crate::tables::Row;
use hashbrown::HashMap;

/// Lanes that are searched for the place of a slice; if all of them have one, it gets a new lane.
const MAX_SEARCHED_LANES: usize = 1024;

/// Tracks that are shown as one. Slices of them may overlap, so they have lanes. A member takes its
/// last lane again if no other member has it, and otherwise the first lane without open slices.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// The lane of each member that had one last.
    of_member: HashMap<u64, usize>,
    /// Lanes of members without open slices.
    free: BTreeSet<usize>,
    /// Lanes of slices that are whole from the start, which are apart from others.
    timed: Vec<usize>,
}

#[derive(Debug)]
struct Lane {
    track: Row,
    member: u64,
    /// Number of slices that began and did not end.
    open: u64,
    /// End of the last slice that was whole from the start.
    end: i64,
}

impl Lanes {
    /// Returns the number of lanes.
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    pub(crate) fn first(&self) -> Option<Row> {
        self.lanes.first().map(|lane| lane.track)
    }

    /// Returns the tracks of all lanes.
    pub(crate) fn tracks(&self) -> impl Iterator<Item = Row> {
        self.lanes.iter().map(|lane| lane.track)
    }

    pub(crate) fn track(&self, lane: usize) -> Row {
        self.lanes[lane].track
    }

    /// Adds a lane for a member.
    pub(crate) fn push(&mut self, track: Row, member: u64) -> usize {
        let lane = self.lanes.len();
        self.lanes.push(Lane { track, member, open: 0, end: 0 });
        self.free.insert(lane);
        self.of_member.insert(member, lane);
        lane
    }

    /// Returns the lane for a slice of a member; `None` if a new lane is needed.
    pub(crate) fn take(&mut self, member: u64) -> Option<usize> {
        if let Some(&lane) = self.of_member.get(&member) {
            return Some(lane);
        }
        let lane = *self.free.first()?;
        self.of_member.remove(&self.lanes[lane].member);
        self.lanes[lane].member = member;
        self.of_member.insert(member, lane);
        Some(lane)
    }

    /// Notes the begin of a slice. If slices of the group cannot nest, a lane has one at most.
    pub(crate) fn begin(&mut self, lane: usize, nests: bool) {
        let open = &mut self.lanes[lane].open;
        *open = if nests { open.saturating_add(1) } else { 1 };
        self.free.remove(&lane);
    }

    /// Notes the end of a slice.
    pub(crate) fn end(&mut self, lane: usize) {
        let open = &mut self.lanes[lane].open;
        *open = open.saturating_sub(1);
        if *open == 0 {
            self.free.insert(lane);
        }
    }

    /// Returns the first lane for a slice that is whole from the start.
    pub(crate) fn take_timed(&self, ts: i64) -> Option<usize> {
        let mut searched = self.timed.iter().copied().take(MAX_SEARCHED_LANES);
        searched.find(|&lane| self.lanes[lane].end <= ts)
    }

    /// Adds a lane for slices that are whole from the start.
    pub(crate) fn push_timed(&mut self, track: Row) -> usize {
        let lane = self.lanes.len();
        self.lanes.push(Lane { track, member: 0, open: 0, end: 0 });
        self.timed.push(lane);
        lane
    }

    pub(crate) fn set_end(&mut self, lane: usize, end: i64) {
        self.lanes[lane].end = end;
    }
}

/// Kind of a slice, which decides its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneUse {
    Begin,
    End,
    Instant,
    /// A slice that is whole from the start, of no member.
    Timed {
        ts: i64,
        dur: i64,
    },
}

/// Owner of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct LaneGroup {
    pub(crate) kind: &'static str,
    pub(crate) machine: u32,
    pub(crate) upid: Option<Row>,
    pub(crate) scope: Option<Symbol>,
    pub(crate) name: Option<Symbol>,
    /// The name of its tracks, if it is no dimension.
    pub(crate) title: Option<Symbol>,
}

#[derive(Debug, Default)]
pub(crate) struct LaneGroups {
    pub(super) index: HashMap<LaneGroup, usize>,
    pub(super) groups: Vec<Lanes>,
    /// The first names of ids of the older form of events, by file, of a process or of all.
    names: HashMap<(usize, Option<Row>, u64), Option<Symbol>>,
    /// Slices of tracks whose slices cannot nest: how often they began, and when last.
    pub(super) repeated: HashMap<Row, (i64, i64)>,
}

impl LaneGroups {
    /// Returns the lanes of each group.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &Lanes> {
        self.groups.iter()
    }

    /// Returns the first name that was given for a key.
    pub(crate) fn first_name(&mut self, key: (usize, Option<Row>, u64), name: Option<Symbol>) -> Option<Symbol> {
        *self.names.entry(key).or_insert(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_ends_however_many_lanes_there_are() {
        let mut lanes = Lanes::default();
        for index in 0..MAX_SEARCHED_LANES {
            assert_eq!(lanes.take_timed(5), None);
            let lane = lanes.push_timed(Row::new(index));
            lanes.set_end(lane, 100);
        }
        // This one is free, but beyond those that are searched.
        let beyond = lanes.push_timed(Row::new(MAX_SEARCHED_LANES));
        lanes.set_end(beyond, 1);
        assert_eq!((lanes.take_timed(5), lanes.take_timed(100)), (None, Some(0)));
    }

    #[test]
    fn a_member_takes_its_lane_again_unless_another_has_it() {
        let mut lanes = Lanes::default();
        let row = |index| Row::new(index);
        assert_eq!(lanes.take(7), None);
        let first = lanes.push(row(0), 7);
        lanes.begin(first, true);
        assert_eq!(lanes.take(8), None);
        let second = lanes.push(row(1), 8);
        lanes.begin(second, true);
        lanes.end(first);
        lanes.end(second);
        assert_eq!(lanes.take(8), Some(second), "its own, though another one is free");
        lanes.begin(second, true);
        assert_eq!(lanes.take(9), Some(first), "the first free one");
        lanes.begin(first, true);
        assert_eq!(lanes.take(7), None, "its lane has another member");
    }
}
