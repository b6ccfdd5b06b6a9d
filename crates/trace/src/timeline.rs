//! Timeline: slices, flows and counters on tracks, made from events in the order of time.
//!
//! Tracks that are shown as one share a *group* (`docs/spec/track-event.md` §7, merging of
//! siblings). Slices of several tracks of a group may overlap, so a group has *lanes*. A track
//! keeps its lane while it has an open slice, and otherwise takes the first free one. The trace
//! processor calls lanes tracks.

use core::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use crate::counters::Scope;
use crate::import::{Import, widen};
use crate::problems::Problem;
use crate::string_table::Symbol;
use crate::track_descriptors::{Merge, TrackKind};
use crate::track_event::{Action, RawEvent};
use crate::track_key::TrackKey;

/// Open slices that ends of slices may be compared with, for each event of the trace and in
/// addition to [`MIN_SEARCH_WORK`].
///
/// An end nearly always closes the innermost slice. When the work is used up, it is compared with
/// that one only, and counts as `slice_ends_without_begin` if it does not match.
const SEARCH_WORK_PER_EVENT: u64 = 64;
/// See [`SEARCH_WORK_PER_EVENT`].
const MIN_SEARCH_WORK: u64 = 1 << 20;

/// A slice or an instant.
#[derive(Debug, Clone)]
pub(crate) struct RawSlice {
    pub(crate) ts: i64,
    /// Its duration in nanoseconds; `None` if it never ended.
    pub(crate) duration: Option<i64>,
    pub(crate) instant: bool,
    pub(crate) name: Option<Symbol>,
    pub(crate) track: TrackKey,
    pub(crate) depth: u32,
    pub(crate) parent: Option<u32>,
    /// The event that began it, by its index in the list.
    pub(crate) event: u32,
}

impl RawSlice {
    fn end(&self) -> Option<i64> {
        self.duration.map(|duration| self.ts.saturating_add(duration))
    }
}

#[derive(Debug, Default)]
struct Lane {
    /// Open slices, innermost last.
    open: Vec<u32>,
    /// The uuid of the track to which they belong.
    track: u64,
    slices: u64,
}

/// Tracks that are shown as one.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) kind: GroupKind,
    pub(crate) name: Option<Symbol>,
    pub(crate) process: Option<usize>,
    pub(crate) thread: Option<usize>,
    pub(crate) slices: u64,
    pub(crate) counter_values: u64,
    /// One of its tracks. All of them are of one machine.
    pub(crate) track: TrackKey,
    merges: bool,
    lanes: Vec<Lane>,
    /// Lanes with open slices, by the uuid of their track.
    occupied: HashMap<u64, u32>,
    /// Lanes without open slices.
    free: BTreeSet<u32>,
    /// Ends of innermost slices whose end was known from their begin, with their lanes. Some
    /// entries are outdated.
    ends: BinaryHeap<Reverse<(i64, u32)>>,
}

impl Group {
    /// Closes the slices that have ended by `ts`.
    fn expire(&mut self, ts: i64, slices: &[RawSlice], work: &mut u64) {
        while let Some(&Reverse((_, index))) = self.ends.peek().filter(|Reverse((end, _))| *end <= ts) {
            self.ends.pop();
            *work += 1;
            let lane = &mut self.lanes[index as usize];
            let before = lane.open.len();
            while lane.open.last().and_then(|&slice| slices[slice as usize].end()).is_some_and(|end| end <= ts) {
                lane.open.pop();
                *work += 1;
            }
            if lane.open.len() < before {
                self.note_top(index, slices);
            }
        }
    }

    /// Notes that the innermost slice of a lane has changed.
    fn note_top(&mut self, index: u32, slices: &[RawSlice]) {
        let lane = &self.lanes[index as usize];
        match lane.open.last() {
            None => {
                self.occupied.remove(&lane.track);
                self.free.insert(index);
            }
            Some(&top) => self.ends.extend(slices[top as usize].end().map(|end| Reverse((end, index)))),
        }
    }

    pub(crate) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    pub(crate) fn lanes_with_slices(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.slices > 0).count()
    }
}

/// Kind of the tracks of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupKind {
    Process,
    Thread,
    Counter,
    State,
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GroupKey {
    Single(TrackKey),
    /// Siblings of one machine, by the group of their parent.
    Merged(u32, Option<u32>, Option<Symbol>, Merge),
}

#[derive(Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) slices: Vec<RawSlice>,
    pub(crate) groups: Vec<Group>,
    /// Pairs of slices by their indices: from the one that began earlier.
    pub(crate) flows: Vec<(u32, u32)>,
    /// From the first event to the last one, or to the end of the last slice.
    pub(crate) bounds: Option<(i64, i64)>,
    /// State changes.
    pub(crate) states: u64,
    /// Slices and lanes that were visited for events.
    pub(crate) work: u64,
    search_work_left: u64,
    groups_of_tracks: HashMap<TrackKey, Option<u32>>,
    group_index: HashMap<GroupKey, u32>,
}

