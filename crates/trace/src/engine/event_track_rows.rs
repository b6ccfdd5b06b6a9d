//! Rows of the tracks of track events.

use super::chrome_names;
use super::context::Context;
use super::event_tracks::{ChromeProcess, CounterInfo, Description, Group, GroupKey, Merge, Owner, Scope, Slot, State};
use super::lanes::{LaneUse, Lanes};
use super::processes::NameSource;
use super::tracks::{Dimension, TrackSpec};
use crate::string_table::{Strings, Symbol};
use crate::tables::{Arg, ArgValue, Row};

/// Largest number of ancestors of a track.
const MAX_ANCESTORS: usize = 100;

/// Track of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EventTrack {
    /// A track of its own.
    Single(Row),
    /// A group of lanes, and the member.
    Lanes { group: usize, member: u64 },
}

impl Context {
    /// Finds thread or process of a track and of its ancestors. This may start a thread or a
    /// process whose id was used before. `None` if an ancestor is missing.
    pub(crate) fn resolve_track(&mut self, slot: Slot) -> Option<(Scope, bool)> {
        // From the track up to the first resolved ancestor.
        let mut way = vec![slot];
        let mut outer = None;
        let mut ancestors = 0;
        loop {
            let at = way[way.len() - 1];
            let entry = &mut self.event_tracks.slots[at];
            match entry.state {
                State::Resolved { scope, is_root, ancestors: known } => {
                    way.pop();
                    outer = Some((scope, is_root));
                    ancestors = known + 1;
                    break;
                }
                State::Orphan | State::Busy => {
                    self.give_up(&way);
                    return None;
                }
                State::New => entry.state = State::Busy,
            }
            let Some(description) = &entry.description else {
                if way.len() > 1 {
                    self.give_up(&way);
                    return None;
                }
                break;
            };
            if description.parent == 0 {
                break;
            }
            if way.len() > MAX_ANCESTORS {
                return self.refuse_depth(slot, &way);
            }
            let (machine, parent) = (entry.machine, description.parent);
            let parent = self.event_tracks.slot(machine, parent);
            way.push(parent);
        }
        while let Some(at) = way.pop() {
            if ancestors > MAX_ANCESTORS {
                way.push(at);
                return self.refuse_depth(slot, &way);
            }
            let (scope, is_root) = self.resolve_below(at, outer);
            self.event_tracks.slots[at].state = State::Resolved { scope, is_root, ancestors };
            outer = Some((scope, is_root));
            ancestors += 1;
        }
        outer
    }

    /// Refuses a track with too many ancestors. Those on the way to them may have fewer.
    fn refuse_depth(&mut self, slot: Slot, way: &[Slot]) -> Option<(Scope, bool)> {
        for &at in way {
            self.event_tracks.slots[at].state = State::New;
        }
        self.event_tracks.slots[slot].state = State::Orphan;
        None
    }

    fn give_up(&mut self, way: &[Slot]) {
        for &slot in way {
            let entry = &mut self.event_tracks.slots[slot];
            // A descriptor may be missing for one event only.
            entry.state = if entry.description.is_some() { State::Orphan } else { State::New };
        }
    }

    fn resolve_below(&mut self, slot: Slot, outer: Option<(Scope, bool)>) -> (Scope, bool) {
        let entry = &self.event_tracks.slots[slot];
        let (machine, uuid, trusted_pid) = (entry.machine, entry.uuid, entry.trusted_pid);
        let owner = entry.description.as_ref().map_or(Owner::Parent, |description| description.owner);
        match self.outside_of_namespaces(machine, trusted_pid, owner) {
            Owner::Thread { pid, tid } => {
                let mut utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
                let first = *self.event_tracks.thread_uuids.entry((machine, utid)).or_insert(uuid);
                if first != uuid {
                    utid = self.processes.start_thread(&mut self.tables, machine, tid, None);
                    self.processes.thread_of(&mut self.tables, machine, tid, pid);
                    self.event_tracks.thread_uuids.insert((machine, utid), uuid);
                }
                (Scope::Thread(utid), true)
            }
            Owner::Process { pid } => {
                let mut upid = self.processes.process(&mut self.tables, machine, pid);
                let first = *self.event_tracks.process_uuids.entry((machine, upid)).or_insert(uuid);
                if first != uuid {
                    upid = self.processes.start_process(&mut self.tables, machine, pid, None, None, None);
                    self.event_tracks.process_uuids.insert((machine, upid), uuid);
                }
                (Scope::Process(upid), true)
            }
            Owner::Parent => (outer.map_or(Scope::Global, |(scope, _)| scope), uuid == 0),
        }
    }

