//! First reading of a trace that is cut: when its events are, and which slices there are.

use std::io;

use esatto_schema::trace_packet::field;
use esatto_trace::PacketTimes;

use super::slice_event::{Names, SliceEvent};
use super::slices::Slices;
use super::{Cut, KEPT, event_times};
use crate::packet::last;

/// First reader of a trace. It is given the packets in the order of the file, and makes the
/// [`Cut`], which is given the same packets again.
#[derive(Debug, Default)]
pub struct Survey {
    times: PacketTimes,
    bounds: Option<(i64, i64)>,
    names: Names,
    slices: Slices,
    read: u64,
}

impl Survey {
    /// Takes the next packet.
    ///
    /// # Errors
    ///
    /// A temporary file fails. A trace with many slices takes one, because they are sorted by time.
    pub fn add(&mut self, packet: &[u8]) -> io::Result<()> {
        self.read += 1;
        let found = self.times.add(packet);
        if !found.is_usable {
            return Ok(());
        }
        self.names.add(packet, &found);
        match found.payload {
            Some(field::FTRACE_EVENTS) => {
                if let Some((first, last)) = event_times(packet) {
                    self.widen(first.saturating_sub(found.ahead));
                    self.widen(last.saturating_sub(found.ahead));
                }
            }
            Some(payload) if !KEPT.contains(&payload) => found.time.into_iter().for_each(|time| self.widen(time)),
            _ => {}
        }
        let event = last(packet, field::TRACK_EVENT).filter(|_| found.payload == Some(field::TRACK_EVENT));
        let (Some(event), Some(time)) = (event, found.time) else { return Ok(()) };
        let event = event.as_bytes();
        let defaults = self.times.defaults(found.sequence);
        let slice = SliceEvent::read(packet, event, defaults, &found).with_names(event, &self.names, found.sequence);
        self.slices.add(self.read, time, &slice);
        self.slices.take_failure().map_or(Ok(()), Err)
    }

    fn widen(&mut self, time: i64) {
        self.bounds = Some(self.bounds.map_or((time, time), |(first, last)| (first.min(time), last.max(time))));
    }

    /// Returns the time of the first event and that of the last one, on the trace clock.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        self.bounds
    }

    /// Returns how far the time of day is ahead of the trace clock, if the trace tells it.
    pub fn wall_ahead(&self) -> Option<i64> {
        self.times.wall_ahead()
    }

    /// Makes a cutter for an interval of the trace clock, in nanoseconds, both ends included.
    ///
    /// # Errors
    ///
    /// A temporary file fails.
    pub fn cut(self, from: i64, to: i64) -> io::Result<Cut> {
        Ok(Cut::new((from, to), self.slices.overlapping((from, to))?))
    }
}