impl Timeline {
    /// Replays the events. Adds to the counters and problems of the import.
    pub(crate) fn new(import: &mut Import) -> Self {
        let mut timeline = Self::default();
        // Machines may use the same number for different flows.
        let mut flows: HashMap<(u32, u64), u32> = HashMap::new();
        let events = core::mem::take(&mut import.events);
        timeline.search_work_left = MIN_SEARCH_WORK + SEARCH_WORK_PER_EVENT * events.list.len() as u64;
        for (index, event) in events.list.iter().enumerate() {
            let index = u32::try_from(index).expect("a trace has less than 2^32 events");
            let Some(group) = timeline.group_of(event, import) else {
                import.problems.count(Problem::MissingAncestor);
                continue;
            };
            for &(track, value) in events.extra(event) {
                timeline.count(track, event.ts, value.as_f64(), import);
            }
            let slice = match event.action {
                Action::Begin => Some(timeline.begin(group, index, event, None)),
                Action::Instant => Some(timeline.begin(group, index, event, Some(0))),
                Action::Complete(duration) => {
                    widen(&mut timeline.bounds, event.ts.saturating_add(duration));
                    Some(timeline.begin(group, index, event, Some(duration)))
                }
                Action::End => timeline.end(group, event, &events, import),
                Action::Counter(value) => {
                    timeline.count(event.track, event.ts, value.as_f64(), import);
                    None
                }
                Action::State => {
                    timeline.states += 1;
                    None
                }
            };
            // An end that closes no slice has no effect.
            if slice.is_some() || !matches!(event.action, Action::End) {
                widen(&mut timeline.bounds, event.ts);
            }
            let Some(slice) = slice else { continue };
            for &id in events.flows(event) {
                if let Some(before) = flows.insert((event.track.machine, id), slice) {
                    timeline.flow(before, slice);
                }
            }
            for &id in events.terminating(event) {
                if let Some(before) = flows.remove(&(event.track.machine, id)) {
                    timeline.flow(before, slice);
                }
            }
        }
        import.events = events;
        if let Some((from, to)) = import.sample_times {
            widen(&mut timeline.bounds, from);
            widen(&mut timeline.bounds, to);
        }
        timeline
    }

    /// Returns the group of a track's events; `None` if an ancestor of the track is missing.
    pub(crate) fn group(&self, track: TrackKey) -> Option<&Group> {
        let index = (*self.groups_of_tracks.get(&track)?)?;
        self.groups.get(index as usize)
    }

    fn flow(&mut self, before: u32, after: u32) {
        let began = |slice: u32| self.slices[slice as usize].ts;
        let pair = if began(after) < began(before) { (after, before) } else { (before, after) };
        self.flows.push(pair);
    }

    fn count(&mut self, track: TrackKey, ts: i64, value: f64, import: &mut Import) {
        if let Some(group) = self.group_of_track(track, None, import) {
            self.groups[group as usize].counter_values += 1;
        }
        let name = import.tracks.descriptors.get(&track).and_then(|track| track.name);
        let name = name.unwrap_or_else(|| import.strings.add_str(""));
        import.counters.add(Scope::Track(track), name, ts, value);
    }

    fn begin(&mut self, group: u32, index: u32, event: &RawEvent, duration: Option<i64>) -> u32 {
        let place = u32::try_from(self.slices.len()).expect("a trace has less than 2^32 slices");
        let lane = self.lane(group, event.track.uuid, event.ts);
        let Self { groups, slices, .. } = self;
        let group = &mut groups[group as usize];
        group.slices += 1;
        let entry = &mut group.lanes[lane as usize];
        entry.track = event.track.uuid;
        entry.slices += 1;
        let depth = u32::try_from(entry.open.len()).unwrap_or(u32::MAX);
        let parent = entry.open.last().copied();
        slices.push(RawSlice {
            ts: event.ts,
            duration,
            instant: event.action == Action::Instant,
            name: event.name,
            track: event.track,
            depth,
            parent,
            event: index,
        });
        if duration != Some(0) {
            entry.open.push(place);
            group.free.remove(&lane);
            group.occupied.insert(event.track.uuid, lane);
            group.note_top(lane, slices);
        }
        place
    }

    /// Returns the lane for the next slice of a track.
    fn lane(&mut self, group: u32, track: u64, ts: i64) -> u32 {
        let Self { groups, slices, work, .. } = self;
        let group = &mut groups[group as usize];
        *work += 1;
        group.expire(ts, slices, work);
        if !group.merges {
            return 0;
        }
        if let Some(&own) = group.occupied.get(&track) {
            return own;
        }
        group.free.first().copied().unwrap_or_else(|| {
            let lane = u32::try_from(group.lanes.len()).expect("a group has fewer lanes than the trace slices");
            group.lanes.push(Lane::default());
            group.free.insert(lane);
            lane
        })
    }

