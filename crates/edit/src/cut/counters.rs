//! Counters whose values are differences to the one before: the sum of those that are left out
//! becomes one value.

use std::collections::{BTreeMap, HashSet};

use esatto_protozero::{Fields, append_to};
use esatto_schema::trace_packet::field as packet_field;
use esatto_schema::track_event::field;
use esatto_schema::track_event_defaults::field as defaults_field;
use esatto_schema::{counter_descriptor, trace_packet_defaults, track_descriptor};
use esatto_trace::TimedPacket;

use super::set_time;
use crate::packet::{append_message, last, without};

/// Type of an event that has the value of a counter.
const COUNTER: u64 = 4;

/// A value of a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Int(i64),
    Double(f64),
}

#[derive(Debug)]
struct Sum {
    value: Value,
    time: i64,
    /// A packet of the sequence without payload and time.
    envelope: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    /// The tracks, by machine, whose values are differences.
    incremental: HashSet<(u32, u64)>,
    /// The sums that are left out, by sequence and track.
    sums: BTreeMap<(usize, u64), Sum>,
}

impl Counters {
    pub(super) fn describe(&mut self, packet: &[u8], found: &TimedPacket) {
        let Some(descriptor) = last(packet, packet_field::TRACK_DESCRIPTOR) else { return };
        let counter = last(descriptor.as_bytes(), track_descriptor::field::COUNTER);
        let is_incremental = counter
            .and_then(|counter| last(counter.as_bytes(), counter_descriptor::field::IS_INCREMENTAL))
            .is_some_and(|flag| flag.as_bool());
        if let (true, Some(uuid)) = (is_incremental, last(descriptor.as_bytes(), track_descriptor::field::UUID)) {
            self.incremental.insert((found.machine, uuid.as_u64()));
        }
    }

    /// Returns the differences that an event has, with their tracks.
    pub(super) fn values(&self, event: &[u8], defaults: &[u8], machine: u32) -> Vec<(u64, Value)> {
        if self.incremental.is_empty() {
            return Vec::new();
        }
        let defaults = last(defaults, trace_packet_defaults::field::TRACK_EVENT_DEFAULTS)
            .map_or(&[][..], |found| found.as_bytes());
        let mut values = Vec::new();
        if last(event, field::TYPE).is_some_and(|kind| kind.as_u64() == COUNTER) {
            let track = last(event, field::TRACK_UUID).or_else(|| last(defaults, defaults_field::TRACK_UUID));
            let int = last(event, field::COUNTER_VALUE).map(|value| Value::Int(value.as_i64()));
            let double = last(event, field::DOUBLE_COUNTER_VALUE).map(|value| Value::Double(value.as_f64()));
            values.extend(track.map(|track| track.as_u64()).zip(int.or(double)));
        }
        let tracks = |own: u32, default: u32| {
            let own = numbers(event, own);
            if own.is_empty() { numbers(defaults, default) } else { own }
        };
        let extra = tracks(field::EXTRA_COUNTER_TRACK_UUIDS, defaults_field::EXTRA_COUNTER_TRACK_UUIDS);
        let ints = numbers(event, field::EXTRA_COUNTER_VALUES).into_iter();
        values.extend(extra.into_iter().zip(ints.map(|bits| Value::Int(i64::from_ne_bytes(bits.to_ne_bytes())))));
        let extra = tracks(field::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS, defaults_field::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS);
        values.extend(
            extra.into_iter().zip(doubles(event, field::EXTRA_DOUBLE_COUNTER_VALUES).into_iter().map(Value::Double)),
        );
        values.retain(|(track, _)| self.incremental.contains(&(machine, *track)));
        values
    }

    /// Adds differences that are left out.
    pub(super) fn add(
        &mut self,
        sequence: usize,
        values: Vec<(u64, Value)>,
        time: i64,
        envelope: impl Fn() -> Vec<u8>,
    ) {
        for (track, value) in values {
            let sum = self.sums.entry((sequence, track)).or_insert_with(|| {
                let value = if matches!(value, Value::Int(_)) { Value::Int(0) } else { Value::Double(0.0) };
                Sum { value, time, envelope: envelope() }
            });
            sum.time = time;
            sum.value = match (sum.value, value) {
                (Value::Int(sum), Value::Int(value)) => Value::Int(sum.wrapping_add(value)),
                (Value::Double(sum), Value::Double(value)) => Value::Double(sum + value),
                (_, value) => value,
            };
        }
    }

    /// Forgets the sums of a sequence, whose counters begin again.
    pub(super) fn clear(&mut self, sequence: usize) {
        self.sums.retain(|(owner, _), _| *owner != sequence);
    }

    /// Returns packets with the sums of a sequence, and forgets them.
    pub(super) fn release(&mut self, sequence: usize, clock: u32) -> Vec<Vec<u8>> {
        let tracks: Vec<u64> = self.sums.range((sequence, 0)..=(sequence, u64::MAX)).map(|(key, _)| key.1).collect();
        let packet = |track| {
            let Sum { value, time, envelope: mut packet } = self.sums.remove(&(sequence, track))?;
            set_time(&mut packet, time, clock);
            append_to(&mut packet, |mut message| {
                let mut event = message.begin(packet_field::TRACK_EVENT);
                event.varint(field::TYPE, COUNTER);
                event.varint(field::TRACK_UUID, track);
                match value {
                    Value::Int(value) => event.int(field::COUNTER_VALUE, value),
                    Value::Double(value) => event.double(field::DOUBLE_COUNTER_VALUE, value),
                }
            });
            Some(packet)
        };
        tracks.into_iter().filter_map(packet).collect()
    }
}

/// Returns the packet of an event without the values of counters on it.
pub(super) fn without_values(packet: &[u8], event: &[u8]) -> Vec<u8> {
    let event = without(event, |id| {
        matches!(
            id,
            field::EXTRA_COUNTER_TRACK_UUIDS
                | field::EXTRA_COUNTER_VALUES
                | field::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS
                | field::EXTRA_DOUBLE_COUNTER_VALUES
        )
    });
    let mut packet = without(packet, |id| id == packet_field::TRACK_EVENT);
    append_message(&mut packet, packet_field::TRACK_EVENT, &event);
    packet
}

/// Returns numbers that are fields of their own, or packed.
fn numbers(message: &[u8], id: u32) -> Vec<u64> {
    let fields = Fields::new(message).filter(|field| field.id == id);
    fields.flat_map(|field| crate::cut::ftrace::varints(&field)).collect()
}

fn doubles(message: &[u8], id: u32) -> Vec<f64> {
    let mut values = Vec::new();
    for field in Fields::new(message).filter(|field| field.id == id) {
        let packed = field.as_bytes();
        if packed.is_empty() {
            values.push(field.as_f64());
        }
        values.extend(packed.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap_or_default())));
    }
    values
}
