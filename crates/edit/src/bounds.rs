//! Times of the first and of the last event of a trace.

use esatto_schema::trace_packet::field;
use esatto_trace::PacketTimes;

use crate::cut::{KEPT, event_times};

/// Reader of the times of a trace, which is given the packets in the order of the file.
#[derive(Debug, Default)]
pub struct Bounds {
    times: PacketTimes,
    bounds: Option<(i64, i64)>,
}

impl Bounds {
    /// Takes the next packet.
    pub fn add(&mut self, packet: &[u8]) {
        let found = self.times.add(packet);
        if !found.is_usable {
            return;
        }
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
}
