//! The part of a trace in an interval of time.
//!
//! Packets without a time are kept, and so are those that later ones need: descriptors, clocks,
//! configs, and the state of sequences. Of a packet outside of the interval, the names and defaults
//! that it announces stay. Slices are kept whole if they overlap the interval: the begin of a slice
//! that contains the start of the interval is kept with its own time, and the end of a slice that
//! contains the end of the interval as well. A [`Survey`] of the whole trace finds these slices.

mod counters;
mod ftrace;
mod slice_event;
mod slices;
mod survey;

use std::collections::HashMap;

use esatto_protozero::append_to;
use esatto_schema::trace_packet::field;
use esatto_trace::{PacketTimes, TimedPacket};

use self::counters::Counters;
pub(crate) use self::ftrace::event_times;
use self::slice_event::{Kind, SliceEvent};
pub use self::survey::Survey;
use crate::packet::{last, without};

/// Payloads that are kept whatever their time is: later packets are based on them, or they are
/// about the whole trace.
const KEPT: [u32; 19] = [
    field::CLOCK_SNAPSHOT,
    field::TRACE_UUID,
    field::TRACE_CONFIG,
    field::TRACE_STATS,
    field::SYSTEM_INFO,
    field::SERVICE_EVENT,
    field::TRIGGER,
    field::SYNCHRONIZATION_MARKER,
    field::PROCESS_TREE,
    field::TRACK_DESCRIPTOR,
    field::PROCESS_DESCRIPTOR,
    field::THREAD_DESCRIPTOR,
    field::REMOTE_CLOCK_SYNC,
    field::CPU_INFO,
    field::FTRACE_STATS,
    // Their times are differences to the packet before.
    field::STREAMING_PROFILE_PACKET,
    field::MODULE_SYMBOLS,
    field::DEOBFUSCATION_MAPPING,
    field::EXTENSION_DESCRIPTOR,
];

/// Fields that stay when the payload of a packet is left out.
const ENVELOPE: [u32; 10] = [
    field::TRUSTED_PACKET_SEQUENCE_ID,
    field::TRUSTED_UID,
    field::TRUSTED_PID,
    field::MACHINE_ID,
    field::INTERNED_DATA,
    field::TRACE_PACKET_DEFAULTS,
    field::SEQUENCE_FLAGS,
    field::INCREMENTAL_STATE_CLEARED,
    field::PREVIOUS_PACKET_DROPPED,
    field::FIRST_PACKET_ON_SEQUENCE,
];

/// Packets by what has become of them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutCounts {
    /// Packets that were read.
    pub read: u64,
    /// Packets that were kept, perhaps with a part of their events.
    pub kept: u64,
    /// Packets of which only the state of their sequence was kept.
    pub stripped: u64,
    /// Kept packets with events of the interval.
    pub events: u64,
}

/// Cutter that is given the packets of a trace in the order of the file, as its [`Survey`] was
/// before.
#[derive(Debug)]
pub struct Cut {
    from: i64,
    to: i64,
    times: PacketTimes,
    /// The packets that begin or end a slice outside of the interval, and are kept.
    slices: std::iter::Peekable<std::vec::IntoIter<u64>>,
    counters: Counters,
    /// The last switch of each machine and processor before the interval.
    switches: HashMap<(u32, u64), Vec<u8>>,
    counts: CutCounts,
}

impl Cut {
    /// Makes a cutter for an interval, and the packets of slices outside of it that are kept, in
    /// the order of the file. The first packet is 1.
    fn new((from, to): (i64, i64), slices: Vec<u64>) -> Self {
        Self {
            from,
            to,
            times: PacketTimes::default(),
            slices: slices.into_iter().peekable(),
            counters: Counters::default(),
            switches: HashMap::new(),
            counts: CutCounts::default(),
        }
    }

    /// Returns the numbers of packets so far.
    pub fn counts(&self) -> CutCounts {
        self.counts
    }

    /// Takes the next packet, and calls `keep` for each packet of the result.
    ///
    /// # Errors
    ///
    /// Those of `keep`.
    pub fn add<E>(&mut self, packet: &[u8], mut keep: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.counts.read += 1;
        let found = self.times.add(packet);
        if !found.is_usable {
            return self.keep_loss(packet, &found, &mut keep);
        }
        if found.clears_state {
            self.counters.clear(found.sequence);
        }
        let payload = found.payload.unwrap_or(0);
        let own = found.absolute.map_or_else(|| None, |absolute| Some(self.with_time(packet, absolute)));
        let bytes = own.as_deref().unwrap_or(packet);
        match payload {
            field::TRACK_EVENT => self.event(&found, packet, bytes, &mut keep),
            field::FTRACE_EVENTS => {
                let range = (self.from.saturating_add(found.ahead), self.to.saturating_add(found.ahead));
                // The state of the sequence, if there is any, stays where it is.
                let switch = ftrace::last_switch(&without_state(bytes), range.0);
                if let Some((cpu, switch)) = switch {
                    self.switches.insert((found.machine, cpu), switch);
                }
                let Some(part) = ftrace::cut(bytes, range) else { return self.strip(packet, &found, &mut keep) };
                if part.has_events {
                    let cpu = ftrace::cpu(packet);
                    self.counts.events += 1;
                    // Its packet is not of the interval, so it is not counted.
                    if let Some(switch) = self.switches.remove(&(found.machine, cpu)) {
                        keep(&switch)?;
                    }
                }
                self.keep(&found, &part.packet, &mut keep)
            }
            _ if payload == 0 || KEPT.contains(&payload) => {
                if payload == field::TRACK_DESCRIPTOR {
                    self.counters.describe(packet, &found);
                }
                self.keep(&found, bytes, &mut keep)
            }
            _ if found.time.is_none_or(|time| self.contains(time)) => {
                self.counts.events += u64::from(found.time.is_some());
                self.keep(&found, bytes, &mut keep)
            }
            _ => self.strip(packet, &found, &mut keep),
        }
    }

