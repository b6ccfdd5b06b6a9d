//! Descriptors of the tracks of track events, and the state that these tracks have.

use esatto_protozero::Fields;
use esatto_schema::{
    START_TIMES_FIELD, counter_descriptor, process_descriptor, start_times, thread_descriptor, track_descriptor,
};
use hashbrown::HashMap;

use super::chrome_names;
use super::lanes::Lanes;
use crate::string_table::{Strings, Symbol};
use crate::tables::Row;

/// A track that an event or a descriptor names: its position in the list of all of them.
pub(crate) type Slot = usize;

/// Counter of a described track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CounterInfo {
    pub(crate) multiplier: i64,
    pub(crate) incremental: bool,
    pub(crate) unit: Option<Symbol>,
    /// 1 is processor time of the thread, 2 its instructions.
    pub(crate) kind: i32,
    pub(crate) categories: Vec<Symbol>,
}

/// Rule by which sibling tracks are shown as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Merge {
    #[default]
    ByName,
    ByKey(Option<Symbol>),
    Never,
}

/// Owner of a described track.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    Thread {
        pid: i64,
        tid: i64,
    },
    Process {
        pid: i64,
    },
    #[default]
    Parent,
}

/// A described track. The first descriptor counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Description {
    pub(crate) parent: u64,
    /// Made up for events on a track that nobody described.
    pub(crate) is_guess: bool,
    pub(crate) name: Option<Symbol>,
    pub(crate) owner: Owner,
    pub(crate) merge: Merge,
    pub(crate) counter: Option<CounterInfo>,
    pub(crate) is_state: bool,
    pub(super) own_thread_track: bool,
    pub(super) description: Option<Symbol>,
    pub(super) child_ordering: i32,
    pub(super) rank: Option<i32>,
    pub(crate) thread_name: Option<Symbol>,
    pub(crate) process_name: Option<Symbol>,
    /// The words of the command line.
    pub(super) cmdline: Vec<Symbol>,
    pub(super) process_start: i64,
    /// When the program connected and began to be recorded.
    pub(crate) start: StartTimes,
    pub(super) labels: Vec<Symbol>,
    pub(super) chrome_process: Option<ChromeProcess>,
    /// Kind of a thread of Chromium.
    pub(super) chrome_thread: Option<i64>,
}

/// Facts that Chromium tells about one of its processes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChromeProcess {
    pub(super) kind: i64,
    pub(super) package: Option<Symbol>,
    pub(super) crash_trace_id: Option<u64>,
}

/// When a program connected and began to be recorded, in nanoseconds of `CLOCK_BOOTTIME`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StartTimes {
    pub(crate) connected: Option<u64>,
    /// When the program could begin to record.
    pub(crate) ready: Option<u64>,
    pub(crate) enabled: Option<u64>,
}

impl StartTimes {
    fn read(bytes: &[u8]) -> Self {
        let mut read = Self::default();
        for f in Fields::new(bytes) {
            match f.id {
                start_times::CONNECTED_NS => read.connected = Some(f.as_u64()),
                start_times::READY_NS => read.ready = Some(f.as_u64()),
                start_times::ENABLED_NS => read.enabled = Some(f.as_u64()),
                _ => {}
            }
        }
        read
    }
}

/// Owner of a track, with its rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    #[default]
    Global,
    Process(Row),
    Thread(Row),
}

/// State of a track while events are imported in the order of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    New,
    /// It is being resolved: an ancestor of itself.
    Busy,
    /// An ancestor is missing.
    Orphan,
    Resolved {
        scope: Scope,
        is_root: bool,
        /// Number of its ancestors.
        ancestors: usize,
    },
}

#[derive(Debug)]
pub(crate) struct TrackSlot {
    pub(crate) machine: u32,
    pub(crate) uuid: u64,
    pub(crate) description: Option<Description>,
    pub(super) state: State,
    /// The pid outside all namespaces of the program that described it last.
    pub(super) trusted_pid: Option<i64>,
    /// Its track, unless it has lanes.
    pub(super) track: Option<Row>,
    /// Its group of lanes.
    pub(super) group: Option<usize>,
}

impl TrackSlot {
    /// Returns who it belongs to, if that has been resolved.
    pub(crate) fn scope(&self) -> Option<Scope> {
        match self.state {
            State::Resolved { scope, .. } => Some(scope),
            _ => None,
        }
    }

