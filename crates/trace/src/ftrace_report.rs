//! Reports of the data source `linux.ftrace` on itself (`docs/spec/probes.md` §11).

use std::collections::{BTreeMap, BTreeSet};

use esatto_protozero::Fields;
use esatto_schema::{
    LOST_EVENTS_NUMBER_FIELD, ftrace_cpu_stats, ftrace_event_bundle, ftrace_stats, trace_packet::field as packet_field,
};

/// Counters of the kernel that are kept: one entry for each CPU of each data source.
const MAX_COUNTERS: usize = 1 << 16;
/// Names of events that are kept. Esatto's data source names at most 1000.
const MAX_EVENT_NAMES: usize = 1000;
/// Phase of statistics from the end of the trace, or from a flush.
const END_OF_TRACE: i32 = 2;

/// Reports of the data sources `linux.ftrace` of a trace: which events the kernel could not keep,
/// and which ones of the config it does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FtraceReport {
    unknown_events: BTreeSet<String>,
    failed_events: BTreeSet<String>,
    /// Marks of a loss before a bundle, and the numbers of events that they tell.
    marks: u64,
    marked_events: u64,
    /// By packet sequence and CPU.
    counters: BTreeMap<(u32, u64), Counter>,
}

/// Events of a CPU that the kernel has lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counter {
    at_start: Option<u64>,
    now: u64,
}

impl FtraceReport {
    /// Reads an encoded `TracePacket` that is not compressed.
    pub fn add_packet(&mut self, packet: &[u8]) {
        let sequence = || {
            let id = Fields::new(packet).find(|field| field.id == packet_field::TRUSTED_PACKET_SEQUENCE_ID);
            id.map_or(0, |id| id.as_u32())
        };
        for field in Fields::new(packet) {
            match field.id {
                packet_field::FTRACE_EVENTS => self.add_bundle(field.as_bytes()),
                packet_field::FTRACE_STATS => self.add_stats(sequence(), field.as_bytes()),
                _ => {}
            }
        }
    }

    /// Returns the events that the kernel overwrote or dropped because its buffer was full. If the
    /// trace has no number, each place with a loss counts as one event.
    #[must_use]
    pub fn lost_events(&self) -> u64 {
        let counted = self.counters.values().map(|counter| counter.now.saturating_sub(counter.at_start.unwrap_or(0)));
        counted.fold(0, u64::saturating_add).max(self.marked_events).max(self.marks)
    }

    /// Returns the names in the config for which the kernel has no event.
    #[must_use]
    pub const fn unknown_events(&self) -> &BTreeSet<String> {
        &self.unknown_events
    }

    /// Returns the events that could not be switched on.
    #[must_use]
    pub const fn failed_events(&self) -> &BTreeSet<String> {
        &self.failed_events
    }

    /// Iterates over the events of the config that were not recorded, each with the reason.
    pub(crate) fn missing_events(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let unknown = self.unknown_events.iter().map(|event| (event.as_str(), "the kernel has no such event"));
        unknown.chain(self.failed_events.iter().map(|event| (event.as_str(), "it could not be switched on")))
    }

    fn add_bundle(&mut self, bundle: &[u8]) {
        for field in Fields::new(bundle) {
            self.add_bundle_field(field.id, || field.as_u64());
        }
    }

    /// Reads a field of a bundle of events.
    pub(crate) fn add_bundle_field(&mut self, id: u32, value: impl FnOnce() -> u64) {
        match id {
            ftrace_event_bundle::field::LOST_EVENTS => self.marks += u64::from(value() != 0),
            LOST_EVENTS_NUMBER_FIELD => self.marked_events = self.marked_events.saturating_add(value()),
            _ => {}
        }
    }

    /// Reads an encoded `FtraceStats`.
    pub(crate) fn add_stats(&mut self, sequence: u32, stats: &[u8]) {
        use ftrace_stats::field;
        let is_at_end = Fields::new(stats).any(|found| found.id == field::PHASE && found.as_i32() == END_OF_TRACE);
        for found in Fields::new(stats) {
            match found.id {
                field::CPU_STATS => self.add_counter(sequence, is_at_end, found.as_bytes()),
                field::UNKNOWN_FTRACE_EVENTS => keep(&mut self.unknown_events, found.as_bytes()),
                field::FAILED_FTRACE_EVENTS => keep(&mut self.failed_events, found.as_bytes()),
                _ => {}
            }
        }
    }

