//! Events and clock snapshots that a session tells in its trace at the next read.

use std::collections::VecDeque;

use crate::api::Now;
use crate::client_text::Name;
use crate::machines::{MAX_MACHINES, Told};

/// `flush_started`, `all_data_sources_flushed` and `last_flush_slow_data_sources` events that a
/// session keeps between two reads, each.
const MAX_FLUSH_EVENTS: usize = 64;

/// Ends of producers that a session keeps between two reads.
const MAX_END_EVENTS: usize = 64;

/// Refused data sources that a session names between two reads, and unreached ones. It only counts
/// further ones.
const MAX_NAMES: usize = 32;

/// An event of the session that its trace reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    AllDataSourcesStarted,
    TracingStarted,
    AllDataSourcesFlushed,
    TracingDisabled,
    FlushStarted,
    CloneStarted,
    /// The index of the buffer.
    BufferCloned(u32),
    /// Producer and data source names.
    SlowStartingDataSources(Vec<(Name, Name)>),
    /// Producer and data source names.
    LastFlushSlowDataSources(Vec<(Name, Name)>),
    /// Producer and data source names.
    SlowStoppingDataSources(Vec<(Name, Name)>),
    /// Producer and data source names of the first few.
    RefusedDataSources(Vec<(Name, Name)>),
    /// The id of its machine.
    RelayDisconnected(u32),
    /// Producer and data source names: a producer that records its machine disconnected.
    EndedDataSources(Vec<(Name, Name)>),
    /// Producer and data source names of the first few.
    UnreachedDataSources(Vec<(Name, Name)>),
}

/// The events and snapshots that the next read tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnreadEvents {
    /// The snapshot taken at the start, until it is read.
    pub(crate) initial_snapshot: Option<Now>,
    /// Later snapshots, oldest first.
    pub(crate) snapshots: VecDeque<Now>,
    pub(crate) sync_marker: bool,
    pub(crate) stats: bool,
    /// Config, uuid and the other packets of the first read are done.
    pub(crate) first_read_done: bool,
    /// BOOTTIME and the event.
    pub(crate) events: Vec<(u64, Event)>,
    /// BOOTTIME and the encoded ConcurrentSessionEvent.
    pub(crate) concurrent: Vec<(u64, Name)>,
    /// The machines that the trace has told.
    pub(crate) told: Told,
    pub(crate) lost: Lost,
}

/// Counters of events that the trace does not tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost {
    /// Instances that were refused, because their producers had their share.
    pub(crate) instances: u64,
    /// Triggers that acted without a packet, and delayed ones that did not act.
    pub(crate) triggers: u64,
    /// Events of other sessions.
    pub(crate) session_events: u64,
}

impl UnreadEvents {
    /// Names a refused data source, if there is room.
    pub(super) fn add_refusal(&mut self, producer: &Name, data_source: &Name, now: &Now) {
        self.add_name(Event::RefusedDataSources(Vec::new()), producer, data_source, now);
    }

    /// Names an unreached data source, if there is room.
    pub(super) fn add_unreached(&mut self, producer: &Name, data_source: &Name, now: &Now) {
        self.add_name(Event::UnreachedDataSources(Vec::new()), producer, data_source, now);
    }

    /// Adds names to an event of this kind, or this event.
    fn add_name(&mut self, event: Event, producer: &Name, data_source: &Name, now: &Now) {
        let kind = core::mem::discriminant(&event);
        if !self.events.iter().any(|(_, event)| core::mem::discriminant(event) == kind) {
            self.add_event(event, now);
        }
        let of_kind = |(_, event): &&mut (u64, Event)| core::mem::discriminant(event) == kind;
        if let Some((_, Event::RefusedDataSources(told) | Event::UnreachedDataSources(told))) =
            self.events.iter_mut().find(of_kind)
        {
            if told.len() < MAX_NAMES {
                told.push((Name::clone(producer), Name::clone(data_source)));
            }
        }
    }

    pub(super) fn add_event(&mut self, event: Event, now: &Now) {
        let kind = core::mem::discriminant(&event);
        let max = match event {
            Event::FlushStarted | Event::AllDataSourcesFlushed | Event::LastFlushSlowDataSources(_) => MAX_FLUSH_EVENTS,
            Event::RelayDisconnected(_) => MAX_MACHINES,
            Event::EndedDataSources(_) => MAX_END_EVENTS,
            _ => 1,
        };
        let is_same = |kept: &(u64, Event)| core::mem::discriminant(&kept.1) == kind;
        if self.events.iter().filter(|kept| is_same(kept)).count() >= max {
            if let Some(oldest) = self.events.iter().position(is_same) {
                self.events.remove(oldest);
            }
        }
        self.events.push((now.boottime_ns, event));
    }

    pub(crate) fn forget_slow_flush(&mut self) {
        self.events.retain(|(_, event)| !matches!(event, Event::LastFlushSlowDataSources(_)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_between_reads_are_bounded() {
        let mut unread = UnreadEvents::default();
        for boottime_ns in 0..1000 {
            let now = Now { boottime_ns, ..Now::default() };
            unread.add_event(Event::FlushStarted, &now);
            unread.add_event(Event::TracingStarted, &now);
        }
        assert_eq!(unread.events.len(), MAX_FLUSH_EVENTS + 1);
        assert_eq!(unread.events.last(), Some(&(999, Event::TracingStarted)));
    }
}
