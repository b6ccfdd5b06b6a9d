//! An event that begins or ends a slice, and the names by which an end finds its begin.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use esatto_protozero::Fields;
use esatto_schema::interned_data::field as interned;
use esatto_schema::trace_packet::field as packet_field;
use esatto_schema::track_event::field;
use esatto_schema::track_event::legacy_event::field as legacy;
use esatto_schema::{trace_packet_defaults, track_event_defaults};
use esatto_trace::TimedPacket;

use crate::packet::last;

const BEGIN: u64 = 1;
const END: u64 = 2;

/// A track that slices nest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Track {
    /// It is named by its id, on a machine.
    Named(u32, u64),
    /// The track that a sequence has without a name.
    OfSequence(u32),
    /// Events of the older form with an id, or of another thread: a machine and a hash.
    Other(u32, u64),
}

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Begin,
    End,
    /// It is over after some nanoseconds.
    Whole(i64),
}

/// An event, as the slices of its track see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SliceEvent {
    pub(super) track: Track,
    pub(super) kind: Kind,
    /// Hashes of the name and of the categories; 0 if there are none.
    pub(super) name: u64,
    pub(super) category: u64,
}

impl SliceEvent {
    /// Reads an event without its name and categories.
    pub(super) fn read(packet: &[u8], event: &[u8], defaults: &[u8], found: &TimedPacket) -> Self {
        let number = |id: u32| last(event, id).map(|field| field.as_u64());
        let default = last(defaults, trace_packet_defaults::field::TRACK_EVENT_DEFAULTS)
            .and_then(|defaults| last(defaults.as_bytes(), track_event_defaults::field::TRACK_UUID))
            .map(|uuid| uuid.as_u64());
        let of_sequence = Track::OfSequence(u32::try_from(found.sequence).unwrap_or(u32::MAX));
        let uuid = number(field::TRACK_UUID).or(default);
        let track = uuid.map_or(of_sequence, |uuid| Track::Named(found.machine, uuid));
        let kind = match number(field::TYPE) {
            Some(BEGIN) => Kind::Begin,
            Some(END) => Kind::End,
            _ => Kind::Whole(0),
        };
        let read = Self { track, kind, name: 0, category: 0 };
        match last(event, field::LEGACY_EVENT) {
            Some(old) => read.with_older_form(packet, old.as_bytes(), found),
            None => read,
        }
    }

    fn with_older_form(mut self, packet: &[u8], old: &[u8], found: &TimedPacket) -> Self {
        let number = |id: u32| last(old, id).map(|field| field.as_u64());
        let process = || last(packet, packet_field::TRUSTED_PID).map_or(0, |pid| pid.as_u64());
        let phase = number(legacy::PHASE).and_then(|phase| u8::try_from(phase).ok()).unwrap_or(0);
        self.kind = match phase {
            b'B' | b'b' | b'S' => Kind::Begin,
            b'E' | b'e' | b'F' => Kind::End,
            b'X' => {
                let micros = last(old, legacy::DURATION_US).map_or(0, |dur| dur.as_i64());
                Kind::Whole(micros.saturating_mul(1000).max(0))
            }
            b'n' | b'T' | b'p' => Kind::Whole(0),
            _ => self.kind,
        };
        if matches!(phase, b'b' | b'S' | b'e' | b'F' | b'n' | b'T' | b'p') {
            let ids = [legacy::UNSCOPED_ID, legacy::LOCAL_ID, legacy::GLOBAL_ID];
            let id = ids.into_iter().find_map(|field| Some((field, number(field)?)));
            let process = id.filter(|(field, _)| *field == legacy::LOCAL_ID).map(|_| process());
            let scope = last(old, legacy::ID_SCOPE).map(|scope| scope.as_bytes());
            self.track = Track::Other(found.machine, hash(&(id.map(|(_, id)| id), process, scope)));
        } else if matches!(self.track, Track::OfSequence(_)) {
            let overrides = [legacy::PID_OVERRIDE, legacy::TID_OVERRIDE].map(number);
            if overrides != [None, None] {
                self.track = Track::Other(found.machine, hash(&(overrides, self.track)));
            }
        }
        self
    }

    /// Adds the name and the categories.
    pub(super) fn with_names(mut self, event: &[u8], names: &Names, sequence: usize) -> Self {
        let mut categories = 0;
        for found in Fields::new(event) {
            match found.id {
                field::NAME => self.name = hash(&found.as_bytes()),
                field::NAME_IID => self.name = names.get(sequence, interned::EVENT_NAMES, found.as_u64()).unwrap_or(0),
                field::CATEGORIES | field::CATEGORY_IIDS => {
                    let iid = || names.get(sequence, interned::EVENT_CATEGORIES, found.as_u64());
                    let one = match found.id {
                        field::CATEGORIES => hash(&found.as_bytes()),
                        _ => iid().unwrap_or_else(|| hash(&("unknown", found.as_u64()))),
                    };
                    categories += 1;
                    self.category = if categories == 1 { one } else { hash(&(self.category, one)) };
                }
                _ => {}
            }
        }
        self
    }
}

/// Names and categories that sequences have announced, as hashes.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By sequence, field and number.
    sequences: HashMap<usize, HashMap<(u32, u64), u64>>,
}

impl Names {
    /// Takes what a packet announces.
    pub(super) fn add(&mut self, packet: &[u8], found: &TimedPacket) {
        if found.clears_state {
            self.sequences.remove(&found.sequence);
        }
        for data in Fields::new(packet).filter(|field| field.id == packet_field::INTERNED_DATA) {
            for entry in Fields::new(data.as_bytes()) {
                if !matches!(entry.id, interned::EVENT_NAMES | interned::EVENT_CATEGORIES) {
                    continue;
                }
                // Both have a number and a text.
                let (mut iid, mut text) = (0, &[][..]);
                for part in Fields::new(entry.as_bytes()) {
                    match part.id {
                        1 => iid = part.as_u64(),
                        2 => text = part.as_bytes(),
                        _ => {}
                    }
                }
                self.sequences.entry(found.sequence).or_default().insert((entry.id, iid), hash(&text));
            }
        }
    }

    fn get(&self, sequence: usize, field: u32, iid: u64) -> Option<u64> {
        self.sequences.get(&sequence)?.get(&(field, iid)).copied()
    }
}

/// Returns a hash that is not 0.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish().max(1)
}
