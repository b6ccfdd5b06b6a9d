//! Producers that have disconnected while sessions ran. A short-lived program may connect and end
//! between two queries of a consumer (`docs/spec/service.md §24`).

use std::collections::VecDeque;

use esatto_protozero::Owned as _;
use esatto_schema::{DEPARTED_FIELD, UNREACHED, WITHOUT_DATA, departed};

use super::producer_entries::{field, told_data_source, told_producer};
use crate::context::Context;
use crate::encode::put;
use crate::frame_limits::FULL_BODY_BYTES;
use crate::ids::{ProducerId, SessionId};
use crate::producer::Producers;

/// Part of all bytes that one producer may take. A larger one counts as forgotten.
const SHARE: usize = 4;
/// Bytes that each entry needs beside its fields.
const ENTRY_BYTES: usize = 64;

/// Producers that have disconnected, oldest first. Old ones make room for new ones.
#[derive(Debug, Default)]
pub(crate) struct DepartedProducers {
    entries: VecDeque<Departed>,
    /// Number of the first entry.
    first: u64,
    bytes: usize,
    pub(crate) max_bytes: usize,
}

/// A producer that has disconnected.
#[derive(Debug)]
pub(super) struct Departed {
    /// Encoded fields of `TracingServiceState`: the producer, then its data sources. None if they
    /// were too large.
    fields: Vec<Vec<u8>>,
    /// Sessions that have no data of it, although they want some.
    missed: Vec<(SessionId, Missed)>,
    bytes: usize,
}

/// Reason why a session has no data of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missed {
    /// The producer had not started its data sources for the session.
    Unreached,
    /// It had started them, but gave no data.
    WithoutData,
}

impl Missed {
    /// Returns the number by which a consumer learns it.
    fn number(self) -> u64 {
        match self {
            Self::Unreached => UNREACHED,
            Self::WithoutData => WITHOUT_DATA,
        }
    }
}

impl DepartedProducers {
    /// Returns the number of the next producer, if the service remembers any.
    pub(crate) fn next(&self) -> Option<u64> {
        (self.max_bytes > 0).then_some(self.first + self.entries.len() as u64)
    }

    /// Notes a producer that disconnects, with its data sources and the sessions that miss it.
    pub(crate) fn note(
        &mut self,
        id: ProducerId,
        missed: Vec<(SessionId, Missed)>,
        producers: &Producers,
        cx: &mut Context<'_>,
    ) {
        let Some(producer) = producers.get(id).filter(|_| self.max_bytes > 0) else { return };
        let mut fields = vec![told(departed::PRODUCER, &told_producer(producer).encode())];
        let mut bytes = fields[0].len() + 2 * ENTRY_BYTES + size_of_val(&missed[..]);
        let mut fits = true;
        for registration in producers.data_sources.of_producer(id) {
            let field = told(departed::DATA_SOURCE, &told_data_source(registration));
            cx.charge(1);
            cx.charge_bytes(field.len());
            bytes += field.len() + ENTRY_BYTES;
            // A larger field would not fit into a frame.
            fits = bytes <= self.max_bytes / SHARE && field.len() <= FULL_BODY_BYTES - 8;
            if !fits {
                break;
            }
            fields.push(field);
        }
        if !fits || bytes > self.max_bytes / SHARE {
            (fields, bytes) = (Vec::new(), ENTRY_BYTES);
        }
        self.bytes += bytes;
        self.entries.push_back(Departed { fields, missed, bytes });
        while self.bytes > self.max_bytes {
            cx.charge(1);
            self.forget_first();
        }
    }

    /// Forgets the producers that no session wants any more.
    pub(crate) fn forget_before(&mut self, number: u64, cx: &mut Context<'_>) {
        while self.first < number && !self.entries.is_empty() {
            cx.charge(1);
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            (self.first, self.bytes) = (self.first + 1, self.bytes - entry.bytes);
        }
    }

    /// Iterates over the producers from this number on.
    pub(super) fn iter_from(&self, number: u64) -> impl Iterator<Item = (u64, &Departed)> {
        let skipped = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let entries = self.entries.range(skipped.min(self.entries.len())..);
        (number.max(self.first)..).zip(entries)
    }

    /// Encodes how many producers since this number are forgotten.
    pub(crate) fn told_forgotten(&self, since: u64, cx: &mut Context<'_>) -> Vec<u8> {
        cx.charge(self.entries.len());
        let too_large = self.iter_from(since).filter(|(_, entry)| entry.fields.is_empty()).count();
        let mut message = Vec::new();
        put(&mut message, departed::FORGOTTEN, self.first.saturating_sub(since) + too_large as u64);
        field(DEPARTED_FIELD.into(), &message)
    }
}

impl Departed {
    /// Returns the fields for a consumer with this session.
    pub(super) fn fields_for(&self, session: SessionId) -> impl Iterator<Item = Vec<u8>> {
        let missed = self.missed.iter().find(|(id, _)| *id == session).filter(|_| !self.fields.is_empty());
        let missed = missed.map(|(_, missed)| {
            let mut message = Vec::new();
            put(&mut message, departed::MISSED, missed.number());
            field(DEPARTED_FIELD.into(), &message)
        });
        self.fields.iter().cloned().chain(missed)
    }
}

/// Encodes a field with one entry.
fn told(id: u32, entry: &[u8]) -> Vec<u8> {
    field(DEPARTED_FIELD.into(), &field(id.into(), entry))
}