    /// Returns the owner of a track with its ids outside all namespaces, if the program that
    /// described it runs in a namespace.
    fn outside_of_namespaces(&self, machine: u32, trusted_pid: Option<i64>, owner: Owner) -> Owner {
        let Some(program) = trusted_pid else { return owner };
        let resolve = |id: i64| self.processes.namespaces.resolve(machine, program, id);
        match owner {
            Owner::Process { pid } => Owner::Process { pid: resolve(pid).unwrap_or(pid) },
            Owner::Thread { pid, tid } => {
                let is_sandboxed = pid != 0 && tid >> 32 == pid;
                let own = if is_sandboxed { tid & i64::from(u32::MAX) } else { tid };
                let pid = resolve(pid).unwrap_or(pid);
                let unresolved = if is_sandboxed { pid << 32 | own } else { own };
                Owner::Thread { pid, tid: resolve(own).unwrap_or(unresolved) }
            }
            Owner::Parent => Owner::Parent,
        }
    }

    /// Imports a descriptor at its time.
    pub(crate) fn import_descriptor(&mut self, slot: Slot) {
        let Some((scope, _)) = self.resolve_track(slot) else {
            self.stats.count("track_event_parser_errors");
            return;
        };
        let Some(description) = self.event_tracks.slots[slot].description.clone() else { return };
        match (description.owner, scope) {
            (Owner::Thread { .. }, Scope::Thread(utid)) => {
                if let Some(name) = description.thread_name {
                    self.processes.name_thread(&mut self.tables, utid, name, NameSource::Descriptor);
                }
                if let Some(name) = description.chrome_thread.and_then(chrome_names::thread) {
                    let name = self.symbol(name);
                    self.processes.name_thread(&mut self.tables, utid, name, NameSource::ThreadType);
                }
            }
            (Owner::Process { .. }, Scope::Process(upid)) => {
                let index = upid.index();
                let process = &mut self.tables.process;
                process.name[index] = process.name[index].or(description.process_name);
                if description.process_start > 0 {
                    process.start_ts[index] = process.start_ts[index].or(Some(description.process_start));
                }
                if !description.cmdline.is_empty() {
                    self.processes.cmdlines.entry(upid).or_insert(description.cmdline);
                }
                if !description.labels.is_empty() {
                    let flat_key = self.tables.strings.add_str("chrome.process_label");
                    let label = |(index, &label): (usize, &Symbol)| Arg {
                        flat_key,
                        key: self.tables.strings.add_str(&format!("chrome.process_label[{index}]")),
                        value: ArgValue::Text(Some(label)),
                    };
                    let labels: Vec<Arg> = description.labels.iter().enumerate().map(label).collect();
                    self.processes.add_arguments(upid, labels);
                }
                if let Some(process) = description.chrome_process {
                    self.describe_chrome_process(upid, process);
                }
            }
            _ => {}
        }
    }

    fn describe_chrome_process(&mut self, upid: Row, process: ChromeProcess) {
        let name = chrome_names::process(process.kind).map(|name| self.symbol(name));
        let known = &mut self.tables.process.name[upid.index()];
        *known = known.or(name);
        let mut args = vec![self.arg("chrome.process_type", ArgValue::Text(name))];
        if let Some(package) = process.package {
            args.push(self.arg("chrome.host_app_package_name", ArgValue::Text(Some(package))));
        }
        if let Some(id) = process.crash_trace_id {
            args.push(self.arg("chrome.crash_trace_id", ArgValue::Uint(id)));
        }
        self.processes.add_arguments(upid, args);
    }