    /// Closes the innermost slice that the event matches, and the slices inside it.
    fn end(
        &mut self,
        group: u32,
        event: &RawEvent,
        events: &crate::track_event::Events,
        import: &mut Import,
    ) -> Option<u32> {
        let Self { groups, slices, work, search_work_left, .. } = self;
        let group = &mut groups[group as usize];
        let wanted = events.categories(event);
        let matches = |slice: u32| {
            let slice = &slices[slice as usize];
            let name = event.name.is_none() || slice.name.is_none() || slice.name == event.name;
            let own = events.categories(&events.list[slice.event as usize]);
            slice.duration.is_none() && name && (wanted.is_empty() || own.is_empty() || wanted == own)
        };
        let found = group.occupied.get(&event.track.uuid).and_then(|&index| {
            let open = &group.lanes[index as usize].open;
            let mut place = open.len();
            loop {
                let is_innermost = place == open.len();
                if place == 0 || (!is_innermost && *search_work_left == 0) {
                    return None;
                }
                place -= 1;
                let cost = 1 + wanted.len() as u64;
                *work += cost;
                *search_work_left = search_work_left.saturating_sub(cost);
                if matches(open[place]) {
                    return Some((index, place));
                }
            }
        });
        let Some((index, place)) = found else {
            import.problems.count(Problem::UnmatchedEnd);
            return None;
        };
        let lane = &mut group.lanes[index as usize];
        if place + 1 < lane.open.len() {
            import.problems.count(Problem::MisplacedEnd);
        }
        let closed = lane.open[place];
        for slice in lane.open.drain(place..) {
            let slice = &mut slices[slice as usize];
            slice.duration = slice.duration.or_else(|| Some(event.ts.saturating_sub(slice.ts)));
        }
        group.note_top(index, slices);
        Some(closed)
    }

    fn group_of(&mut self, event: &RawEvent, import: &mut Import) -> Option<u32> {
        self.group_of_track(event.track, event.name, import)
    }

    fn group_of_track(&mut self, track: TrackKey, first_event: Option<Symbol>, import: &mut Import) -> Option<u32> {
        if let Some(&known) = self.groups_of_tracks.get(&track) {
            return known;
        }
        if !import.tracks.descriptors.contains_key(&track) {
            // A new root track, named after its first event.
            let name = if track.uuid == 0 { Some(import.strings.add_str("Default Track")) } else { first_event };
            let key = GroupKey::Merged(track.machine, None, name, Merge::ByName);
            let group = self.add_group(key, None, name, TrackKind::Plain, track, import);
            self.groups_of_tracks.insert(track, Some(group));
            return Some(group);
        }
        let ancestry = import.tracks.ancestry(track);
        let mut parent = None;
        for at in ancestry.into_iter().flatten().rev() {
            let Some(descriptor) = import.tracks.descriptors.get(&at) else { continue };
            let (kind, merge) = (descriptor.kind, descriptor.merge);
            let mut name = descriptor.name;
            if name.is_none() && at.uuid == 0 {
                name = Some(import.strings.add_str("Default Track"));
            }
            if name.is_none() && at == track && kind == TrackKind::Plain {
                name = first_event;
            }
            let key = match (kind, merge) {
                (TrackKind::Plain, Merge::ByName) if name.is_some() => {
                    GroupKey::Merged(at.machine, parent, name, merge)
                }
                (TrackKind::Plain, Merge::ByKey(_) | Merge::ByNumber(_)) => {
                    GroupKey::Merged(at.machine, parent, None, merge)
                }
                _ => GroupKey::Single(at),
            };
            let group = self.add_group(key, parent, name, kind, at, import);
            self.groups_of_tracks.entry(at).or_insert(Some(group));
            parent = Some(group);
        }
        self.groups_of_tracks.entry(track).or_insert(parent);
        parent
    }

    fn add_group(
        &mut self,
        key: GroupKey,
        parent: Option<u32>,
        name: Option<Symbol>,
        kind: TrackKind,
        track: TrackKey,
        import: &Import,
    ) -> u32 {
        if let Some(&group) = self.group_index.get(&key) {
            return group;
        }
        let outer = parent.map(|parent| &self.groups[parent as usize]);
        let (mut process, mut thread) = outer.map_or((None, None), |outer| (outer.process, outer.thread));
        match kind {
            TrackKind::Process(index) => (process, thread) = (Some(index), None),
            TrackKind::Thread(index) => {
                (process, thread) = (Some(import.processes.threads[index].process), Some(index));
            }
            _ => {}
        }
        let kind = match kind {
            TrackKind::Process(_) => GroupKind::Process,
            TrackKind::Thread(_) => GroupKind::Thread,
            TrackKind::Counter => GroupKind::Counter,
            TrackKind::State => GroupKind::State,
            TrackKind::Plain => GroupKind::Plain,
        };
        let index = u32::try_from(self.groups.len()).expect("a trace has less than 2^32 tracks");
        self.groups.push(Group {
            kind,
            name,
            process,
            thread,
            slices: 0,
            counter_values: 0,
            track,
            merges: matches!(key, GroupKey::Merged(..)),
            lanes: vec![Lane::default()],
            occupied: HashMap::new(),
            free: BTreeSet::from([0]),
            ends: BinaryHeap::new(),
        });
        self.group_index.insert(key, index);
        index
    }
}
