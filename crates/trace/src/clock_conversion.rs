//! Conversion of clocks into the trace clock of their machine.
//!
//! Each machine has clocks of its own. [`Machines`](crate::machines::Machines) knows by how much
//! the trace clock of another machine is ahead of that of the host.
//!
//! A snapshot holds the values of several clocks at one moment (`docs/spec/track-event.md` §11).
//! Snapshots that list the same clocks form a series. A value is carried from clock to clock along
//! at most [`MAX_HOPS`] series. In each series it is moved by its distance from the last snapshot
//! at or before it. Nothing is interpolated.

use hashbrown::{HashMap, HashSet};
use std::collections::{BTreeMap, VecDeque};

/// Largest number of series between a clock and the trace clock.
const MAX_HOPS: usize = 4;
/// Clocks and series that are visited in search of routes, for one trace. Beyond it, no new route
/// is found: timestamps of clocks without a known route count as `timestamps_of_unknown_clocks`.
const MAX_ROUTE_WORK: u64 = 1 << 26;
/// The built-in clock `CLOCK_BOOTTIME`.
pub(crate) const BOOTTIME: u32 = 6;
/// Clocks that a plan for merging may name.
pub(crate) const CLOCKS_OF_RULES: [(u32, &str); 6] = [
    (1, "REALTIME"),
    (2, "REALTIME_COARSE"),
    (3, "MONOTONIC"),
    (4, "MONOTONIC_COARSE"),
    (5, "MONOTONIC_RAW"),
    (BOOTTIME, "BOOTTIME"),
];
/// Clocks that are found without a search, because a packet just used them.
const RECENT: usize = 64;
/// Ids of clocks that belong to one sequence.
const OF_SEQUENCE: core::ops::RangeInclusive<u32> = 64..=127;

/// A clock of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClockKey {
    pub(crate) machine: u32,
    /// The sequence that owns the clock, by its index in the importer's list; `None` for clocks of
    /// the whole machine.
    pub(crate) sequence: Option<usize>,
    pub(crate) id: u32,
}

impl ClockKey {
    /// Returns the clock that packets of a sequence mean. The sequence belongs to the machine.
    pub(crate) fn new(id: u32, machine: u32, sequence: usize) -> Self {
        Self { machine, sequence: OF_SEQUENCE.contains(&id).then_some(sequence), id }
    }

    /// Returns a clock of a whole machine; `None` if the id is that of a clock of a sequence.
    pub(crate) fn of_machine(id: u32, machine: u32) -> Option<Self> {
        (!OF_SEQUENCE.contains(&id)).then_some(Self { machine, sequence: None, id })
    }
}

/// One clock in one snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) clock: ClockKey,
    pub(crate) ticks: u64,
    pub(crate) incremental: bool,
    pub(crate) multiplier: u64,
}

/// Error for a snapshot that breaks a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidSnapshot;

#[derive(Debug)]
pub(crate) struct Clocks {
    trace_clock: u32,
    /// True after the first conversion: the trace clock can no longer change.
    fixed: bool,
    series: Vec<Series>,
    series_of_list: HashMap<Vec<ClockKey>, usize>,
    series_of_clock: HashMap<ClockKey, Vec<usize>>,
    /// Places in `entries`.
    index: HashMap<ClockKey, usize>,
    entries: Vec<Entry>,
    /// Places of the clocks that were used last, by a part of their keys.
    recent: [usize; RECENT],
    /// Number of trace clocks so far. Routes lead to one of them.
    goals: usize,
    /// Clocks and series that were visited in search of routes.
    work: u64,
    /// Facts about each clock that belongs to no sequence, by machine and id.
    seen: BTreeMap<(u32, u32), Seen>,
    snapshots: u64,
}

/// Facts about a clock of a whole machine, from the snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) snapshots: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

#[derive(Debug)]
struct Series {
    clocks: Vec<ClockKey>,
    /// For each snapshot the values in nanoseconds, in the order of `clocks`.
    rows: Vec<Vec<i64>>,
}