    /// Returns the track of an event. `first_name` names a track without a description; `has_first`
    /// says that the trace has the first packet of the sequence.
    pub(crate) fn event_track(
        &mut self,
        slot: Slot,
        first_name: Option<Symbol>,
        has_first: bool,
    ) -> Option<EventTrack> {
        let entry = &self.event_tracks.slots[slot];
        if let Some(track) = entry.track {
            return Some(EventTrack::Single(track));
        }
        if let Some(group) = entry.group {
            return Some(EventTrack::Lanes { group, member: entry.uuid });
        }
        let (scope, is_root) = self.resolve_track(slot)?;
        let entry = &mut self.event_tracks.slots[slot];
        let (machine, uuid) = (entry.machine, entry.uuid);
        if entry.description.is_none() {
            let name = if uuid == 0 { Some(self.tables.strings.add_str("Default Track")) } else { first_name };
            entry.description = Some(Description { name, is_guess: true, ..Description::default() });
        }
        let mut description = entry.description.clone()?;
        let has_first = has_first && uuid != 0;
        let mut parent_track = None;
        if description.parent != 0 {
            let parent = self.event_tracks.slot(machine, description.parent);
            let (_, parent_is_root) = self.resolve_track(parent)?;
            let parent = self.event_track(parent, None, has_first)?;
            let parent = match parent {
                EventTrack::Single(track) => track,
                EventTrack::Lanes { group, .. } => self.first_lane(group, description.parent, has_first),
            };
            parent_track = (!parent_is_root).then_some(parent);
        }
        if description.name.is_none() && description.owner == Owner::Parent {
            description.name = match &description.counter {
                Some(CounterInfo { kind: 1, .. }) => Some(self.tables.strings.add_str("thread_time")),
                Some(CounterInfo { kind: 2, .. }) => Some(self.tables.strings.add_str("thread_instruction_count")),
                Some(_) => None,
                None if uuid == 0 => Some(self.tables.strings.add_str("Default Track")),
                None => first_name,
            };
        }
        let plain = description.owner == Owner::Parent && description.counter.is_none() && !description.is_state;
        if plain && description.merge != Merge::Never {
            let name = if description.merge == Merge::ByName { description.name } else { None };
            let key = GroupKey { machine, scope, parent: description.parent, merge: description.merge, name };
            let group = match self.event_tracks.group_index.get(&key) {
                Some(&group) => group,
                None => {
                    let tracks = &mut self.event_tracks;
                    tracks.groups.push(Group { key, lanes: Lanes::default() });
                    tracks.group_index.insert(key, tracks.groups.len() - 1);
                    tracks.groups.len() - 1
                }
            };
            let entry = &mut self.event_tracks.slots[slot];
            entry.group = Some(group);
            if let Some(own) = &mut entry.description {
                own.name = description.name;
            }
            return Some(EventTrack::Lanes { group, member: uuid });
        }
        let track = self.single_track(&description, (machine, uuid), (scope, is_root), has_first);
        if description.owner == Owner::Parent {
            self.tables.track.parent_id[track.index()] = parent_track;
        }
        self.event_tracks.slots[slot].track = Some(track);
        Some(EventTrack::Single(track))
    }

    fn single_track(
        &mut self,
        description: &Description,
        (machine, uuid): (u32, u64),
        (scope, is_root): (Scope, bool),
        has_first: bool,
    ) -> Row {
        if let (Owner::Thread { .. }, Scope::Thread(utid), false) =
            (description.owner, scope, description.own_thread_track)
        {
            return self.tracks.thread(&mut self.tables, utid);
        }
        let uuid_dimension = Dimension::Number("track_uuid", crate::tables::signed(uuid));
        let is_counter = description.counter.is_some();
        let (slices, counters, states, owner) = match scope {
            Scope::Thread(utid) => (
                "thread_track_event",
                "thread_counter_track_event",
                "thread_state_track_event",
                Some(Dimension::Thread(utid)),
            ),
            Scope::Process(upid) => (
                "process_track_event",
                "process_counter_track_event",
                "process_state_track_event",
                Some(Dimension::Process(upid)),
            ),
            Scope::Global => ("global_track_event", "global_counter_track_event", "global_state_track_event", None),
        };
        let kind = match (is_counter, description.is_state) {
            (true, _) => counters,
            (false, true) => states,
            (false, false) => slices,
        };
        let dimensions: Vec<Dimension<'_>> = owner.into_iter().chain([uuid_dimension]).collect();
        let machine = self.processes.machine_row(machine);
        let is_process = matches!(description.owner, Owner::Process { .. });
        let name = description.name.filter(|_| !is_process);
        let spec = TrackSpec { is_counter, machine, ..TrackSpec::new(kind, name, &dimensions) };
        let (track, is_new) = self.tracks.intern(&mut self.tables, &spec);
        if is_new {
            self.tables.track.source_arg_set_id[track.index()] =
                self.source_arguments(description, uuid, is_root, has_first);
            if let Some(counter) = &description.counter {
                self.tables.track.unit[track.index()] = counter.unit;
                self.tables.track.description[track.index()] = description.description;
            }
        }
        track
    }

