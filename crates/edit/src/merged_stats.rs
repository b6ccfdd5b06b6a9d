//! Statistics of the service of several traces as those of one.
//!
//! Readers know one set of statistics for a trace, and take the last one in the file. So that no
//! loss of another trace is hidden, the result has one set: its buffers are those of all traces,
//! and its counts are sums.

use std::collections::{BTreeMap, HashMap};

use esatto_protozero::{Fields, Value, append_to};
use esatto_schema::trace_packet::field as packet;
use esatto_schema::trace_stats::{field, filter_stats, writer_stats};

use crate::packet::{append_message, last, raw_fields, without};

/// Sequence ids of the result, by those of a trace.
pub(crate) type Numbers<'n> = &'n dyn Fn(u32) -> Option<u32>;

/// The last statistics of each trace.
#[derive(Debug, Default)]
pub(crate) struct MergedStats {
    packets: BTreeMap<usize, Vec<u8>>,
}

impl MergedStats {
    /// Notes a packet with statistics of a trace, by its number.
    pub(crate) fn note(&mut self, trace: usize, packet: &[u8]) {
        self.packets.insert(trace, packet.to_vec());
    }

    /// Returns the packet of the last trace with the statistics of all. `numbers` returns the
    /// sequence id in the result of one in a trace.
    pub(crate) fn packet(&self, numbers: impl Fn(usize, u32) -> Option<u32>) -> Option<Vec<u8>> {
        let (_, latest) = self.packets.last_key_value()?;
        let mut merged = Merged::default();
        for (&trace, bytes) in &self.packets {
            if let Some(stats) = last(bytes, packet::TRACE_STATS) {
                merged.add(stats.as_bytes(), &|number| numbers(trace, number));
            }
        }
        let mut result = without(latest, |id| id == packet::TRACE_STATS);
        append_message(&mut result, packet::TRACE_STATS, &merged.finish());
        Some(result)
    }
}

#[derive(Debug, Default)]
struct Merged {
    buffers: u64,
    /// Buffers, writers and the ranges of their histograms, encoded.
    lists: Vec<u8>,
    has_ranges: bool,
    counts: HashMap<u32, u64>,
    filter: HashMap<u32, u64>,
    /// Bytes that the filter left out, by buffer.
    filtered: Vec<u64>,
    outcome: u64,
}

impl Merged {
    fn add(&mut self, stats: &[u8], numbers: Numbers<'_>) {
        let (before, had_ranges) = (self.buffers, self.has_ranges);
        for (f, bytes) in raw_fields(stats) {
            match (f.id, f.value) {
                (field::BUFFER_STATS, _) => {
                    self.buffers += 1;
                    self.lists.extend_from_slice(bytes);
                }
                (field::WRITER_STATS, Value::Bytes(writer)) => self.add_writer(writer, before, numbers),
                (field::CHUNK_PAYLOAD_HISTOGRAM_DEF, _) if !had_ranges => {
                    self.has_ranges = true;
                    self.lists.extend_from_slice(bytes);
                }
                (field::FILTER_STATS, Value::Bytes(filter)) => self.add_filter(filter, before),
                // A failure of one trace is one of the result: its number is the larger one.
                (field::FINAL_FLUSH_OUTCOME, Value::Varint(outcome)) => self.outcome = self.outcome.max(outcome),
                (id, Value::Varint(count)) if id != field::CHUNK_PAYLOAD_HISTOGRAM_DEF => {
                    let sum = self.counts.entry(id).or_default();
                    *sum = sum.saturating_add(count);
                }
                _ => {}
            }
        }
    }

    fn add_writer(&mut self, writer: &[u8], buffers_before: u64, numbers: Numbers<'_>) {
        use writer_stats::field as writer_field;
        let number = |id: u32| last(writer, id).map_or(0, |number| number.as_u64());
        let Some(sequence) = u32::try_from(number(writer_field::SEQUENCE_ID)).ok().and_then(numbers) else { return };
        let mut changed = without(writer, |id| matches!(id, writer_field::SEQUENCE_ID | writer_field::BUFFER));
        append_to(&mut changed, |mut message| {
            message.varint(writer_field::SEQUENCE_ID, u64::from(sequence));
            message.varint(writer_field::BUFFER, number(writer_field::BUFFER).saturating_add(buffers_before));
        });
        append_message(&mut self.lists, field::WRITER_STATS, &changed);
    }

