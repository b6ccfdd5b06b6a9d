//! Slices that are open at an end of the interval.

use std::collections::HashMap;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Track {
    /// It is named by its id, on a machine.
    Named(u32, u64),
    /// The track that a sequence has without a name.
    OfSequence(usize),
    /// Events of the older form with an id.
    Async(u32, u64),
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

#[derive(Debug, Default)]
pub(super) struct Slices(HashMap<Track, Stack>);

impl Slices {
    /// Takes an event at a time. `bytes` is its packet.
    pub(super) fn add(
        &mut self,
        event: &[u8],
        defaults: &[u8],
        found: &TimedPacket,
        time: i64,
        (from, to): (i64, i64),
        bytes: &[u8],
    ) -> Action {
        let (track, kind) = read(event, defaults, found);
        let is_inside = (from..=to).contains(&time);
        if let (Kind::Whole(dur), false) = (kind, is_inside) {
            let overlaps = time < from && time.saturating_add(dur) >= from && dur > 0;
            return if overlaps { Action::Keep(Vec::new()) } else { Action::Drop };
        }
        let stack = self.0.entry(track).or_default();
        match kind {
            Kind::Begin if time < from => {
                if stack.open.len() < MAX_OPEN_SLICES {
                    stack.open.push(Open { sequence: found.sequence, waiting: Some(bytes.to_vec()) });
                }
                Action::Wait
            }
            Kind::Begin if is_inside => {
                let waiting = stack.release();
                stack.open.push(Open { sequence: found.sequence, waiting: None });
                Action::Keep(waiting)
            }
            Kind::Begin => {
                stack.later += 1;
                Action::Drop
            }
            Kind::End if time < from => match stack.open.pop() {
                Some(Open { waiting: None, .. }) => Action::Keep(Vec::new()),
                _ => Action::Drop,
            },
            Kind::End if stack.later > 0 => {
                stack.later -= 1;
                Action::Drop
            }
            Kind::End => {
                let waiting = stack.release();
                let has_begin = stack.open.pop().is_some();
                if is_inside || has_begin { Action::Keep(waiting) } else { Action::Drop }
            }
            Kind::Whole(_) => Action::Keep(stack.release()),
        }
    }

    /// Returns the packets of a sequence that wait.
    pub(super) fn release_sequence(&mut self, sequence: usize) -> Vec<Vec<u8>> {
        let open = self.0.values_mut().flat_map(|stack| &mut stack.open);
        open.filter(|open| open.sequence == sequence).filter_map(|open| open.waiting.take()).collect()
    }

    /// Returns all packets that wait.
    pub(super) fn release_all(&mut self) -> Vec<Vec<u8>> {
        self.0.values_mut().flat_map(Stack::release).collect()
    }
}

impl Stack {
    fn release(&mut self) -> Vec<Vec<u8>> {
        self.open.iter_mut().filter_map(|open| open.waiting.take()).collect()
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