    /// Returns its track, or the first lane of its group.
    pub(crate) fn row(&self, tracks: &EventTracks) -> Option<Row> {
        self.track.or_else(|| tracks.groups[self.group?].lanes.first())
    }
}

/// Tracks of track events.
#[derive(Debug, Default)]
pub(crate) struct EventTracks {
    pub(crate) slots: Vec<TrackSlot>,
    pub(super) index: HashMap<(u32, u64), Slot>,
    pub(super) groups: Vec<Group>,
    pub(super) group_index: HashMap<GroupKey, usize>,
    /// The track that described a thread or a process first.
    pub(super) thread_uuids: HashMap<(u32, Row), u64>,
    pub(super) process_uuids: HashMap<(u32, Row), u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    pub(super) machine: u32,
    pub(super) scope: Scope,
    pub(super) parent: u64,
    pub(super) merge: Merge,
    pub(super) name: Option<Symbol>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub(super) key: GroupKey,
    pub(super) lanes: Lanes,
}

/// Reason for which a descriptor is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It lacks uuid, pid or tid, or has uuid 0 and a parent.
    Incomplete,
    /// It contradicts the first descriptor of its track.
    Conflict,
}

impl EventTracks {
    /// Returns the lanes of each group.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &Lanes> {
        self.groups.iter().map(|group| &group.lanes)
    }

    pub(crate) fn slot(&mut self, machine: u32, uuid: u64) -> Slot {
        *self.index.entry((machine, uuid)).or_insert_with(|| {
            self.slots.push(TrackSlot {
                machine,
                uuid,
                description: None,
                state: State::New,
                trusted_pid: None,
                track: None,
                group: None,
            });
            self.slots.len() - 1
        })
    }

    /// Adds a `TrackDescriptor`, in the order of the file. Returns its slot.
    pub(crate) fn describe(&mut self, bytes: &[u8], machine: u32, strings: &mut Strings) -> Result<Slot, Refused> {
        let (uuid, found) = read(bytes, strings)?;
        let slot = self.slot(machine, uuid);
        match &mut self.slots[slot].description {
            Some(first) => {
                let agrees = first.parent == found.parent
                    && first.owner == found.owner
                    && first.merge == found.merge
                    && first.is_state == found.is_state
                    && first.counter == found.counter;
                if !agrees {
                    return Err(Refused::Conflict);
                }
                if first.name.is_none() || (found.name.is_some() && first.merge == Merge::Never) {
                    first.name = found.name;
                }
                first.thread_name = found.thread_name.or(first.thread_name);
                first.process_name = found.process_name.or(first.process_name);
                if first.start == StartTimes::default() {
                    first.start = found.start;
                }
                first.chrome_process = found.chrome_process.or(first.chrome_process);
                first.chrome_thread = found.chrome_thread.or(first.chrome_thread);
            }
            empty => *empty = Some(found),
        }
        Ok(slot)
    }
}

