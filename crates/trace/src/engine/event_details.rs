//! Track events as they were written, for those who ask for each event.

use super::record::TrackEventRecord;
use crate::debug_annotation::{Annotation, RawAnnotation};
use crate::event_type::{CounterValue, EventType};
use crate::string_table::{Strings, Symbol};
use crate::tables::Row;

/// Parts of an event that the tables do not keep.
#[derive(Debug, Default)]
pub(crate) struct EventDetail {
    /// The type of the event; 0 for one of the older form.
    pub(crate) action: u8,
    /// The phase of the older form.
    pub(crate) phase: u8,
    pub(crate) machine: u32,
    /// The uuid of its track.
    pub(crate) uuid: u64,
    pub(crate) name: Option<Symbol>,
    pub(crate) categories: Vec<Symbol>,
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) flows: Vec<u64>,
    pub(crate) terminating: Vec<u64>,
    pub(crate) counter: Option<CounterValue>,
    pub(crate) extra: Vec<(u64, CounterValue)>,
    /// The number of its sequence.
    pub(crate) sequence: u32,
    pub(crate) offset: u64,
}

/// An event that was imported, at its time.
#[derive(Debug)]
pub(crate) struct ImportedEvent {
    /// Its position in [`EventDetails::list`].
    pub(crate) detail: usize,
    pub(crate) ts: i64,
    /// The row of its track; none if an ancestor of the track is missing.
    pub(crate) track: Option<Row>,
    /// The row of the slice that it began.
    pub(crate) slice: Option<Row>,
}

/// The events of a trace.
#[derive(Debug, Default)]
pub(crate) struct EventDetails {
    /// True if somebody asks for them.
    pub(crate) are_kept: bool,
    /// In the order of the file.
    pub(crate) list: Vec<EventDetail>,
    /// In the order of time.
    pub(crate) imported: Vec<ImportedEvent>,
}

impl EventDetails {
    /// Keeps an event with what its record does not have.
    pub(crate) fn add(
        &mut self,
        event: &mut TrackEventRecord,
        mut detail: EventDetail,
        annotations: &[RawAnnotation<'_>],
        strings: &Strings,
    ) {
        detail.action = event.action;
        detail.phase = event.legacy.map_or(0, |legacy| legacy.phase);
        detail.name = event.name;
        detail.flows.clone_from(&event.flows);
        detail.terminating.clone_from(&event.terminating);
        detail.annotations = annotations.iter().map(|annotation| annotation.to_owned(strings)).collect();
        event.detail = Some(self.list.len());
        self.list.push(detail);
    }
}

impl EventDetail {
    pub(crate) fn event_type(&self) -> EventType {
        match (self.action, self.phase) {
            (1, _) | (0, b'B' | b'b' | b'S') => EventType::SliceBegin,
            (2, _) | (0, b'E' | b'e' | b'F') => EventType::SliceEnd,
            (4, _) | (0, b'C') => EventType::Counter,
            (5, _) => EventType::State,
            (0, b'X') => EventType::Complete,
            _ => EventType::Instant,
        }
    }
}
