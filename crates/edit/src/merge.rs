//! Several traces of one machine as one.
//!
//! Packets of different traces keep their bytes, except that their sequences get new numbers: each
//! trace numbers its own from 1. Clocks of the machine are the same in all traces of one boot, and
//! so are processes, threads and tracks.

use core::fmt;
use std::collections::{BTreeMap, HashMap};

use esatto_protozero::{Fields, append_to};
use esatto_schema::trace_packet::field;
use esatto_schema::{clock_snapshot, trace_config, tracing_service_event as event};
use esatto_trace::{PacketTimes, SessionProgress};

use crate::cut::event_times;
use crate::merged_stats::MergedStats;
use crate::packet::{append_message, last, without};

/// Largest difference of what the time of day is ahead of the trace clock in two traces of one
/// boot. The time of day may be set while a machine runs.
pub const SAME_BOOT_NS: u64 = 60_000_000_000;
/// The clock `CLOCK_BOOTTIME`.
const BOOTTIME: u64 = 6;
/// The first clock that belongs to a sequence.
const FIRST_OF_SEQUENCE: u64 = 64;

/// Reason for which traces cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeError {
    /// A trace is of another boot of the machine, or of another machine.
    OtherBoot,
    /// A trace has another trace clock. Packets that name no clock would get wrong times.
    OtherClock,
    /// The traces have more sequences than there are numbers.
    TooManySequences,
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherBoot => "its clocks are those of another machine, or of another boot",
            Self::OtherClock => "its trace clock is not that of the traces before (see `primary_trace_clock`)",
            Self::TooManySequences => "there are too many sequences",
        })
    }
}

impl core::error::Error for MergeError {}

/// Events of the service of which the result has the earliest one. Readers take the last one in
/// the file, and leave out what the kernel did before.
const BEGINNINGS: [u32; 2] = [event::field::TRACING_STARTED, event::field::ALL_DATA_SOURCES_STARTED];

/// Merger that is given the packets of one trace after the other, twice: first to [`note`] them,
/// then to get them as they are in the result.
///
/// [`note`]: Self::note
#[derive(Debug, Default)]
pub struct Merge {
    times: PacketTimes,
    /// The current trace.
    trace: usize,
    numbers: HashMap<(usize, u32, u32), u32>,
    next: u32,
    wall_ahead: Option<i64>,
    trace_clock: Option<u32>,
    /// Times of the earliest of [`BEGINNINGS`].
    beginnings: [Option<u64>; BEGINNINGS.len()],
    /// Time of the latest event of a service.
    last_event: u64,
    stats: MergedStats,
    /// Progress of the sessions, and whether the service itself wrote the file.
    progress: BTreeMap<usize, (SessionProgress, bool)>,
    /// Times of the first and the last kernel event, by machine and trace.
    kernel_events: BTreeMap<(u32, usize), (i64, i64)>,
}

impl Merge {
    /// Begins with the packets of a trace, by its number. Sequences of a trace that is read again
    /// keep their new numbers.
    pub fn begin_trace(&mut self, number: usize) {
        self.times = PacketTimes::default();
        self.trace = number;
    }

    /// Ends the packets of a trace, all of which were given.
    ///
    /// # Errors
    ///
    /// The trace does not fit to those before.
    pub fn end_trace(&mut self) -> Result<(), MergeError> {
        let clock = self.times.trace_clock();
        if *self.trace_clock.get_or_insert(clock) == clock { Ok(()) } else { Err(MergeError::OtherClock) }
    }