/// Reads a `TrackDescriptor`.
fn read(bytes: &[u8], strings: &mut Strings) -> Result<(u64, Description), Refused> {
    use track_descriptor::field;
    let mut uuid = None;
    let (mut process, mut thread, mut behavior, mut key) = (None, None, 0, None);
    let mut is_sandboxed = false;
    let mut found = Description::default();
    for f in Fields::new(bytes) {
        match f.id {
            field::UUID => uuid = Some(f.as_u64()),
            field::PARENT_UUID => found.parent = f.as_u64(),
            field::NAME | field::STATIC_NAME | field::ATRACE_NAME => found.name = name(f.as_bytes(), strings),
            START_TIMES_FIELD => found.start = StartTimes::read(f.as_bytes()),
            field::PROCESS => process = Some(f.as_bytes()),
            field::THREAD => thread = Some(f.as_bytes()),
            field::STATE => found.is_state = true,
            field::CHROME_PROCESS => found.chrome_process = Some(read_chrome_process(f.as_bytes(), strings)),
            field::CHROME_THREAD => {
                use esatto_schema::chrome_thread_descriptor::field;
                for f in Fields::new(f.as_bytes()) {
                    match f.id {
                        field::THREAD_TYPE => found.chrome_thread = Some(f.as_i64()),
                        field::IS_SANDBOXED_TID => is_sandboxed = f.as_bool(),
                        _ => {}
                    }
                }
            }
            field::COUNTER => found.counter = Some(read_counter(f.as_bytes(), strings)),
            field::DISALLOW_MERGING_WITH_SYSTEM_TRACKS => found.own_thread_track = f.as_bool(),
            field::DESCRIPTION => found.description = Some(strings.add(f.as_bytes())),
            field::CHILD_ORDERING => found.child_ordering = f.as_i32(),
            field::SIBLING_ORDER_RANK => found.rank = Some(f.as_i32()),
            field::SIBLING_MERGE_BEHAVIOR => behavior = f.as_i32(),
            field::SIBLING_MERGE_KEY => key = Some(strings.add(f.as_bytes())),
            field::SIBLING_MERGE_KEY_INT => {
                key = Some(strings.add_str(&format!("sibling_merge_key_int:{}", f.as_u64())));
            }
            _ => {}
        }
    }
    let uuid = uuid.ok_or(Refused::Incomplete)?;
    if uuid == 0 && found.parent != 0 {
        return Err(Refused::Incomplete);
    }
    if let Some(bytes) = thread {
        let (mut pid, mut tid) = (None, None);
        for f in Fields::new(bytes) {
            match f.id {
                thread_descriptor::field::PID => pid = Some(i64::from(f.as_i32())),
                thread_descriptor::field::TID => tid = Some(f.as_i64()),
                thread_descriptor::field::THREAD_NAME => found.thread_name = name(f.as_bytes(), strings),
                _ => {}
            }
        }
        let (pid, mut tid) = (pid.ok_or(Refused::Incomplete)?, tid.ok_or(Refused::Incomplete)?);
        if is_sandboxed {
            // Threads of other sandboxes have the same number.
            tid |= pid << 32;
        }
        found.owner = Owner::Thread { pid, tid };
    }
    if let Some(bytes) = process {
        let (mut pid, mut kind) = (None, None);
        for f in Fields::new(bytes) {
            match f.id {
                process_descriptor::field::PID => pid = Some(i64::from(f.as_i32())),
                process_descriptor::field::PROCESS_NAME => found.process_name = name(f.as_bytes(), strings),
                process_descriptor::field::CMDLINE => found.cmdline.push(strings.add(f.as_bytes())),
                process_descriptor::field::CHROME_PROCESS_TYPE => kind = Some(f.as_i64()),
                process_descriptor::field::START_TIMESTAMP_NS => found.process_start = f.as_i64(),
                process_descriptor::field::PROCESS_LABELS => found.labels.push(strings.add(f.as_bytes())),
                _ => {}
            }
        }
        let pid = pid.ok_or(Refused::Incomplete)?;
        if let (None, Some(name)) = (found.process_name, kind.and_then(chrome_names::process)) {
            found.process_name = Some(strings.add_str(name));
        }
        if thread.is_none() {
            found.owner = Owner::Process { pid };
        }
    }
    found.merge = match (behavior, key) {
        (2, _) => Merge::Never,
        (3, key) => Merge::ByKey(key),
        _ => Merge::ByName,
    };
    Ok((uuid, found))
}

fn read_chrome_process(bytes: &[u8], strings: &mut Strings) -> ChromeProcess {
    use esatto_schema::chrome_process_descriptor::field;
    let mut process = ChromeProcess::default();
    for f in Fields::new(bytes) {
        match f.id {
            field::PROCESS_TYPE => process.kind = f.as_i64(),
            field::HOST_APP_PACKAGE_NAME => process.package = Some(strings.add(f.as_bytes())),
            field::CRASH_TRACE_ID => process.crash_trace_id = Some(f.as_u64()),
            _ => {}
        }
    }
    process
}

/// Returns a name, unless it is empty.
fn name(bytes: &[u8], strings: &mut Strings) -> Option<Symbol> {
    (!bytes.is_empty()).then(|| strings.add(bytes))
}

fn read_counter(bytes: &[u8], strings: &mut Strings) -> CounterInfo {
    use counter_descriptor::field;
    let mut counter = CounterInfo { multiplier: 1, incremental: false, unit: None, kind: 0, categories: Vec::new() };
    for f in Fields::new(bytes) {
        match f.id {
            // 0 and negative multipliers count as 1.
            field::UNIT_MULTIPLIER => counter.multiplier = f.as_i64().max(1),
            field::IS_INCREMENTAL => counter.incremental = f.as_bool(),
            field::TYPE => counter.kind = f.as_i32(),
            field::CATEGORIES => counter.categories.push(strings.add(f.as_bytes())),
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
    if counter.unit.is_none() && counter.kind == 1 {
        counter.unit = Some(strings.add_str("ns"));
    }
    counter
}
