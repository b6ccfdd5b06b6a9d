//! Track descriptors (`docs/spec/track-event.md` §7).

use std::collections::HashMap;

use esatto_protozero::Fields;
use esatto_schema::{
    START_TIMES_FIELD, counter_descriptor, process_descriptor, start_times, thread_descriptor, track_descriptor,
};

use crate::processes::{Processes, StartTimes};
use crate::string_table::{Strings, Symbol};
use crate::track_key::TrackKey;

/// Largest number of ancestors; tracks with more count as having a missing ancestor.
const MAX_DEPTH: usize = 100;

/// Kind of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrackKind {
    /// Track of a process, by its index in the list.
    Process(usize),
    /// Track of a thread, by its index in the list.
    Thread(usize),
    Counter,
    State,
    Plain,
}

/// Rule by which sibling tracks are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Merge {
    ByName,
    ByKey(Symbol),
    ByNumber(u64),
    Never,
}

#[derive(Debug, Clone)]
pub(crate) struct Descriptor {
    /// The uuid of its parent, on the same machine.
    pub(crate) parent: Option<u64>,
    pub(crate) name: Option<Symbol>,
    pub(crate) kind: TrackKind,
    pub(crate) merge: Merge,
    pub(crate) counter: Counter,
}

/// The used fields of a `CounterDescriptor`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) multiplier: i64,
    pub(crate) incremental: bool,
    pub(crate) unit: Option<Symbol>,
    kind: i32,
}

/// Reason why a descriptor was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It lacks uuid, pid or tid, or has uuid 0 and a parent.
    Incomplete,
    /// It contradicts the first descriptor of its track.
    Conflict,
}

/// All described tracks.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    pub(crate) descriptors: HashMap<TrackKey, Descriptor>,
}

impl Tracks {
    pub(crate) fn add(
        &mut self,
        bytes: &[u8],
        machine: u32,
        strings: &mut Strings,
        processes: &mut Processes,
    ) -> Result<(), Refused> {
        use track_descriptor::field;
        let (mut uuid, mut parent, mut name) = (None, None, None);
        let (mut process, mut thread, mut counter, mut state) = (None, None, None, false);
        let (mut behavior, mut key, mut start) = (0, None, None);
        for f in Fields::new(bytes) {
            match f.id {
                field::UUID => uuid = Some(f.as_u64()),
                field::PARENT_UUID => parent = Some(f.as_u64()).filter(|&uuid| uuid != 0),
                field::NAME | field::STATIC_NAME | field::ATRACE_NAME => name = Some(strings.add(f.as_bytes())),
                field::PROCESS => process = Some(f.as_bytes()),
                field::THREAD => thread = Some(f.as_bytes()),
                field::COUNTER => counter = Some(f.as_bytes()),
                field::STATE => state = true,
                START_TIMES_FIELD => start = Some(f.as_bytes()),
                field::SIBLING_MERGE_BEHAVIOR => behavior = f.as_i32(),
                field::SIBLING_MERGE_KEY => key = Some(Merge::ByKey(strings.add(f.as_bytes()))),
                field::SIBLING_MERGE_KEY_INT => key = Some(Merge::ByNumber(f.as_u64())),
                _ => {}
            }
        }
        let uuid = uuid.ok_or(Refused::Incomplete)?;
        if uuid == 0 && parent.is_some() {
            return Err(Refused::Incomplete);
        }
        let kind = match (thread, process) {
            (Some(thread), _) => TrackKind::Thread(
                add_thread(thread, machine, Some(uuid), strings, processes).ok_or(Refused::Incomplete)?,
            ),
            (None, Some(process)) => TrackKind::Process(
                add_process(process, machine, Some(uuid), strings, processes).ok_or(Refused::Incomplete)?,
            ),
            _ if counter.is_some() => TrackKind::Counter,
            _ if state => TrackKind::State,
            _ => TrackKind::Plain,
        };
        if let (TrackKind::Process(index), Some(bytes)) = (kind, start) {
            add_start_times(bytes, &mut processes.processes[index].start);
        }
        let merge = match (behavior, key) {
            (2, _) => Merge::Never,
            (3, Some(key)) => key,
            _ => Merge::ByName,
        };
        let counter = counter.map(|bytes| read_counter(bytes, strings)).unwrap_or_default();
        let key = TrackKey { machine, uuid };
        match self.descriptors.get_mut(&key) {
            Some(first) => {
                if first.parent != parent || first.kind != kind || first.counter != counter || first.merge != merge {
                    return Err(Refused::Conflict);
                }
                // A track that is merged with others keeps its first name, any other track takes
                // the last one.
                if first.name.is_none() || (name.is_some() && merge == Merge::Never) {
                    first.name = name;
                }
            }
            None => {
                self.descriptors.insert(key, Descriptor { parent, name, kind, merge, counter });
            }
        }
        Ok(())
    }