    /// Returns machine and time of a packet with a snapshot of clocks that must come in the order
    /// of time. Readers refuse a snapshot that is earlier than the one before of the same machine,
    /// whatever trace it is from.
    pub fn snapshot_time(packet: &[u8]) -> Option<(u32, u64)> {
        let snapshot = last(packet, field::CLOCK_SNAPSHOT)?;
        let has_state = [field::SEQUENCE_FLAGS, field::INTERNED_DATA, field::TRACE_PACKET_DEFAULTS];
        if has_state.into_iter().any(|id| last(packet, id).is_some()) {
            return None;
        }
        let clocks = Fields::new(snapshot.as_bytes()).filter(|clock| clock.id == clock_snapshot::field::CLOCKS);
        let mut time = None;
        for clock in clocks {
            let number = |id: u32| last(clock.as_bytes(), id).map_or(0, |number| number.as_u64());
            match number(clock_snapshot::clock::field::CLOCK_ID) {
                BOOTTIME => time = Some(number(clock_snapshot::clock::field::TIMESTAMP)),
                // A clock of the sequence counts for the packets after it.
                id if id >= FIRST_OF_SEQUENCE => return None,
                _ => {}
            }
        }
        let machine = last(packet, field::MACHINE_ID).map_or(0, |machine| machine.as_u32());
        time.map(|time| (machine, time))
    }

    /// Notes what a packet says of its whole trace.
    pub fn note(&mut self, packet: &[u8]) {
        let (progress, is_streamed) = self.progress.entry(self.trace).or_default();
        progress.add(packet);
        if let Some(config) = last(packet, field::TRACE_CONFIG) {
            let writes = last(config.as_bytes(), trace_config::field::WRITE_INTO_FILE);
            *is_streamed |= writes.is_some_and(|writes| writes.as_bool());
        }
        if let Some(event) = last(packet, field::SERVICE_EVENT) {
            let time = last(packet, field::TIMESTAMP).map_or(0, |time| time.as_u64());
            self.last_event = self.last_event.max(time);
            for (id, earliest) in BEGINNINGS.into_iter().zip(&mut self.beginnings) {
                if last(event.as_bytes(), id).is_some_and(|is_it| is_it.as_bool()) {
                    *earliest = Some(earliest.map_or(time, |earliest| earliest.min(time)));
                }
            }
        }
        if last(packet, field::TRACE_STATS).is_some() {
            self.stats.note(self.trace, packet);
        }
        if let Some((from, to)) = event_times(packet) {
            let machine = last(packet, field::MACHINE_ID).map_or(0, |machine| machine.as_u32());
            let (first, last) = self.kernel_events.entry((machine, self.trace)).or_insert((from, to));
            (*first, *last) = (from.min(*first), to.max(*last));
        }
    }

    /// Returns the longest time in nanoseconds between the kernel events of two traces of a
    /// machine, of which no trace has any; `None` if there is none. Readers let threads run and
    /// system calls last through it.
    pub fn kernel_gap(&self) -> Option<i64> {
        let mut spans: Vec<_> = self.kernel_events.iter().map(|((machine, _), span)| (*machine, *span)).collect();
        spans.sort_unstable();
        let mut longest = None;
        let mut before: Option<(u32, i64)> = None;
        for (machine, (from, to)) in spans {
            let end = before.filter(|(of, _)| *of == machine).map(|(_, end)| end);
            longest = longest.max(end.map(|end| from.saturating_sub(end)).filter(|gap| *gap > 0));
            before = Some((machine, end.map_or(to, |end| end.max(to))));
        }
        longest
    }

    /// Returns the last packets of the result, after all others: the statistics of all traces, and
    /// that all was read, if the end of no trace is missing.
    pub fn finish(&self) -> Vec<Vec<u8>> {
        let number = |trace: usize, own: u32| self.numbers.get(&(trace, 0, own)).copied();
        let stats = self.stats.packet(number);
        let mut packets: Vec<Vec<u8>> =
            stats.map(|packet| without(&packet, |id| id == field::TRUSTED_PACKET_SEQUENCE_ID)).into_iter().collect();
        let lacks_end = |(progress, is_streamed): &(SessionProgress, bool)| progress.lacks_end(*is_streamed);
        if self.last_event > 0 && !self.progress.values().any(lacks_end) {
            let mut completed = Vec::new();
            append_to(&mut completed, |mut event| event.varint(event::field::READ_TRACING_BUFFERS_COMPLETED, 1));
            let mut packet = Vec::new();
            append_to(&mut packet, |mut message| message.varint(field::TIMESTAMP, self.last_event));
            append_message(&mut packet, field::SERVICE_EVENT, &completed);
            packets.push(packet);
        }
        packets
    }

