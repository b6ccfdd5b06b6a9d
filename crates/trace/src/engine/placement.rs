//! Times of several traces on one clock.
//!
//! Clocks are nodes of a graph: each clock as a trace has it, and each clock of a machine. The
//! snapshots of a trace relate its clocks, rules relate clocks of two traces, and traces of one
//! machine share its clocks. From the clock of the result, each clock that can be reached gets the
//! next step towards it. A trace that cannot be reached is placed by the time of day, if both
//! machines know it. Otherwise equal clocks are taken for the same, and a trace without clocks
//! begins at 0. A trace that none of this places is left out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::origins::Origins;
use crate::clock_conversion::{CLOCKS_OF_RULES, ClockKey, Clocks};
use crate::machines::Machines;
use crate::merge_plan::MergePlan;

/// The clocks that tell the time of day.
const TIME_OF_DAY: [u32; 2] = [1, 2];
/// The clock of the time of day that all machines share.
const REALTIME: u32 = 1;
/// Steps of the time of day that are not followed: a user or a service has set the clock.
const MAX_STEP_NS: i64 = 1_000_000_000;

/// A clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Node {
    /// A clock of a machine, by the machine's own number.
    Machine(u32, u32),
    /// A clock as the trace tells it that gave the machine this number.
    Origin(u32, u32),
    /// The times of a trace without clocks, by its position.
    File(usize),
}

/// Way from one clock to another.
#[derive(Debug, Clone)]
enum Way {
    /// The other clock is ahead by this number.
    Ahead(i64),
    /// The values of both at the same moments, in order.
    Pairs(Arc<[(i64, i64)]>),
}

impl Way {
    fn apply(&self, value: i64) -> i64 {
        match self {
            Self::Ahead(ahead) => value.saturating_add(*ahead),
            Self::Pairs(pairs) => {
                let after = pairs.partition_point(|(from, _)| *from <= value);
                let Some((from, to)) = pairs.get(after.saturating_sub(1)) else { return value };
                to.saturating_add(value.saturating_sub(*from))
            }
        }
    }
}

/// A file of a merge.
#[derive(Debug)]
pub(crate) struct FileClocks {
    pub(crate) name: String,
    pub(crate) clocks: Clocks,
    /// The number of the machine of its service.
    pub(crate) base: u32,
    /// Its times are of no clock of the machine.
    pub(crate) is_clockless: bool,
}

/// Times of one machine of a file on the clock of the result.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimeMap {
    ways: Vec<Way>,
    /// False if the times are of a clock that is not related to that of the result.
    is_placed: bool,
    /// True if times before the start of the result are left out.
    drops_early: bool,
    /// Times stay in order.
    last: i64,
}

impl TimeMap {
    /// Creates the map of a single trace, for a machine that is ahead of the host.
    pub(crate) fn behind(ahead: i64) -> Self {
        let ways = if ahead == 0 { Vec::new() } else { vec![Way::Ahead(ahead.saturating_neg())] };
        Self { ways, is_placed: true, drops_early: false, last: i64::MIN }
    }

    pub(crate) fn is_placed(&self) -> bool {
        self.is_placed
    }

    /// Returns a time of the result.
    pub(crate) fn convert(&self, ts: i64) -> i64 {
        self.ways.iter().fold(ts, |ts, way| way.apply(ts))
    }

    /// Returns the time of the next record; `None` if the result has none before its start.
    pub(crate) fn next(&mut self, ts: i64) -> Option<i64> {
        let ts = match self.ways.as_slice() {
            [] => ts,
            [Way::Ahead(ahead)] => ts.saturating_add(*ahead),
            _ => {
                self.last = self.convert(ts).max(self.last);
                self.last
            }
        };
        (ts >= 0 || !self.drops_early).then_some(ts)
    }

    /// Returns by how much the times are ahead of those of the result, at the start of the trace.
    pub(crate) fn ahead_at(&self, ts: i64) -> i64 {
        ts.saturating_sub(self.convert(ts))
    }
}

/// Places all machines of all files.
#[derive(Debug)]
pub(crate) struct Placement<'e> {
    plan: &'e MergePlan,
    origins: &'e Origins,
    edges: HashMap<Node, Vec<(Node, Way)>>,
    goal: Node,
    /// The next step towards the goal.
    towards: HashMap<Node, (Node, Way)>,
    /// Clocks without a way to the goal.
    apart: HashSet<Node>,
}

impl<'e> Placement<'e> {
    /// Reads the relations of all clocks. `numbers` are the machines of all files.
    pub(crate) fn new(
        plan: &'e MergePlan,
        origins: &'e Origins,
        files: &[FileClocks],
        machines: &Machines,
        numbers: &[u32],
    ) -> Self {
        let first = files.first();
        let goal = match &plan.trace_time {
            Some(time) => {
                Node::Machine(machine_of(plan, origins, time.file.as_deref(), time.machine.as_deref()), time.clock)
            }
            None => match first {
                Some(file) if file.is_clockless => Node::File(0),
                Some(file) => Node::Machine(origins.home(file.base), file.clocks.trace_clock()),
                None => Node::File(0),
            },
        };
        let towards = HashMap::from([(goal, (goal, Way::Ahead(0)))]);
        let mut placement = Self { plan, origins, edges: HashMap::new(), goal, towards, apart: HashSet::new() };
        for &number in numbers {
            let origin = origins.origin(number);
            if let Some(file) = files.get(origin.file) {
                placement.add_file(number, origin.home, file, machines);
            }
        }
        placement.add_rules(files);
        placement.spread(goal);
        placement
    }