    fn contains(&self, time: i64) -> bool {
        (self.from..=self.to).contains(&time)
    }

    /// Returns a packet whose time is not the difference to the one before.
    fn with_time(&self, packet: &[u8], absolute: i64) -> Vec<u8> {
        let mut changed = without(packet, |id| matches!(id, field::TIMESTAMP | field::TIMESTAMP_CLOCK_ID));
        set_time(&mut changed, absolute, self.times.trace_clock());
        changed
    }

    fn keep<E>(
        &mut self,
        found: &TimedPacket,
        packet: &[u8],
        keep: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for sum in self.counters.release(found.sequence, self.times.trace_clock()) {
            keep(&sum)?;
        }
        self.counts.kept += 1;
        keep(packet)
    }

    /// Keeps the mark of a loss that a packet has which is left out.
    fn keep_loss<E>(
        &mut self,
        packet: &[u8],
        found: &TimedPacket,
        keep: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_inside = found.time.is_none_or(|time| self.contains(time));
        if !is_inside || last(packet, field::PREVIOUS_PACKET_DROPPED).is_none() {
            return Ok(());
        }
        self.counts.stripped += 1;
        keep(&without(packet, |id| !LOSS.contains(&id)))
    }

    /// Keeps only the state of the sequence that a packet has.
    fn strip<E>(
        &mut self,
        packet: &[u8],
        found: &TimedPacket,
        keep: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let has_state = [field::INTERNED_DATA, field::TRACE_PACKET_DEFAULTS].into_iter();
        if !found.clears_state && has_state.clone().all(|id| last(packet, id).is_none()) {
            return Ok(());
        }
        self.counts.stripped += 1;
        keep(&envelope(packet))
    }

    fn event<E>(
        &mut self,
        found: &TimedPacket,
        packet: &[u8],
        bytes: &[u8],
        keep: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(event) = last(packet, field::TRACK_EVENT).map(|event| event.as_bytes()) else { return Ok(()) };
        // The time of such an event is in fields of its own.
        let Some(time) = found.time else { return self.keep(found, bytes, keep) };
        let is_kept = self.contains(time) || self.overlaps(packet, event, found, time);
        if is_kept && time >= self.from {
            self.counts.events += 1;
            return self.keep(found, bytes, keep);
        }
        if time < self.from {
            // Differences become a part of a sum.
            let values = self.counters.values(event, self.times.defaults(found.sequence), found.machine);
            let without_values = (is_kept && !values.is_empty()).then(|| counters::without_values(bytes, event));
            let time = time.saturating_add(found.ahead);
            self.counters.add(found.sequence, values, time, || envelope_without_state(packet));
            if is_kept {
                self.counts.events += 1;
                self.counts.kept += 1;
                return keep(without_values.as_deref().unwrap_or(bytes));
            }
        }
        self.strip(packet, found, keep)
    }

    /// Returns whether an event outside of the interval begins or ends a slice that overlaps it.
    fn overlaps(&mut self, packet: &[u8], event: &[u8], found: &TimedPacket, time: i64) -> bool {
        while self.slices.next_if(|kept| *kept < self.counts.read).is_some() {}
        let defaults = self.times.defaults(found.sequence);
        match SliceEvent::read(packet, event, defaults, found).kind {
            Kind::Whole(dur) => dur > 0 && time < self.from && time.saturating_add(dur) >= self.from,
            Kind::Begin | Kind::End => self.slices.peek() == Some(&self.counts.read),
        }
    }
}

/// Returns a packet without its payload and its time.
fn envelope(packet: &[u8]) -> Vec<u8> {
    without(packet, |id| !ENVELOPE.contains(&id))
}

/// Fields of a packet that only marks a loss.
const LOSS: [u32; 5] = [
    field::TRUSTED_PACKET_SEQUENCE_ID,
    field::TRUSTED_UID,
    field::TRUSTED_PID,
    field::MACHINE_ID,
    field::PREVIOUS_PACKET_DROPPED,
];

/// Fields that change the state of a sequence.
const STATE: [u32; 6] = [
    field::INTERNED_DATA,
    field::TRACE_PACKET_DEFAULTS,
    field::INCREMENTAL_STATE_CLEARED,
    field::SEQUENCE_FLAGS,
    field::PREVIOUS_PACKET_DROPPED,
    field::FIRST_PACKET_ON_SEQUENCE,
];

fn without_state(packet: &[u8]) -> Vec<u8> {
    without(packet, |id| STATE.contains(&id))
}

/// Returns a packet without its payload, its time, and the state that it adds.
fn envelope_without_state(packet: &[u8]) -> Vec<u8> {
    without(packet, |id| !ENVELOPE.contains(&id) || STATE.contains(&id))
}

/// Appends a time on a clock.
fn set_time(packet: &mut Vec<u8>, time: i64, clock: u32) {
    append_to(packet, |mut message| {
        message.varint(field::TIMESTAMP, u64::try_from(time).unwrap_or(0));
        message.varint(field::TIMESTAMP_CLOCK_ID, u64::from(clock));
    });
}
