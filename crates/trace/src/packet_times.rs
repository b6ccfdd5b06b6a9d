//! Times of packets on the trace clock, for programs that copy packets.

use crate::clock_conversion::{ClockKey, Clocks};
use crate::envelope::{Envelope, read_snapshot};
use crate::machines::{HOST, Machines};
use crate::packet_sequence::{STATE_CLEARED, Sequence};
use hashbrown::HashMap;

/// The clock that reads the time of day.
const REALTIME: u32 = 1;

/// A packet, as the reader of a trace sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimedPacket {
    /// Its sequence: a number that no other sequence of the trace has.
    pub sequence: usize,
    /// Its machine; 0 is the host.
    pub machine: u32,
    /// The state of the sequence begins again with it.
    pub clears_state: bool,
    /// It replaces defaults of the sequence by others.
    pub changes_defaults: bool,
    /// It is usable: the state that it needs is there.
    pub is_usable: bool,
    /// Its time on the trace clock of the host. If it is not usable, this is the latest time of its
    /// sequence so far.
    pub time: Option<i64>,
    /// Its time on the trace clock of its own machine, if its timestamp is the difference to the
    /// packet before. Such a timestamp is wrong if that packet is missing.
    pub absolute: Option<i64>,
    /// How far the trace clock of its machine is ahead of that of the host.
    pub ahead: i64,
    /// The field that holds its payload.
    pub payload: Option<u32>,
}

/// Reader of the times of the packets of a trace, in the order of the file.
#[derive(Debug, Default)]
pub struct PacketTimes {
    clocks: Clocks,
    machines: Machines,
    sequences: Vec<Sequence>,
    index: HashMap<(u32, u32), usize>,
    /// How far the time of day is ahead of the trace clock, from the first snapshot that has both.
    wall_ahead: Option<i64>,
}

impl PacketTimes {
    /// Returns the id of the clock that all times are on.
    pub fn trace_clock(&self) -> u32 {
        self.clocks.trace_clock()
    }

    /// Returns how far the time of day is ahead of the trace clock, if a snapshot told it.
    pub fn wall_ahead(&self) -> Option<i64> {
        self.wall_ahead
    }

    /// Returns the defaults of a sequence, as they were written last.
    pub fn defaults(&self, sequence: usize) -> &[u8] {
        self.sequences.get(sequence).map_or(&[], |sequence| &sequence.state.defaults)
    }

    /// Reads the next packet.
    pub fn add(&mut self, packet: &[u8]) -> TimedPacket {
        let (envelope, _) = Envelope::read(packet);
        let machine = envelope.machine;
        let sequence = *self.index.entry((machine, envelope.sequence)).or_insert_with(|| {
            self.sequences.push(Sequence::new(machine, envelope.sequence));
            self.sequences.len() - 1
        });
        let entry = &mut self.sequences[sequence];
        let is_usable = entry.admit(packet.len() as u64, envelope.flags, envelope.dropped, envelope.first);
        let mut found = TimedPacket {
            sequence,
            machine,
            clears_state: envelope.flags & STATE_CLEARED != 0,
            changes_defaults: false,
            is_usable,
            time: None,
            absolute: None,
            ahead: self.machines.ahead(machine, self.clocks.trace_clock()).unwrap_or(0),
            payload: envelope.payload.map(|(id, _)| id),
        };
        if !is_usable {
            found.time = entry.times.map(|(_, latest)| latest);
            return found;
        }
        if let Some(defaults) = envelope.defaults {
            found.changes_defaults = entry.state.defaults != defaults;
            entry.state.set_defaults(defaults);
        }
        let default_clock = entry.state.clock;
        if let Some(snapshot) = envelope.snapshot {
            let (readings, primary) = read_snapshot(snapshot, sequence, machine);
            let _ = self.clocks.add(&readings, primary.filter(|_| machine == HOST));
            if machine == HOST && self.wall_ahead.is_none() {
                let of = |id: u32| readings.iter().find(|reading| reading.clock.id == id).map(|reading| reading.ticks);
                let both = of(REALTIME).zip(of(self.clocks.trace_clock()));
                let both = both.map(|(wall, own)| (i64::try_from(wall).ok(), i64::try_from(own).ok()));
                self.wall_ahead = both.and_then(|(wall, own)| wall?.checked_sub(own?));
            }
            return found;
        }
        if let Some((esatto_schema::trace_packet::field::REMOTE_CLOCK_SYNC, bytes)) = envelope.payload {
            self.machines.add_clock_sync(machine, bytes);
        }
        let clock = envelope.clock.or(default_clock).map(|id| ClockKey::new(id, machine, sequence));
        let Some(ticks) = envelope.timestamp.filter(|&ticks| i64::try_from(ticks).is_ok()) else { return found };
        let is_delta = self.clocks.is_incremental(clock);
        let absolute = self.clocks.absolute(clock, ticks);
        let own = self.clocks.machine_time(clock, absolute);
        found.absolute = own.filter(|_| is_delta);
        found.time = own.map(|own| own.saturating_sub(found.ahead));
        if let Some(time) = found.time {
            let times = &mut self.sequences[sequence].times;
            *times = Some(times.map_or((time, time), |(first, latest)| (first.min(time), latest.max(time))));
        }
        found
    }
}