    /// Adds the clocks of a machine of a file.
    fn add_file(&mut self, number: u32, home: u32, file: &FileClocks, machines: &Machines) {
        if file.is_clockless {
            return;
        }
        let trace_clock = file.clocks.trace_clock();
        let key = |id| ClockKey { machine: number, sequence: None, id };
        let ids: Vec<u32> = CLOCKS_OF_RULES.iter().map(|(id, _)| *id).collect();
        for (position, &from) in ids.iter().enumerate() {
            for &to in &ids[position + 1..] {
                let pairs = file.clocks.pairs(key(from), key(to));
                if !pairs.is_empty() {
                    self.relate_pairs((number, from), (number, to), pairs);
                }
            }
        }
        for id in ids.iter().copied().chain((!ids.contains(&trace_clock)).then_some(trace_clock)) {
            if id == trace_clock || file.clocks.seen().contains_key(&(number, id)) {
                self.relate(Node::Origin(number, id), Node::Machine(home, id), 0);
            }
        }
        if number != file.base {
            let ahead = machines.ahead(number, trace_clock).unwrap_or(0);
            self.relate(Node::Origin(file.base, trace_clock), Node::Origin(number, trace_clock), ahead);
        }
    }

    fn add_rules(&mut self, files: &[FileClocks]) {
        let position = |name: &str| files.iter().position(|file| file.name == name);
        for rules in &self.plan.files {
            let Some(rule) = &rules.clocks else { continue };
            let (Some(own), Some(other)) = (position(&rules.path), position(&rule.to_file)) else { continue };
            let machine =
                |file: &str, name: &Option<String>| machine_of(self.plan, self.origins, Some(file), name.as_deref());
            let from = match rule.clock {
                Some(clock) => Node::Machine(machine(&rules.path, &rule.machine), clock),
                None => Node::File(own),
            };
            let to = match rule.to_clock {
                Some(clock) => Node::Machine(machine(&rule.to_file, &rule.to_machine), clock),
                None => Node::File(other),
            };
            self.relate(from, to, rule.offset_ns);
        }
    }

    /// Relates two clocks: the second one is ahead.
    fn relate(&mut self, from: Node, to: Node, ahead: i64) {
        self.edges.entry(from).or_default().push((to, Way::Ahead(ahead)));
        self.edges.entry(to).or_default().push((from, Way::Ahead(ahead.saturating_neg())));
    }

    fn relate_pairs(&mut self, from: (u32, u32), to: (u32, u32), pairs: Vec<(i64, i64)>) {
        let pairs = steady(pairs, [from.1, to.1]);
        let mut reverse: Vec<(i64, i64)> = pairs.iter().map(|&(from, to)| (to, from)).collect();
        reverse.sort_unstable();
        let (from, to) = (Node::Origin(from.0, from.1), Node::Origin(to.0, to.1));
        self.edges.entry(from).or_default().push((to, Way::Pairs(pairs.into())));
        self.edges.entry(to).or_default().push((from, Way::Pairs(reverse.into())));
    }

