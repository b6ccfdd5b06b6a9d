//! Lanes of tracks that are shown as one.

use core::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use super::slices::{PENDING, Slices};
use super::stats::Stats;
use crate::string_table::Symbol;
use crate::tables::{Row, Tables};

/// Tracks that are shown as one. Slices of them may overlap, so they have lanes. A member keeps its
/// lane while it has an open slice, and otherwise takes the first free one.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    /// The track of each lane, and the member that has an open slice in it.
    lanes: Vec<(Row, u64)>,
    /// Lanes with open slices, by member.
    occupied: HashMap<u64, usize>,
    free: BTreeSet<usize>,
    /// Lanes of slices that have no begin and end of their own, which are apart from others.
    timed: Vec<usize>,
    /// Ends of innermost slices whose end was known from their begin, with their lanes. Some
    /// entries are outdated.
    ends: BinaryHeap<Reverse<(i64, usize)>>,
}

impl Lanes {
    /// Returns the number of lanes.
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    pub(crate) fn first(&self) -> Option<Row> {
        self.lanes.first().map(|(track, _)| *track)
    }

    /// Returns the tracks of all lanes.
    pub(crate) fn tracks(&self) -> impl Iterator<Item = Row> {
        self.lanes.iter().map(|(track, _)| *track)
    }

    /// Adds a lane.
    pub(crate) fn push(&mut self, track: Row) -> usize {
        self.lanes.push((track, 0));
        self.free.insert(self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    /// Returns the first lane for slices that are whole from the start. If there is none, the next
    /// lane that is added becomes one.
    pub(crate) fn choose_timed(
        &mut self,
        slices: &mut Slices,
        tables: &mut Tables,
        stats: &mut Stats,
        ts: i64,
    ) -> Option<usize> {
        for &lane in &self.timed {
            slices.expire(tables, stats, self.lanes[lane].0, ts, PENDING);
        }
        self.timed.iter().copied().find(|&lane| slices.top(self.lanes[lane].0).is_none())
    }

    /// Adds a lane for slices that are whole from the start.
    pub(crate) fn push_timed(&mut self, track: Row) -> usize {
        self.lanes.push((track, 0));
        self.timed.push(self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    pub(crate) fn track(&self, lane: usize) -> Row {
        self.lanes[lane].0
    }

    /// Returns the lane of a member that has an open slice.
    pub(crate) fn lane_of(&self, member: u64) -> Option<usize> {
        self.occupied.get(&member).copied()
    }

    /// Returns the lane for the next slice of a member; `None` if a new lane is needed.
    pub(crate) fn choose(
        &mut self,
        slices: &mut Slices,
        tables: &mut Tables,
        stats: &mut Stats,
        member: u64,
        ts: i64,
    ) -> Option<usize> {
        while let Some(&Reverse((_, lane))) = self.ends.peek().filter(|Reverse((end, _))| *end <= ts) {
            self.ends.pop();
            slices.expire(tables, stats, self.lanes[lane].0, ts, PENDING);
            self.note(slices, tables, lane);
        }
        self.lane_of(member).or_else(|| self.free.first().copied())
    }

    /// Notes that a member has begun a slice in a lane.
    pub(crate) fn occupy(&mut self, slices: &Slices, tables: &Tables, lane: usize, member: u64) {
        let top = slices.top(self.lanes[lane].0);
        // Instants do not keep a lane.
        if top.is_none_or(|top| tables.slice.dur.get(top.index()) == 0) {
            return;
        }
        self.lanes[lane].1 = member;
        self.occupied.insert(member, lane);
        self.free.remove(&lane);
        self.note(slices, tables, lane);
    }

    /// Notes that the innermost slice of a lane has changed.
    pub(crate) fn note(&mut self, slices: &Slices, tables: &Tables, lane: usize) {
        let (track, member) = self.lanes[lane];
        match slices.known_end(tables, track) {
            None => {
                if self.occupied.get(&member) == Some(&lane) {
                    self.occupied.remove(&member);
                }
                self.free.insert(lane);
            }
            Some(end) => self.ends.extend(end.map(|end| Reverse((end, lane)))),
        }
    }
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
    /// True if its slices are whole from the start, and not begun and ended by members.
    pub(crate) is_timed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct LaneGroups {
    pub(super) index: HashMap<LaneGroup, usize>,
    pub(super) groups: Vec<Lanes>,
    /// The first names of ids of the older form of events.
    names: HashMap<(Option<Row>, Option<Symbol>, u64), Option<Symbol>>,
}

impl LaneGroups {
    /// Returns the lanes of each group.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &Lanes> {
        self.groups.iter()
    }

    /// Returns the first name that was given for a key.
    pub(crate) fn first_name(
        &mut self,
        key: (Option<Row>, Option<Symbol>, u64),
        name: Option<Symbol>,
    ) -> Option<Symbol> {
        *self.names.entry(key).or_insert(name)
    }
}