/// A clock of which packets have times, or snapshots have values.
#[derive(Debug)]
struct Entry {
    key: ClockKey,
    /// Set by the first snapshot that has the clock.
    known: Option<Known>,
    /// The route that was found last, and the number of its trace clock.
    route: Option<(usize, Route)>,
}

#[derive(Debug)]
struct Known {
    multiplier: u64,
    incremental: bool,
    /// Absolute value of an incremental clock in nanoseconds after the latest packet.
    now_ns: i64,
    /// The clock ran backwards from one snapshot to the next: it cannot be converted.
    broken: bool,
}

/// Route of a clock to the trace clock of its machine.
#[derive(Debug)]
enum Route {
    Found(Vec<Hop>),
    /// There was no route when there were so many series.
    NotAmong(usize),
}

#[derive(Debug, Clone, Copy)]
struct Hop {
    series: usize,
    from: usize,
    to: usize,
    /// Place of the first clock in the entries.
    entry: usize,
}

impl Default for Clocks {
    fn default() -> Self {
        Self {
            trace_clock: BOOTTIME,
            fixed: false,
            series: Vec::new(),
            series_of_list: HashMap::new(),
            series_of_clock: HashMap::new(),
            index: HashMap::new(),
            entries: Vec::new(),
            recent: [0; RECENT],
            goals: 0,
            work: 0,
            seen: BTreeMap::new(),
            snapshots: 0,
        }
    }
}

impl Clocks {
    pub(crate) fn trace_clock(&self) -> u32 {
        self.trace_clock
    }

    /// Returns how many clocks and series were visited in search of routes.
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    pub(crate) fn snapshots(&self) -> u64 {
        self.snapshots
    }

    pub(crate) fn seen(&self) -> &BTreeMap<(u32, u32), Seen> {
        &self.seen
    }

    /// Returns how many clocks belong to single sequences.
    pub(crate) fn sequence_clocks(&self) -> usize {
        self.entries.iter().filter(|entry| entry.known.is_some() && entry.key.sequence.is_some()).count()
    }

    /// Adds a snapshot. `primary` names the clock of the trace, if the host took the snapshot.
    pub(crate) fn add(&mut self, readings: &[Reading], primary: Option<u32>) -> Result<(), InvalidSnapshot> {
        self.relate(readings)?;
        self.snapshots += 1;
        for &Reading { clock, ticks, .. } in readings.iter().filter(|reading| reading.clock.sequence.is_none()) {
            let seen = self.seen.entry((clock.machine, clock.id));
            let seen = seen.or_insert(Seen { snapshots: 0, first: ticks, last: ticks });
            seen.snapshots += 1;
            seen.last = ticks;
        }
        if let Some(primary) = primary.filter(|&id| id != 0 && !self.fixed) {
            if primary != self.trace_clock {
                self.trace_clock = primary;
                self.goals += 1;
            }
        }
        Ok(())
    }

    /// Adds values that clocks had at one moment.
    pub(crate) fn relate(&mut self, readings: &[Reading]) -> Result<(), InvalidSnapshot> {
        self.check(readings)?;
        let clocks: Vec<ClockKey> = readings.iter().map(|reading| reading.clock).collect();
        let row: Vec<i64> = readings.iter().map(|reading| nanoseconds(reading.ticks, reading.multiplier)).collect();
        for (reading, &now_ns) in readings.iter().zip(&row) {
            let place = self.place(reading.clock);
            let known = self.entries[place].known.get_or_insert(Known {
                multiplier: reading.multiplier,
                incremental: reading.incremental,
                now_ns,
                broken: false,
            });
            known.now_ns = now_ns;
        }
        match self.series_of_list.get(&clocks) {
            Some(&index) => {
                let series = &mut self.series[index];
                if let Some(last) = series.rows.last() {
                    let ran_back = clocks.iter().zip(last).zip(&row).filter(|((_, before), now)| now < before);
                    for ((clock, _), _) in ran_back {
                        let entry = self.index.get(clock).map(|&place| &mut self.entries[place]);
                        if let Some(known) = entry.and_then(|entry| entry.known.as_mut()) {
                            known.broken = true;
                        }
                    }
                }
                series.rows.push(row);
            }
            None => {
                self.series_of_list.insert(clocks.clone(), self.series.len());
                for &clock in &clocks {
                    self.series_of_clock.entry(clock).or_default().push(self.series.len());
                }
                self.series.push(Series { clocks, rows: vec![row] });
            }
        }
        Ok(())
    }

