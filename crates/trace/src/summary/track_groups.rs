//! Tracks and counters of a summary.

use super::{CounterSummary, TrackSummary};
use crate::engine::context::Context;
use crate::engine::event_tracks::Owner;
use crate::string_table::Symbol;
use crate::tables::{Row, Table as _, Tables};
use crate::trace::TrackType;
use hashbrown::HashMap;

/// Longest name of a track; longer ones are cut.
const MAX_TRACK_NAME_CHARS: usize = 1000;

/// Facts about a track that its row does not have.
#[derive(Debug, Clone, Copy)]
struct Known {
    kind: TrackType,
    uuid: u64,
    /// The first lane of the tracks that it is shown with.
    first_lane: usize,
    /// A program described it, or wrote events on it.
    is_of_event: bool,
}

/// Sums of a counter.
#[derive(Debug, Clone, Copy)]
struct Sums {
    values: u64,
    min: f64,
    max: f64,
    first: f64,
    last: f64,
}

/// Tracks with the numbers of what is on them, by row.
#[derive(Debug)]
pub(super) struct TrackGroups {
    known: Vec<Known>,
    /// Slices and instants of each track.
    pub(super) slices: Vec<u64>,
    sums: Vec<Option<Sums>>,
}

impl TrackGroups {
    pub(super) fn new(tables: &Tables, context: &Context) -> Self {
        let rows = tables.track.rows();
        let plain = |row: usize| Known {
            kind: match (tables.track.is_counter[row], tables.strings.get(tables.track.r#type[row])) {
                (true, _) => TrackType::Counter,
                (false, "thread_execution") => TrackType::Thread,
                _ => TrackType::Custom,
            },
            uuid: 0,
            first_lane: row,
            is_of_event: false,
        };
        let mut known: Vec<Known> = (0..rows).map(plain).collect();
        for slot in &context.event_tracks.slots {
            let Some(row) = slot.row(&context.event_tracks) else { continue };
            let entry = &mut known[row.index()];
            if entry.is_of_event {
                continue;
            }
            (entry.is_of_event, entry.uuid) = (true, slot.uuid);
            entry.kind = match slot.description.as_ref().map(|description| description.owner) {
                Some(Owner::Thread { .. }) => TrackType::Thread,
                Some(Owner::Process { .. }) => TrackType::Process,
                _ if slot.description.as_ref().is_some_and(|description| description.is_state) => TrackType::State,
                _ => entry.kind,
            };
        }
        for lanes in context.event_tracks.lanes().chain(context.lane_groups.lanes()) {
            let Some(first) = lanes.first() else { continue };
            for lane in lanes.tracks() {
                known[lane.index()] = known[first.index()];
            }
        }
        let mut groups = Self { known, slices: vec![0; rows], sums: vec![None; rows] };
        for track in &tables.slice.track_id {
            groups.slices[track.index()] += 1;
        }
        for (row, track) in tables.counter.track_id.iter().enumerate() {
            let value = tables.counter.value[row];
            let new = Sums { values: 0, min: value, max: value, first: value, last: value };
            let sums = groups.sums[track.index()].get_or_insert(new);
            sums.values += 1;
            sums.min = sums.min.min(value);
            sums.max = sums.max.max(value);
            sums.last = value;
        }
        groups
    }

    /// Returns the kind of a track.
    pub(super) fn kind(&self, track: Row) -> TrackType {
        self.known[track.index()].kind
    }

    /// Returns the tracks, without the counters of the system.
    pub(super) fn summaries(&self, tables: &Tables) -> Vec<TrackSummary> {
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut list: Vec<TrackSummary> = Vec::new();
        for (row, known) in self.known.iter().enumerate() {
            if known.kind == TrackType::Counter && !known.is_of_event {
                continue;
            }
            let place = *places.entry(known.first_lane).or_insert_with(|| {
                list.push(self.summary(row, tables));
                list.len() - 1
            });
            let summary = &mut list[place];
            summary.lanes += 1;
            summary.lanes_with_slices += usize::from(self.slices[row] > 0);
            summary.slices += self.slices[row];
            summary.counter_values += self.sums[row].map_or(0, |sums| sums.values);
        }
        list
    }

    fn summary(&self, row: usize, tables: &Tables) -> TrackSummary {
        let (track, strings) = (&tables.track, &tables.strings);
        let text = |name: Option<Symbol>| name.map(|name| shortened(strings.get(name)));
        let (utid, upid) = tables.owner_of_track(row);
        TrackSummary {
            track_type: self.known[row].kind,
            machine_id: tables.machine_id(track.machine_id[row]),
            uuid: self.known[row].uuid,
            name: text(track.name[row]),
            pid: upid.map(|upid| tables.process.pid[upid.index()]),
            process_name: upid.and_then(|upid| text(tables.process.name[upid.index()])),
            tid: utid.map(|utid| tables.thread.tid[utid.index()]),
            thread_name: utid.and_then(|utid| text(tables.thread.name[utid.index()])),
            lanes: 0,
            lanes_with_slices: 0,
            slices: 0,
            counter_values: 0,
        }
    }

    /// Returns the counters with values.
    pub(super) fn counters(&self, tables: &Tables) -> Vec<CounterSummary> {
        let counter = |(row, sums): (usize, &Option<Sums>)| {
            let sums = (*sums)?;
            let (utid, upid) = tables.owner_of_track(row);
            let pid = upid.map(|upid| tables.process.pid[upid.index()]);
            let scope = match (utid, pid, tables.track.cpu[row]) {
                (Some(utid), ..) => format!("thread {}", tables.thread.tid[utid.index()]),
                (None, Some(pid), _) => format!("process {pid}"),
                (None, None, Some(cpu)) => format!("cpu {cpu}"),
                _ => String::new(),
            };
            let name = tables.track.name[row].map(|name| shortened(tables.strings.get(name)));
            let name = name.filter(|name| !name.is_empty());
            Some(CounterSummary {
                machine_id: tables.machine_id(tables.track.machine_id[row]),
                name: name.unwrap_or_else(|| format!("track {:#x}", self.known[row].uuid)),
                scope,
                pid,
                values: sums.values,
                min: sums.min,
                max: sums.max,
                first: sums.first,
                last: sums.last,
            })
        };
        self.sums.iter().enumerate().filter_map(counter).collect()
    }
}

/// Shortens the name of a track, because many tracks may have it from one interned string.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(MAX_TRACK_NAME_CHARS) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}
