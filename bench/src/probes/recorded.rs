//! [`Recorded`]: sums over the packets of a trace.

use esatto_protozero::Fields;
use esatto_schema::ftrace_stats::Phase;
use esatto_schema::{FtraceStatsReader, ftrace_event_bundle, trace_packet};

/// Contents of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    /// Events of the kernel.
    pub(super) events: u64,
    /// Time of the first one on the boot clock.
    pub(super) first_event_ns: Option<u64>,
    /// Events that the kernel overwrote or dropped during the session.
    pub(super) lost: u64,
    lost_before: u64,
    /// Packets with counters of the system.
    pub(super) system_packets: u64,
    /// Counters in them.
    pub(super) system_fields: u64,
    /// How often each process is in the packets with counters.
    polls_of: std::collections::BTreeMap<u32, u64>,
    /// Processes in the tree.
    pub(super) described: u64,
    /// Bytes of all packets.
    pub(super) bytes: u64,
}

/// `FtraceEvent.timestamp`, `ProcessStats.Process.pid` and `ProcessStats.processes`,
/// `ProcessTree.processes`.
const FIRST_FIELD: u32 = 1;

impl Recorded {
    /// Adds a packet.
    pub(super) fn add(&mut self, packet: &[u8]) {
        self.bytes += packet.len() as u64;
        for field in Fields::new(packet) {
            match field.id {
                trace_packet::field::FTRACE_EVENTS => self.add_bundle(field.as_bytes()),
                trace_packet::field::FTRACE_STATS => self.add_statistics(&FtraceStatsReader::new(field.as_bytes())),
                trace_packet::field::SYS_STATS => {
                    self.system_packets += 1;
                    self.system_fields += Fields::new(field.as_bytes()).count() as u64;
                }
                trace_packet::field::PROCESS_STATS => {
                    for process in Fields::new(field.as_bytes()).filter(|process| process.id == FIRST_FIELD) {
                        let pid = Fields::new(process.as_bytes()).find(|part| part.id == FIRST_FIELD);
                        let pid = pid.map_or(0, |pid| pid.as_u32());
                        *self.polls_of.entry(pid).or_default() += 1;
                    }
                }
                trace_packet::field::PROCESS_TREE => {
                    let parts = Fields::new(field.as_bytes());
                    self.described += parts.filter(|part| part.id == FIRST_FIELD).count() as u64;
                }
                _ => {}
            }
        }
    }

    /// How often the counters of a process were read.
    pub(super) fn polls_of(&self, pid: u32) -> u64 {
        self.polls_of.get(&pid).copied().unwrap_or(0)
    }

    /// Lost events of a thousand.
    pub(super) fn lost_per_mille(&self) -> f64 {
        self.lost as f64 * 1000.0 / (self.lost + self.events).max(1) as f64
    }

    fn add_bundle(&mut self, bundle: &[u8]) {
        for field in Fields::new(bundle) {
            match field.id {
                ftrace_event_bundle::field::EVENT => {
                    self.events += 1;
                    let time = Fields::new(field.as_bytes()).find(|part| part.id == FIRST_FIELD);
                    self.see(time.map_or(0, |time| time.as_u64()));
                }
                ftrace_event_bundle::field::COMPACT_SCHED => {
                    let compact = ftrace_event_bundle::CompactSchedReader::new(field.as_bytes());
                    self.events += compact.switch_timestamp().count() as u64;
                    // The others are differences.
                    compact.switch_timestamp().next().into_iter().for_each(|time| self.see(time));
                }
                _ => {}
            }
        }
    }

    fn see(&mut self, ns: u64) {
        self.first_event_ns = Some(self.first_event_ns.map_or(ns, |first| first.min(ns)));
    }

    /// The last packets count: those of the final flush.
    fn add_statistics(&mut self, statistics: &FtraceStatsReader<'_>) {
        let lost = |cpu: esatto_schema::FtraceCpuStatsReader<'_>| {
            cpu.overrun().unwrap_or(0) + cpu.commit_overrun().unwrap_or(0) + cpu.dropped_events().unwrap_or(0)
        };
        let lost = statistics.cpu_stats().map(lost).sum::<u64>();
        if statistics.phase() == Some(Phase::START_OF_TRACE) {
            self.lost_before = lost;
        } else {
            self.lost = lost.saturating_sub(self.lost_before);
        }
    }
}