    fn add_filter(&mut self, filter: &[u8], buffers_before: u64) {
        use filter_stats::field as filter_field;
        self.filtered.resize(usize::try_from(buffers_before).unwrap_or(0).max(self.filtered.len()), 0);
        for f in Fields::new(filter) {
            match (f.id, f.value) {
                (filter_field::BYTES_DISCARDED_PER_BUFFER, Value::Varint(bytes)) => self.filtered.push(bytes),
                (id, Value::Varint(count)) => {
                    let sum = self.filter.entry(id).or_default();
                    *sum = sum.saturating_add(count);
                }
                _ => {}
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        append_to(&mut self.lists, |mut message| {
            for (id, count) in self.counts {
                message.varint(id, count);
            }
            if self.outcome != 0 {
                message.varint(field::FINAL_FLUSH_OUTCOME, self.outcome);
            }
        });
        if !self.filter.is_empty() || self.filtered.iter().any(|bytes| *bytes != 0) {
            let mut filter = Vec::new();
            append_to(&mut filter, |mut message| {
                for (id, count) in self.filter {
                    message.varint(id, count);
                }
                for bytes in self.filtered {
                    message.varint(filter_stats::field::BYTES_DISCARDED_PER_BUFFER, bytes);
                }
            });
            append_message(&mut self.lists, field::FILTER_STATS, &filter);
        }
        self.lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_schema::trace_stats::buffer_stats;

    fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes);
        bytes
    }

    fn number(bytes: &mut Vec<u8>, id: u32, value: u64) {
        append_to(bytes, |mut message| message.varint(id, value));
    }

    /// Statistics with so many buffers, each of which lost so many chunks.
    fn stats(buffers: u64, lost: u64, outcome: u64) -> Vec<u8> {
        let stats = message(|bytes| {
            for _ in 0..buffers {
                let buffer = message(|bytes| number(bytes, buffer_stats::field::CHUNKS_DISCARDED, lost));
                append_message(bytes, field::BUFFER_STATS, &buffer);
            }
            let writer = message(|bytes| {
                number(bytes, writer_stats::field::SEQUENCE_ID, 7);
                number(bytes, writer_stats::field::BUFFER, buffers - 1);
            });
            append_message(bytes, field::WRITER_STATS, &writer);
            number(bytes, field::PATCHES_DISCARDED, lost);
            number(bytes, field::FINAL_FLUSH_OUTCOME, outcome);
            let filter = message(|bytes| {
                number(bytes, filter_stats::field::ERRORS, lost);
                for buffer in 0..buffers {
                    number(bytes, filter_stats::field::BYTES_DISCARDED_PER_BUFFER, 100 + buffer);
                }
            });
            append_message(bytes, field::FILTER_STATS, &filter);
        });
        message(|bytes| append_message(bytes, packet::TRACE_STATS, &stats))
    }

    #[test]
    fn losses_of_all_traces_are_kept() {
        let mut merged = MergedStats::default();
        assert_eq!(merged.packet(|_, _| None), None);
        merged.note(0, &stats(1, 1, 1));
        merged.note(0, &stats(2, 3, 2));
        merged.note(1, &stats(1, 4, 1));
        let found = merged.packet(|trace, number| Some(number + 10 * u32::try_from(trace).unwrap())).unwrap();
        let found = last(&found, packet::TRACE_STATS).unwrap();
        let all = |id: u32| -> Vec<Vec<u8>> {
            let fields = Fields::new(found.as_bytes()).filter(|f| f.id == id);
            fields.map(|f| f.as_bytes().to_vec()).collect()
        };
        let one = |bytes: &[u8], id: u32| last(bytes, id).unwrap().as_u64();
        let losses: Vec<u64> =
            all(field::BUFFER_STATS).iter().map(|b| one(b, buffer_stats::field::CHUNKS_DISCARDED)).collect();
        assert_eq!(losses, [3, 3, 4]);
        let writers: Vec<(u64, u64)> = all(field::WRITER_STATS)
            .iter()
            .map(|w| (one(w, writer_stats::field::SEQUENCE_ID), one(w, writer_stats::field::BUFFER)))
            .collect();
        assert_eq!(writers, [(7, 1), (17, 2)]);
        assert_eq!(one(found.as_bytes(), field::PATCHES_DISCARDED), 7);
        assert_eq!(one(found.as_bytes(), field::FINAL_FLUSH_OUTCOME), 2, "a failure stays one");
        let filter = &all(field::FILTER_STATS)[0];
        assert_eq!(one(filter, filter_stats::field::ERRORS), 7);
        let bytes = Fields::new(filter).filter(|f| f.id == filter_stats::field::BYTES_DISCARDED_PER_BUFFER);
        assert_eq!(bytes.map(|f| f.as_u64()).collect::<Vec<_>>(), [100, 101, 100]);
    }
}