    /// Returns the tracks from this one up to its root; `None` if one of them is not described.
    pub(crate) fn ancestry(&self, track: TrackKey) -> Option<Vec<TrackKey>> {
        let mut way = vec![track];
        let mut at = self.descriptors.get(&track)?;
        while let Some(uuid) = at.parent {
            let parent = TrackKey { uuid, ..track };
            if way.len() > MAX_DEPTH {
                return None;
            }
            way.push(parent);
            at = self.descriptors.get(&parent)?;
        }
        Some(way)
    }

    /// Returns the counter of a counter track.
    pub(crate) fn counter(&self, track: TrackKey) -> Option<Counter> {
        self.descriptors.get(&track).filter(|track| track.kind == TrackKind::Counter).map(|track| track.counter)
    }
}

/// Reads a `ProcessDescriptor`. Returns its process, if it names one.
pub(crate) fn add_process(
    bytes: &[u8],
    machine: u32,
    uuid: Option<u64>,
    strings: &mut Strings,
    processes: &mut Processes,
) -> Option<usize> {
    use process_descriptor::field;
    let (mut pid, mut name, mut cmdline) = (None, None, Vec::new());
    for f in Fields::new(bytes) {
        match f.id {
            field::PID => pid = Some(i64::from(f.as_i32())),
            field::PROCESS_NAME => name = Some(strings.add(f.as_bytes())),
            field::CMDLINE => cmdline.push(strings.add(f.as_bytes())),
            _ => {}
        }
    }
    let index = processes.process(machine, pid?, uuid);
    let process = &mut processes.processes[index];
    process.name = name.or(process.name);
    if !cmdline.is_empty() {
        process.cmdline = cmdline;
    }
    Some(index)
}

/// Reads a `ThreadDescriptor`. Returns its thread, if it names one.
pub(crate) fn add_thread(
    bytes: &[u8],
    machine: u32,
    uuid: Option<u64>,
    strings: &mut Strings,
    processes: &mut Processes,
) -> Option<usize> {
    use thread_descriptor::field;
    let (mut pid, mut tid, mut name) = (None, None, None);
    for f in Fields::new(bytes) {
        match f.id {
            field::PID => pid = Some(i64::from(f.as_i32())),
            field::TID => tid = Some(f.as_i64()),
            field::THREAD_NAME => name = Some(strings.add(f.as_bytes())),
            _ => {}
        }
    }
    let index = processes.thread(machine, pid?, tid?, uuid);
    let thread = &mut processes.threads[index];
    thread.name = name.or(thread.name);
    Some(index)
}

/// Reads when a program connected and began to be recorded. The first values count.
fn add_start_times(bytes: &[u8], times: &mut StartTimes) {
    let mut read = StartTimes::default();
    for f in Fields::new(bytes) {
        match f.id {
            start_times::CONNECTED_NS => read.connected = Some(f.as_u64()),
            start_times::READY_NS => read.ready = Some(f.as_u64()),
            start_times::ENABLED_NS => read.enabled = Some(f.as_u64()),
            _ => {}
        }
    }
    if *times == StartTimes::default() {
        *times = read;
    }
}

fn read_counter(bytes: &[u8], strings: &mut Strings) -> Counter {
    use counter_descriptor::field;
    let mut counter = Counter { multiplier: 1, ..Counter::default() };
    for f in Fields::new(bytes) {
        match f.id {
            // 0 and negative multipliers count as 1.
            field::UNIT_MULTIPLIER => counter.multiplier = f.as_i64().max(1),
            field::IS_INCREMENTAL => counter.incremental = f.as_bool(),
            field::TYPE => counter.kind = f.as_i32(),
            field::UNIT_NAME => counter.unit = Some(strings.add(f.as_bytes())),
            field::UNIT => {
                counter.unit = match f.as_i32() {
                    1 => Some(strings.add_str("ns")),
                    2 => Some(strings.add_str("count")),
                    3 => Some(strings.add_str("bytes")),
                    _ => counter.unit,
                };
            }
            _ => {}
        }
    }
    counter
}