    fn check(&self, readings: &[Reading]) -> Result<(), InvalidSnapshot> {
        let mut clocks = HashSet::new();
        for reading in readings {
            let known = self.known(reading.clock);
            let constant =
                |known: &Known| known.multiplier == reading.multiplier && known.incremental == reading.incremental;
            let stray_incremental = reading.incremental && reading.clock.sequence.is_none();
            if !clocks.insert(reading.clock) || !known.is_none_or(constant) || stray_incremental {
                return Err(InvalidSnapshot);
            }
        }
        let list: Vec<ClockKey> = readings.iter().map(|reading| reading.clock).collect();
        let trace_clock = list.iter().position(|key| key.sequence.is_none() && key.id == self.trace_clock);
        let last = self.series_of_list.get(&list).and_then(|&index| self.series[index].rows.last());
        if let (Some(column), Some(last)) = (trace_clock, last) {
            let reading = &readings[column];
            if nanoseconds(reading.ticks, reading.multiplier) < last[column] || reading.multiplier != 1 {
                return Err(InvalidSnapshot);
            }
        }
        Ok(())
    }

    /// Returns the values in nanoseconds that two clocks had at the same moments; none if no
    /// snapshot has both.
    pub(crate) fn pairs(&self, from: ClockKey, to: ClockKey) -> Vec<(i64, i64)> {
        let series = self.series_of_clock.get(&from).into_iter().flatten().map(|&index| &self.series[index]);
        let found = series.filter_map(|series| {
            let place = |clock| series.clocks.iter().position(|&key| key == clock);
            Some((place(from)?, place(to)?, series))
        });
        found.flat_map(|(from, to, series)| series.rows.iter().map(move |row| (row[from], row[to]))).collect()
    }

    /// Returns whether the timestamps of a clock are differences to the packet before.
    pub(crate) fn is_incremental(&self, clock: Option<ClockKey>) -> bool {
        clock.and_then(|clock| self.known(clock)).is_some_and(|known| known.incremental)
    }

    fn known(&self, clock: ClockKey) -> Option<&Known> {
        self.index.get(&clock).and_then(|&place| self.entries[place].known.as_ref())
    }

    /// Returns the place of a clock in the entries. Makes an entry if there is none.
    fn place(&mut self, clock: ClockKey) -> usize {
        let number = clock.sequence.unwrap_or(0).wrapping_add(clock.id as usize) % RECENT;
        let recent = self.recent[number];
        if self.entries.get(recent).is_some_and(|entry| entry.key == clock) {
            return recent;
        }
        let entries = &mut self.entries;
        let place = *self.index.entry(clock).or_insert_with(|| {
            entries.push(Entry { key: clock, known: None, route: None });
            entries.len() - 1
        });
        self.recent[number] = place;
        place
    }

    /// Returns the absolute value in nanoseconds of a packet's timestamp, which for an incremental
    /// clock is a delta.
    pub(crate) fn absolute(&mut self, clock: Option<ClockKey>, ticks: u64) -> i64 {
        let place = clock.map(|clock| self.place(clock));
        match place.and_then(|place| self.entries[place].known.as_mut()) {
            Some(known) if known.incremental => {
                known.now_ns = known.now_ns.saturating_add(nanoseconds(ticks, known.multiplier));
                known.now_ns
            }
            Some(known) => nanoseconds(ticks, known.multiplier),
            None => nanoseconds(ticks, 1),
        }
    }

