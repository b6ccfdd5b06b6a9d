//! [`FtraceStatistics`]: what the kernel counts of a tracefs instance (`docs/spec/probes.md` §11).

use esatto::producer::TraceWriter;
use esatto_schema::ftrace_stats::Phase;
use esatto_schema::{FtraceParseStatus, FtraceStatsWriter, TracePacketWriter};

use super::cpu_stats::{CpuStats, kprobe_hits_and_misses};
use super::parse_status::ParseStatuses;
use super::tracefs::Tracefs;
use super::tracer::{Failures, Tracer};

/// Counters of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FtraceStatistics {
    cpus: Vec<(u32, CpuStats)>,
    /// Hits and misses; `None` if the kernel has no probes.
    kprobes: Option<(i64, i64)>,
    pages_per_cpu: u32,
    requested_pages: u32,
}

/// Statistics of one data source, beside the counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceStatistics<'a> {
    pub(crate) failures: &'a Failures,
    /// Why scheduling events are not compact.
    pub(crate) compact_sched_error: Option<&'a str>,
    pub(crate) errors: ParseStatuses,
    pub(crate) preserves_buffer: bool,
    /// Number of symbols, and KiB of memory for them.
    pub(crate) symbols: Option<(u32, u32)>,
}

impl FtraceStatistics {
    /// Reads the counters.
    pub(crate) fn read(tracer: &Tracer) -> Self {
        let mut statistics = Self::of_cpus(tracer.tracefs());
        statistics.pages_per_cpu = tracer.pages_per_cpu();
        statistics.requested_pages = tracer.requested_pages();
        statistics
    }

    /// Reads the counters of an instance that is not changed.
    pub(crate) fn of_cpus(tracefs: &Tracefs) -> Self {
        let cpus = tracefs.cpus().into_iter().filter_map(|cpu| Some((cpu, read_cpu(tracefs, cpu)?))).collect();
        let kprobes = tracefs.read("kprobe_profile").ok().map(|file| kprobe_hits_and_misses(&file));
        Self { cpus, kprobes, ..Self::default() }
    }

    /// Returns the events that the kernel has lost since the earlier counters.
    pub(crate) fn lost_since(&self, earlier: &Self) -> u64 {
        let before = |cpu: u32| earlier.cpus.iter().find(|(of, _)| *of == cpu).map_or(0, |(_, stats)| stats.lost());
        self.cpus.iter().map(|(cpu, stats)| stats.lost().saturating_sub(before(*cpu))).sum()
    }

    /// Writes a packet. Statistics of the end have the errors of parsing.
    pub(crate) fn write(&self, phase: Phase, source: &SourceStatistics<'_>, writer: &mut TraceWriter) {
        let mut packet = writer.new_packet();
        let mut fields = packet.typed::<TracePacketWriter<'_>>();
        let mut stats = fields.ftrace_stats();
        stats.phase(phase);
        for (cpu, counters) in &self.cpus {
            counters.write(*cpu, &mut stats.cpu_stats());
        }
        if let Some((number, memory_kb)) = source.symbols {
            stats.kernel_symbols_parsed(number);
            stats.kernel_symbols_mem_kb(memory_kb);
        }
        source.write_failures(&mut stats);
        if source.preserves_buffer {
            stats.preserve_ftrace_buffer(true);
        }
        if phase == Phase::END_OF_TRACE {
            for status in source.errors.numbers() {
                stats.ftrace_parse_errors(FtraceParseStatus(status));
            }
        }
        if let Some((hits, misses)) = self.kprobes {
            let mut kprobes = stats.kprobe_stats();
            kprobes.hits(hits);
            kprobes.misses(misses);
        }
        if self.pages_per_cpu != 0 {
            stats.cpu_buffer_size_pages(self.pages_per_cpu);
        }
        if self.requested_pages != 0 {
            stats.cached_cpu_buffer_size_pages(self.requested_pages);
        }
    }
}

impl SourceStatistics<'_> {
    fn write_failures(&self, stats: &mut FtraceStatsWriter<'_>) {
        for event in &self.failures.unknown {
            stats.unknown_ftrace_events(event);
        }
        for event in &self.failures.failed {
            stats.failed_ftrace_events(event);
        }
        if let Some(error) = self.compact_sched_error {
            stats.failed_ftrace_events(error);
        }
        if !self.failures.notes.is_empty() {
            stats.atrace_errors(self.failures.notes.join("\n"));
        }
    }
}

/// Writes that the buffer has events from before the session.
pub(crate) fn write_preserved(writer: &mut TraceWriter) {
    let mut packet = writer.new_packet();
    let mut fields = packet.typed::<TracePacketWriter<'_>>();
    let mut stats = fields.ftrace_stats();
    stats.phase(Phase::START_OF_TRACE);
    stats.preserve_ftrace_buffer(true);
}

/// Reads the counters of one CPU.
pub(crate) fn read_cpu(tracefs: &Tracefs, cpu: u32) -> Option<CpuStats> {
    tracefs.read(&format!("per_cpu/cpu{cpu}/stats")).ok().map(|file| CpuStats::parse(&file))
}