    fn add_counter(&mut self, sequence: u32, is_at_end: bool, stats: &[u8]) {
        use ftrace_cpu_stats::field;
        let (mut cpu, mut lost) = (0, 0_u64);
        for found in Fields::new(stats) {
            match found.id {
                field::CPU => cpu = found.as_u64(),
                field::OVERRUN | field::COMMIT_OVERRUN | field::DROPPED_EVENTS => {
                    lost = lost.saturating_add(found.as_u64());
                }
                _ => {}
            }
        }
        if self.counters.len() >= MAX_COUNTERS && !self.counters.contains_key(&(sequence, cpu)) {
            return;
        }
        let counter = self.counters.entry((sequence, cpu)).or_default();
        if is_at_end {
            counter.now = counter.now.max(lost);
        } else {
            // The data source repeats it with each flush.
            counter.at_start.get_or_insert(lost);
        }
    }
}

fn keep(names: &mut BTreeSet<String>, name: &[u8]) {
    if names.len() < MAX_EVENT_NAMES {
        names.insert(String::from_utf8_lossy(name).into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_protozero::HeapBuffer;
    use esatto_schema::ftrace_stats::Phase;
    use esatto_schema::{FtraceStatsWriter, TracePacketWriter};

    fn packet(write: impl FnOnce(&mut TracePacketWriter<'_>)) -> Vec<u8> {
        let mut buffer = HeapBuffer::new();
        let mut packet = TracePacketWriter::from(buffer.message());
        packet.trusted_packet_sequence_id(7);
        write(&mut packet);
        drop(packet);
        buffer.to_vec()
    }

    fn stats(phase: Phase, counts: &[(u64, u64)], more: impl Fn(&mut FtraceStatsWriter<'_>)) -> Vec<u8> {
        packet(|packet| {
            let mut stats = packet.ftrace_stats();
            stats.phase(phase);
            for (cpu, overrun) in counts {
                stats.cpu_stats().cpu(*cpu).overrun(*overrun);
            }
            more(&mut stats);
        })
    }

    #[test]
    fn losses_are_the_growth_of_the_kernels_counters() {
        let mut report = FtraceReport::default();
        for (phase, counts) in [
            (Phase::START_OF_TRACE, [(0, 100), (1, 5)]),
            (Phase::END_OF_TRACE, [(0, 110), (1, 5)]),
            (Phase::START_OF_TRACE, [(0, 100), (1, 5)]),
            (Phase::END_OF_TRACE, [(0, 130), (1, 5)]),
        ] {
            report.add_packet(&stats(phase, &counts, |_| {}));
        }
        assert_eq!(report.lost_events(), 30);
    }

    #[test]
    fn marks_count_where_there_are_no_counters() {
        let mut report = FtraceReport::default();
        report.add_packet(&packet(|packet| _ = packet.ftrace_events().cpu(1).lost_events(true)));
        report.add_packet(&packet(|packet| _ = packet.ftrace_events().cpu(1).lost_events(false)));
        assert_eq!(report.lost_events(), 1);
        report.add_packet(&packet(|packet| {
            packet.ftrace_events().lost_events(true).message().varint(LOST_EVENTS_NUMBER_FIELD, 40);
        }));
        assert_eq!(report.lost_events(), 40);
    }

    #[test]
    fn events_that_are_not_recorded_are_named_once() {
        let mut report = FtraceReport::default();
        for _ in 0..2 {
            report.add_packet(&stats(Phase::END_OF_TRACE, &[], |stats| {
                stats.unknown_ftrace_events("sched/sched_swich").failed_ftrace_events("irq/irq_x");
            }));
        }
        assert_eq!(report.unknown_events(), &["sched/sched_swich".to_owned()].into());
        assert_eq!(report.failed_events(), &["irq/irq_x".to_owned()].into());
    }
}