    /// Returns the time of the trace clock at which `clock` (by default the trace clock) has the
    /// value `absolute_ns`. It is that of the machine to which `clock` belongs.
    pub(crate) fn machine_time(&mut self, clock: Option<ClockKey>, absolute_ns: i64) -> Option<i64> {
        let clock = match clock {
            Some(clock) if clock.sequence.is_some() || clock.id != self.trace_clock => clock,
            _ => return Some(absolute_ns),
        };
        let place = self.place(clock);
        let is_known = match &self.entries[place].route {
            Some((goal, _)) if *goal != self.goals => false,
            Some((_, Route::Found(_))) => true,
            // A new series may open a route where there was none.
            Some((_, Route::NotAmong(series))) => *series == self.series.len(),
            None => false,
        };
        if !is_known {
            let route = self.find_route(clock).map_or(Route::NotAmong(self.series.len()), Route::Found);
            self.entries[place].route = Some((self.goals, route));
        }
        let Some((_, Route::Found(route))) = &self.entries[place].route else { return None };
        self.fixed = true;
        let mut value = absolute_ns;
        for hop in route {
            if self.entries[hop.entry].known.as_ref().is_none_or(|known| known.broken) {
                return None;
            }
            let rows = &self.series[hop.series].rows;
            // Nearly all times are later than the last snapshot.
            let after = match rows.last() {
                Some(last) if last[hop.from] <= value => rows.len(),
                _ => rows.partition_point(|row| row[hop.from] <= value),
            };
            let anchor = rows.get(after.saturating_sub(1))?;
            value = anchor[hop.to].saturating_add(value.saturating_sub(anchor[hop.from]));
        }
        Some(value)
    }

    /// Returns the shortest route to the trace clock of the same machine. Visits each clock and
    /// each series once.
    fn find_route(&mut self, from: ClockKey) -> Option<Vec<Hop>> {
        let is_goal = |key: ClockKey| Some(key) == ClockKey::of_machine(self.trace_clock, from.machine);
        let (mut visited, mut used) = (HashSet::<_>::from([from]), HashSet::new());
        let mut queue = VecDeque::from([(from, Vec::new())]);
        while let Some((clock, way)) = queue.pop_front() {
            if way.len() == MAX_HOPS {
                continue;
            }
            for &index in self.series_of_clock.get(&clock).into_iter().flatten() {
                self.work += 1;
                if self.work > MAX_ROUTE_WORK {
                    return None;
                }
                // All clocks of a series are reached from the first of them.
                if !used.insert(index) {
                    continue;
                }
                let series = &self.series[index];
                self.work += series.clocks.len() as u64;
                let Some(column) = series.clocks.iter().position(|&key| key == clock) else { continue };
                let Some(&entry) = self.index.get(&clock) else { continue };
                for (to, &next) in series.clocks.iter().enumerate() {
                    if visited.insert(next) {
                        let mut way = way.clone();
                        way.push(Hop { series: index, from: column, to, entry });
                        if is_goal(next) {
                            return Some(way);
                        }
                        queue.push_back((next, way));
                    }
                }
            }
        }
        None
    }
}

fn nanoseconds(ticks: u64, multiplier: u64) -> i64 {
    i64::try_from(ticks.saturating_mul(multiplier)).unwrap_or(i64::MAX)
}