    /// Returns an event of the service without what holds for one of the traces only: that it
    /// began later than another one, and that readers may now sort what they have read, since the
    /// next trace may be earlier.
    fn service_event(&self, event: &[u8], time: u64) -> Vec<u8> {
        without(event, |id| {
            let earliest = BEGINNINGS.iter().position(|beginning| *beginning == id);
            match earliest {
                Some(beginning) => self.beginnings[beginning].is_some_and(|earliest| earliest < time),
                None => id == event::field::READ_TRACING_BUFFERS_COMPLETED,
            }
        })
    }

    /// Returns a packet as it is in the result; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// The trace does not fit to those before.
    pub fn packet(&mut self, packet: &[u8]) -> Result<Option<Vec<u8>>, MergeError> {
        let found = self.times.add(packet);
        if let Some(ahead) = self.times.wall_ahead() {
            let first = *self.wall_ahead.get_or_insert(ahead);
            if first.abs_diff(ahead) > SAME_BOOT_NS {
                return Err(MergeError::OtherBoot);
            }
        }
        let mut changed = without(packet, |id| {
            matches!(id, field::TRUSTED_PACKET_SEQUENCE_ID | field::SERVICE_EVENT | field::TRACE_STATS)
        });
        if last(packet, field::TRACE_STATS).is_some() {
            return Ok(None);
        }
        if let Some(event) = last(packet, field::SERVICE_EVENT) {
            let time = last(packet, field::TIMESTAMP).map_or(0, |time| time.as_u64());
            let event = self.service_event(event.as_bytes(), time);
            if event.is_empty() {
                return Ok(None);
            }
            append_message(&mut changed, field::SERVICE_EVENT, &event);
        }
        let Some(own) = last(packet, field::TRUSTED_PACKET_SEQUENCE_ID).map(|own| own.as_u32()) else {
            return Ok(Some(changed));
        };
        let key = (self.trace, found.machine, own);
        let number = match self.numbers.get(&key) {
            Some(&number) => number,
            None => {
                self.next = self.next.checked_add(1).ok_or(MergeError::TooManySequences)?;
                self.numbers.insert(key, self.next);
                self.next
            }
        };
        append_to(&mut changed, |mut message| {
            message.varint(field::TRUSTED_PACKET_SEQUENCE_ID, u64::from(number));
        });
        Ok(Some(changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::append_message;

    /// A snapshot of two clocks, of which the trace has one.
    fn snapshot(primary: u64) -> Vec<u8> {
        let mut snapshot = Vec::new();
        for (clock, time) in [(BOOTTIME, 10_000), (3, 4_000)] {
            let mut reading = Vec::new();
            append_to(&mut reading, |mut message| {
                message.varint(clock_snapshot::clock::field::CLOCK_ID, clock);
                message.varint(clock_snapshot::clock::field::TIMESTAMP, time);
            });
            append_message(&mut snapshot, clock_snapshot::field::CLOCKS, &reading);
        }
        append_to(&mut snapshot, |mut message| message.varint(clock_snapshot::field::PRIMARY_TRACE_CLOCK, primary));
        let mut packet = Vec::new();
        append_message(&mut packet, field::CLOCK_SNAPSHOT, &snapshot);
        packet
    }

    #[test]
    fn traces_of_another_trace_clock_are_refused() {
        let merge = |primary: [u64; 2]| {
            let mut merge = Merge::default();
            for (number, primary) in primary.into_iter().enumerate() {
                merge.begin_trace(number);
                merge.packet(&snapshot(primary))?;
                merge.end_trace()?;
            }
            Ok(())
        };
        assert_eq!(merge([3, 3]), Ok(()));
        assert_eq!(merge([BOOTTIME, 0]), Ok(()), "it is the usual one");
        assert_eq!(merge([3, BOOTTIME]), Err(MergeError::OtherClock));
        assert_eq!(merge([0, 3]), Err(MergeError::OtherClock));
    }
}