    /// Finds the steps towards the goal of all clocks that are related to `start`.
    fn spread(&mut self, start: Node) {
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            let neighbours: Vec<Node> = self.edges.get(&node).into_iter().flatten().map(|(next, _)| *next).collect();
            for next in neighbours {
                if self.towards.contains_key(&next) {
                    continue;
                }
                let back = self.edges.get(&next).into_iter().flatten().find(|(to, _)| *to == node);
                if let Some((_, way)) = back {
                    self.towards.insert(next, (node, way.clone()));
                    queue.push_back(next);
                }
            }
        }
    }

    /// Returns the map of a machine of a file.
    pub(crate) fn map(&mut self, number: u32, files: &[FileClocks]) -> TimeMap {
        let origin = self.origins.origin(number);
        let Some(file) = files.get(origin.file) else { return TimeMap::default() };
        let trace_clock = file.clocks.trace_clock();
        let start = if file.is_clockless { Node::File(origin.file) } else { Node::Origin(number, trace_clock) };
        if !self.towards.contains_key(&start) && !self.apart.contains(&start) {
            let is_private = file.is_clockless || file.clocks.snapshots() == 0;
            self.bridge(start, origin.home, trace_clock, is_private);
        }
        let (mut ways, mut node) = (Vec::new(), start);
        while node != self.goal {
            let Some((next, way)) = self.towards.get(&node) else { return TimeMap::default() };
            if !matches!(way, Way::Ahead(0)) {
                ways.push(way.clone());
            }
            node = *next;
        }
        if let Some(sum) = constant(&ways) {
            ways = if sum == 0 { Vec::new() } else { vec![Way::Ahead(sum)] };
        }
        TimeMap { ways, is_placed: true, drops_early: true, last: i64::MIN }
    }

    /// Relates a clock to those that have a way to the goal, by assumptions.
    fn bridge(&mut self, start: Node, home: u32, trace_clock: u32, is_private: bool) {
        let goal_clock = match self.goal {
            Node::Machine(machine, clock) => Some((machine, clock)),
            Node::Origin(..) | Node::File(_) => None,
        };
        let time_of_day = Node::Machine(home, REALTIME);
        let shared = goal_clock.map(|(machine, _)| Node::Machine(machine, REALTIME));
        let shared = shared.filter(|shared| *shared != time_of_day && self.towards.contains_key(shared));
        let related = self.related(start);
        if let Some(shared) = shared.filter(|_| related.contains(&time_of_day)) {
            self.relate(time_of_day, shared, 0);
            self.towards.insert(time_of_day, (shared, Way::Ahead(0)));
            return self.spread(time_of_day);
        }
        let is_same = goal_clock.is_none_or(|(_, clock)| clock == trace_clock);
        if is_private || is_same {
            self.relate(start, self.goal, 0);
            self.towards.insert(start, (self.goal, Way::Ahead(0)));
            return self.spread(start);
        }
        self.apart.extend(related);
    }

    /// Returns all clocks that are related to one.
    fn related(&self, start: Node) -> HashSet<Node> {
        let (mut seen, mut queue) = (HashSet::from([start]), VecDeque::from([start]));
        while let Some(node) = queue.pop_front() {
            let neighbours = self.edges.get(&node).into_iter().flatten().map(|(next, _)| *next);
            queue.extend(neighbours.filter(|next| seen.insert(*next)));
        }
        seen
    }
}

/// Returns the own number of a machine that rules refer to.
fn machine_of(plan: &MergePlan, origins: &Origins, file: Option<&str>, machine: Option<&str>) -> u32 {
    let of_file = || {
        let rules = plan.rules(file?)?;
        let host = rules.machines.iter().find(|(id, _)| *id == crate::machines::HOST).map(|(_, name)| name.as_str());
        rules.machine.as_deref().or(host)
    };
    origins.home_of(machine.or_else(of_file))
}

/// Returns the sum of ways that are all constant.
fn constant(ways: &[Way]) -> Option<i64> {
    ways.iter().try_fold(0_i64, |sum, way| match way {
        Way::Ahead(ahead) => Some(sum.saturating_add(*ahead)),
        Way::Pairs(_) => None,
    })
}

/// Sorts values of two clocks. If one of them is the time of day, it does not follow steps: all
/// values before a step are as if the clock had always been right.
fn steady(mut pairs: Vec<(i64, i64)>, clocks: [u32; 2]) -> Vec<(i64, i64)> {
    let is_time_of_day = clocks.map(|clock| TIME_OF_DAY.contains(&clock));
    match is_time_of_day {
        [true, false] => {
            let turned = pairs.into_iter().map(|(from, to)| (to, from)).collect();
            pairs = without_steps(turned).into_iter().map(|(from, to)| (to, from)).collect();
        }
        [false, true] => pairs = without_steps(pairs),
        _ => {}
    }
    pairs.sort_unstable();
    pairs
}

/// Removes steps of the second clock.
fn without_steps(mut pairs: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    pairs.sort_unstable();
    let ahead = |(from, to): (i64, i64)| to.saturating_sub(from);
    let mut steps = 0_i64;
    for index in (1..pairs.len()).rev() {
        let (before, after) = (pairs[index - 1], pairs[index]);
        // `after` has been corrected already.
        let step = ahead(after).saturating_sub(steps).saturating_sub(ahead(before));
        if step.abs() > MAX_STEP_NS {
            steps = steps.saturating_add(step);
        }
        pairs[index - 1].1 = before.1.saturating_add(steps);
    }
    pairs
}

/// Maps of all machines of all files, by their numbers.
pub(crate) type TimeMaps = BTreeMap<u32, TimeMap>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_time_of_day_are_not_followed() {
        const H: i64 = 3_600_000_000_000;
        // The clock drifts, is set an hour forward, and drifts back.
        let pairs = vec![(0, 100), (1000, 1101), (2000, 2102 + H), (3000, 3100 + H)];
        assert_eq!(without_steps(pairs), [(0, 101 + H), (1000, 1102 + H), (2000, 2102 + H), (3000, 3100 + H)]);
        let twice = vec![(0, 0), (10, 10 + H), (20, 20)];
        assert_eq!(without_steps(twice), [(0, 0), (10, 10), (20, 20)]);
    }

    #[test]
    fn records_stay_in_order() {
        let way = Way::Pairs([(0, 1000), (100, 1095)].into());
        let mut map = TimeMap { ways: vec![way], is_placed: true, drops_early: true, last: i64::MIN };
        assert_eq!([10, 99, 100, 103, 200].map(|ts| map.next(ts)), [1010, 1099, 1099, 1099, 1195].map(Some));
    }
}
