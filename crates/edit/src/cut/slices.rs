//! Slices that are open at an end of the interval.

use std::collections::{BTreeSet, HashMap};

use esatto_schema::track_event::field;
use esatto_schema::track_event::legacy_event::field as legacy;
use esatto_schema::{trace_packet_defaults, track_event_defaults};
use esatto_trace::TimedPacket;

use crate::packet::last;

const BEGIN: u64 = 1;
const END: u64 = 2;

/// Open slices of a track that are remembered, as many as readers nest.
const MAX_OPEN_SLICES: usize = 512;

/// A track that slices nest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Track {
    /// It is named by its id, on a machine.
    Named(u32, u64),
    /// The track that a sequence has without a name.
    OfSequence(usize),
    /// Events of the older form with an id.
    Async(u32, u64),
}

impl Track {
    /// The first one in order.
    const FIRST: Self = Self::Named(0, 0);
}

/// A slice that has not ended.
#[derive(Debug)]
struct Open {
    sequence: usize,
    /// The packet of its begin, unless it is in the result.
    waiting: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Stack {
    open: Vec<Open>,
    /// Open slices that began after the interval.
    later: u64,
}

/// Fate of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// It is kept, after these packets.
    Keep(Vec<Vec<u8>>),
    /// It is kept if a later event shows that it must be.
    Wait,
    Drop,
}

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Begin,
    End,
    /// It is over after some nanoseconds.
    Whole(i64),
}

/// Slices of all tracks. Tracks without an open one are not remembered.
#[derive(Debug, Default)]
pub(super) struct Slices {
    stacks: HashMap<Track, Stack>,
    /// Tracks on which packets of a sequence may wait.
    waiting: BTreeSet<(usize, Track)>,
}

impl Slices {
    /// Takes an event at a time. `packet` makes the packet that waits.
    pub(super) fn add(
        &mut self,
        event: &[u8],
        defaults: &[u8],
        found: &TimedPacket,
        time: i64,
        (from, to): (i64, i64),
        packet: impl FnOnce() -> Vec<u8>,
    ) -> Action {
        let (track, kind) = read(event, defaults, found);
        let is_inside = (from..=to).contains(&time);
        match (kind, self.stacks.get_mut(&track)) {
            (Kind::Whole(dur), _) if !is_inside => {
                let overlaps = time < from && time.saturating_add(dur) >= from && dur > 0;
                if overlaps { Action::Keep(Vec::new()) } else { Action::Drop }
            }
            (Kind::Whole(_), Some(stack)) => Action::Keep(stack.release(track, &mut self.waiting)),
            (Kind::Whole(_), None) => Action::Keep(Vec::new()),
            (Kind::End, None) => {
                if is_inside {
                    Action::Keep(Vec::new())
                } else {
                    Action::Drop
                }
            }
            (Kind::End, Some(stack)) => {
                let action = if time < from {
                    match stack.open.pop() {
                        Some(Open { waiting: None, .. }) => Action::Keep(Vec::new()),
                        _ => Action::Drop,
                    }
                } else if stack.later > 0 {
                    stack.later -= 1;
                    Action::Drop
                } else {
                    let waiting = stack.release(track, &mut self.waiting);
                    let has_begin = stack.open.pop().is_some();
                    if is_inside || has_begin { Action::Keep(waiting) } else { Action::Drop }
                };
                if stack.open.is_empty() && stack.later == 0 {
                    self.stacks.remove(&track);
                    self.waiting.remove(&(found.sequence, track));
                }
                action
            }
            (Kind::Begin, _) => {
                let stack = self.stacks.entry(track).or_default();
                if time < from {
                    if stack.open.len() < MAX_OPEN_SLICES {
                        stack.open.push(Open { sequence: found.sequence, waiting: Some(packet()) });
                        self.waiting.insert((found.sequence, track));
                    }
                    Action::Wait
                } else if is_inside {
                    let waiting = stack.release(track, &mut self.waiting);
                    stack.open.push(Open { sequence: found.sequence, waiting: None });
                    Action::Keep(waiting)
                } else {
                    stack.later += 1;
                    Action::Drop
                }
            }
        }
    }

    /// Returns the packets of a sequence that wait.
    pub(super) fn release_sequence(&mut self, sequence: usize) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        while let Some(&(owner, track)) = self.waiting.range((sequence, Track::FIRST)..).next() {
            if owner != sequence {
                break;
            }
            self.waiting.remove(&(owner, track));
            let open = self.stacks.get_mut(&track).into_iter().flat_map(|stack| &mut stack.open);
            packets.extend(open.filter(|open| open.sequence == sequence).filter_map(|open| open.waiting.take()));
        }
        packets
    }

    /// Returns all packets that wait.
    pub(super) fn release_all(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        while let Some((_, track)) = self.waiting.pop_first() {
            if let Some(stack) = self.stacks.get_mut(&track) {
                packets.extend(stack.release(track, &mut self.waiting));
            }
        }
        packets
    }
}

impl Stack {
    /// Returns all packets that wait, in the order of their begins.
    fn release(&mut self, track: Track, waiting: &mut BTreeSet<(usize, Track)>) -> Vec<Vec<u8>> {
        let take = |open: &mut Open| {
            let packet = open.waiting.take()?;
            waiting.remove(&(open.sequence, track));
            Some(packet)
        };
        self.open.iter_mut().filter_map(take).collect()
    }
}

fn read(event: &[u8], defaults: &[u8], found: &TimedPacket) -> (Track, Kind) {
    let number = |id: u32| last(event, id).map(|field| field.as_u64());
    let default = last(defaults, trace_packet_defaults::field::TRACK_EVENT_DEFAULTS)
        .and_then(|defaults| last(defaults.as_bytes(), track_event_defaults::field::TRACK_UUID))
        .map(|uuid| uuid.as_u64());
    let uuid = number(field::TRACK_UUID).or(default);
    let track = uuid.map_or(Track::OfSequence(found.sequence), |uuid| Track::Named(found.machine, uuid));
    let kind = match number(field::TYPE) {
        Some(BEGIN) => Kind::Begin,
        Some(END) => Kind::End,
        _ => Kind::Whole(0),
    };
    let Some(old) = last(event, field::LEGACY_EVENT).map(|old| old.as_bytes()) else { return (track, kind) };
    let number = |id: u32| last(old, id).map(|field| field.as_u64());
    let phase = number(legacy::PHASE).and_then(|phase| u8::try_from(phase).ok()).unwrap_or(0);
    match phase {
        b'B' => (track, Kind::Begin),
        b'E' => (track, Kind::End),
        b'X' => {
            let micros = last(old, legacy::DURATION_US).map_or(0, |dur| dur.as_i64());
            (track, Kind::Whole(micros.saturating_mul(1000)))
        }
        b'b' | b'S' | b'e' | b'F' | b'n' | b'T' | b'p' => {
            let ids = [legacy::UNSCOPED_ID, legacy::LOCAL_ID, legacy::GLOBAL_ID];
            let id = ids.into_iter().find_map(number).unwrap_or(0);
            let kind = match phase {
                b'b' | b'S' => Kind::Begin,
                b'e' | b'F' => Kind::End,
                _ => Kind::Whole(0),
            };
            (Track::Async(found.machine, id), kind)
        }
        _ => (track, kind),
    }
}