    fn source_arguments(
        &mut self,
        description: &Description,
        uuid: u64,
        is_root: bool,
        has_first: bool,
    ) -> Option<Row> {
        let strings = &mut self.tables.strings;
        let mut args = Vec::new();
        let text = |strings: &mut Strings, text: &str| ArgValue::Text(Some(strings.add_str(text)));
        let mut add = |strings: &mut Strings, key: &str, value| args.push(Arg::new(strings.add_str(key), value));
        let value = text(strings, "descriptor");
        add(strings, "source", value);
        add(strings, "trace_id", ArgValue::Int(crate::tables::signed(uuid)));
        add(strings, "is_root_in_scope", ArgValue::Bool(is_root));
        if let Some(counter) = &description.counter {
            if let Some(&category) = counter.categories.first() {
                add(strings, "category", ArgValue::Text(Some(category)));
            }
            let kind = match counter.kind {
                1 => Some("thread_time"),
                2 => Some("thread_instruction_count"),
                _ => None,
            };
            if let Some(kind) = kind {
                let value = text(strings, kind);
                add(strings, "builtin_counter_type", value);
            }
        }
        if has_first {
            add(strings, "has_first_packet_on_sequence", ArgValue::Bool(true));
        }
        if let Some(description) = description.description {
            add(strings, "description", ArgValue::Text(Some(description)));
        }
        let ordering = match description.child_ordering {
            1 => Some("lexicographic"),
            2 => Some("chronological"),
            3 => Some("explicit"),
            _ => None,
        };
        if let Some(ordering) = ordering {
            let value = text(strings, ordering);
            add(strings, "child_ordering", value);
        }
        if let Some(rank) = description.rank {
            add(strings, "sibling_order_rank", ArgValue::Int(i64::from(rank)));
        }
        self.tables.args.add(&mut args)
    }

    /// Returns the first lane of a group. If there is none, it is made for `member`.
    pub(crate) fn first_lane(&mut self, group: usize, member: u64, has_first: bool) -> Row {
        match self.event_tracks.groups[group].lanes.first() {
            Some(track) => track,
            None => {
                let lane = self.add_lane(group, member, has_first);
                self.event_tracks.groups[group].lanes.track(lane)
            }
        }
    }

    /// Adds a lane that a member needs.
    pub(crate) fn add_lane(&mut self, group: usize, member: u64, has_first: bool) -> usize {
        let Group { key, lanes } = &self.event_tracks.groups[group];
        let (key, number) = (*key, lanes.len());
        let slot = self.event_tracks.slot(key.machine, member);
        let description = self.event_tracks.slots[slot].description.clone();
        let (kind, owner) = match key.scope {
            Scope::Thread(utid) => ("thread_merged_track_event", Some(Dimension::Thread(utid))),
            Scope::Process(upid) => ("process_merged_track_event", Some(Dimension::Process(upid))),
            Scope::Global => ("global_merged_track_event", None),
        };
        let (merge_type, merge_value) = match key.merge {
            Merge::ByKey(value) => (2, value),
            Merge::ByName | Merge::Never => (0, key.name),
        };
        let merge_value = merge_value
            .map_or(Dimension::NoText("merge_key_value"), |value| Dimension::Symbol("merge_key_value", value));
        let dimensions: Vec<Dimension<'_>> = owner
            .into_iter()
            .chain([
                Dimension::Number("parent_track_uuid", crate::tables::signed(key.parent)),
                Dimension::Number("merge_key_type", merge_type),
            ])
            .chain([merge_value, Dimension::Number("track_compressor_idx", i64::try_from(number).unwrap_or(i64::MAX))])
            .collect();
        let name = description.as_ref().and_then(|description| description.name);
        let machine = self.processes.machine_row(key.machine);
        let spec = TrackSpec { machine, ..TrackSpec::new(kind, name, &dimensions) };
        let (track, _) = self.tracks.intern(&mut self.tables, &spec);
        if let Some(description) = &description {
            self.tables.track.source_arg_set_id[track.index()] =
                self.source_arguments(description, member, member == 0, has_first && member != 0);
            if description.parent != 0 {
                let parent = self.event_tracks.slot(key.machine, description.parent);
                let is_root = self.resolve_track(parent).is_none_or(|(_, is_root)| is_root);
                if !is_root {
                    self.tables.track.parent_id[track.index()] = self.parent_track(parent, has_first);
                }
            }
        }
        self.event_tracks.groups[group].lanes.push(track, member)
    }

    fn parent_track(&mut self, parent: Slot, has_first: bool) -> Option<Row> {
        let uuid = self.event_tracks.slots[parent].uuid;
        Some(match self.event_track(parent, None, has_first)? {
            EventTrack::Single(track) => track,
            EventTrack::Lanes { group, .. } => self.first_lane(group, uuid, has_first),
        })
    }

    /// Returns the track of an event of a member.
    pub(crate) fn member_track(&mut self, group: usize, member: u64, lane_use: LaneUse, has_first: bool) -> Row {
        let lane = match self.event_tracks.groups[group].lanes.take(member) {
            Some(lane) => lane,
            None => self.add_lane(group, member, has_first),
        };
        let lanes = &mut self.event_tracks.groups[group].lanes;
        if lane_use != LaneUse::End {
            lanes.begin(lane, true);
        }
        if lane_use != LaneUse::Begin {
            lanes.end(lane);
        }
        lanes.track(lane)
    }
}
