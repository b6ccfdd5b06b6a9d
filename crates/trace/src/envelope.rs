//! Fields of a packet beside its payload (`docs/spec/track-event.md` §1, §10).

use esatto_protozero::Fields;
use esatto_schema::{clock_snapshot, trace_packet::field as packet_field};

use crate::clock_conversion::{ClockKey, Reading};
use crate::packet_sequence::STATE_CLEARED;

/// A packet: what all packets have, and its payload.
#[derive(Debug, Default)]
pub(crate) struct Envelope<'p> {
    pub(crate) timestamp: Option<u64>,
    pub(crate) clock: Option<u32>,
    pub(crate) sequence: u32,
    pub(crate) machine: u32,
    pub(crate) flags: u32,
    pub(crate) dropped: u32,
    pub(crate) first: bool,
    pub(crate) uid: Option<i32>,
    pub(crate) pid: Option<i32>,
    pub(crate) interned: Vec<&'p [u8]>,
    pub(crate) defaults: Option<&'p [u8]>,
    pub(crate) payload: Option<(u32, &'p [u8])>,
    pub(crate) snapshot: Option<&'p [u8]>,
}

impl<'p> Envelope<'p> {
    /// Reads a packet. The fields that are returned tell whether it is malformed.
    pub(crate) fn read(bytes: &'p [u8]) -> (Self, Fields<'p>) {
        let mut found = Self::default();
        let mut fields = Fields::new(bytes);
        for f in fields.by_ref() {
            match f.id {
                packet_field::TIMESTAMP => found.timestamp = Some(f.as_u64()),
                packet_field::TIMESTAMP_CLOCK_ID => found.clock = Some(f.as_u32()),
                packet_field::TRUSTED_PACKET_SEQUENCE_ID => found.sequence = f.as_u32(),
                packet_field::MACHINE_ID => found.machine = f.as_u32(),
                packet_field::SEQUENCE_FLAGS => found.flags |= f.as_u32(),
                packet_field::INCREMENTAL_STATE_CLEARED if f.as_bool() => found.flags |= STATE_CLEARED,
                packet_field::INCREMENTAL_STATE_CLEARED => {}
                packet_field::PREVIOUS_PACKET_DROPPED => found.dropped |= f.as_u32(),
                packet_field::FIRST_PACKET_ON_SEQUENCE => found.first = f.as_bool(),
                packet_field::TRUSTED_UID => found.uid = Some(f.as_i32()),
                packet_field::TRUSTED_PID => found.pid = Some(f.as_i32()),
                packet_field::INTERNED_DATA => found.interned.push(f.as_bytes()),
                packet_field::TRACE_PACKET_DEFAULTS => found.defaults = Some(f.as_bytes()),
                _ => {
                    if f.id == packet_field::CLOCK_SNAPSHOT {
                        found.snapshot = Some(f.as_bytes());
                    }
                    found.payload = Some((f.id, f.as_bytes()));
                }
            }
        }
        (found, fields)
    }
}

/// Reads a `ClockSnapshot`: its clocks, and the clock of the trace if it names one.
pub(crate) fn read_snapshot(bytes: &[u8], sequence: usize, machine: u32) -> (Vec<Reading>, Option<u32>) {
    use clock_snapshot::{clock::field as clock_field, field};
    let (mut readings, mut primary) = (Vec::new(), None);
    for f in Fields::new(bytes) {
        match f.id {
            field::PRIMARY_TRACE_CLOCK => primary = Some(f.as_u32()),
            field::CLOCKS => {
                let (mut id, mut ticks, mut incremental, mut multiplier) = (0, 0, false, 1);
                for f in Fields::new(f.as_bytes()) {
                    match f.id {
                        clock_field::CLOCK_ID => id = f.as_u32(),
                        clock_field::TIMESTAMP => ticks = f.as_u64(),
                        clock_field::IS_INCREMENTAL => incremental = f.as_bool(),
                        clock_field::UNIT_MULTIPLIER_NS => multiplier = f.as_u64().max(1),
                        _ => {}
                    }
                }
                readings.push(Reading { clock: ClockKey::new(id, machine, sequence), ticks, incremental, multiplier });
            }
            _ => {}
        }
    }
    (readings, primary)
}