/// Returns the name of a built-in clock.
pub fn clock_name(id: u32) -> Option<&'static str> {
    if let Some((_, name)) = CLOCKS_OF_RULES.iter().find(|(known, _)| *known == id) {
        return Some(name);
    }
    Some(match id {
        7 => "PROCESS_CPUTIME",
        8 => "THREAD_CPUTIME",
        9 => "TSC",
        10 => "PERF",
        11 => "TRACE_FILE",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(id: u32, ticks: u64) -> Reading {
        Reading { clock: ClockKey::new(id, 0, 0), ticks, incremental: false, multiplier: 1 }
    }

    fn own(id: u32, ticks: u64, incremental: bool, multiplier: u64) -> Reading {
        Reading { clock: ClockKey::new(id, 0, 0), ticks, incremental, multiplier }
    }

    #[test]
    fn the_example_of_the_specification() {
        let mut clocks = Clocks::default();
        clocks.add(&[global(6, 1000), own(66, 500, false, 3)], None).unwrap();
        clocks.add(&[global(6, 2000), own(66, 800, false, 3)], None).unwrap();
        let key = Some(ClockKey::new(66, 0, 0));
        for (ticks, expected) in [(600, 1300), (799, 1897), (800, 2000), (810, 2030), (400, 700)] {
            let absolute = clocks.absolute(key, ticks);
            assert_eq!(clocks.machine_time(key, absolute), Some(expected), "{ticks}");
        }
    }

    #[test]
    fn deltas_add_up_and_snapshots_set_the_base() {
        let mut clocks = Clocks::default();
        let key = Some(ClockKey::new(64, 0, 0));
        clocks.add(&[global(6, 1000), own(64, 10, true, 100)], None).unwrap();
        let mut step = |ticks| {
            let absolute = clocks.absolute(key, ticks);
            clocks.machine_time(key, absolute)
        };
        assert_eq!(step(0), Some(1000));
        assert_eq!(step(2), Some(1200));
        assert_eq!(step(3), Some(1500));
        clocks.add(&[global(6, 9000), own(64, 90, true, 100)], None).unwrap();
        let absolute = clocks.absolute(key, 1);
        assert_eq!(clocks.machine_time(key, absolute), Some(9100));
    }

    #[test]
    fn routes_over_other_clocks_are_bounded() {
        let mut clocks = Clocks::default();
        clocks.add(&[own(64, 0, true, 1), global(3, 50)], None).unwrap();
        let key = Some(ClockKey::new(64, 0, 0));
        assert_eq!(clocks.machine_time(key, 5), None);
        clocks.add(&[global(3, 40), global(6, 1040)], None).unwrap();
        assert_eq!(clocks.machine_time(key, 5), Some(1055));
        assert_eq!(clocks.machine_time(Some(ClockKey::new(200, 0, 0)), 5), None);
        for (a, b) in [(201, 3), (202, 201), (203, 202), (204, 203)] {
            clocks.add(&[global(a, 0), global(b, 0)], None).unwrap();
        }
        assert_eq!(clocks.machine_time(Some(ClockKey::new(202, 0, 0)), 7), Some(1007));
        assert_eq!(clocks.machine_time(Some(ClockKey::new(203, 0, 0)), 7), Some(1007));
        assert_eq!(clocks.machine_time(Some(ClockKey::new(204, 0, 0)), 7), None);
    }

    #[test]
    fn contradictory_snapshots_are_refused() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.add(&[global(6, 1), global(6, 2)], None), Err(InvalidSnapshot));
        assert_eq!(clocks.add(&[own(3, 1, true, 1)], None), Err(InvalidSnapshot));
        clocks.add(&[global(6, 100), own(65, 1, false, 10)], None).unwrap();
        assert_eq!(clocks.add(&[global(6, 200), own(65, 2, false, 20)], None), Err(InvalidSnapshot));
        assert_eq!(clocks.add(&[global(6, 50), own(65, 2, false, 10)], None), Err(InvalidSnapshot));
        clocks.add(&[global(6, 200), own(65, 0, false, 10)], None).unwrap();
        assert_eq!(clocks.machine_time(Some(ClockKey::new(65, 0, 0)), 10), None, "its values decreased");
    }

    #[test]
    fn the_trace_clock_can_be_named_before_the_first_conversion() {
        let mut clocks = Clocks::default();
        clocks.add(&[global(6, 1000), global(3, 10)], Some(3)).unwrap();
        assert_eq!(clocks.machine_time(Some(ClockKey::new(6, 0, 0)), 1001), Some(11));
        clocks.add(&[global(6, 2000), global(3, 1010)], Some(6)).unwrap();
        assert_eq!(clocks.trace_clock(), 3);
    }
}
