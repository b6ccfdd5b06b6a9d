//! Counts of packets, and what the service and the probes report about the recording.

use std::collections::BTreeMap;

use esatto_schema::DATA_SOURCE_PROBLEM_FIELD;

use crate::envelope::Envelope;
use crate::field_names;
use crate::ftrace_report::FtraceReport;
use crate::service_report::Meta;
use crate::session_progress::SERVICE_SEQUENCE;

/// Number and size of packets of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// Counts of packets, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// By the number of the field of the payload; 0 for packets without one.
    pub(crate) by_type: BTreeMap<u32, Tally>,
    pub(crate) meta: Meta,
    pub(crate) annotations: u64,
    pub(crate) states: u64,
    pub(crate) ftrace_events: u64,
    /// Bundles before which events were lost.
    pub(crate) ftrace_losses: u64,
    pub(crate) ftrace_report: FtraceReport,
}

impl Survey {
    pub(crate) fn add_packet(&mut self, envelope: &Envelope<'_>, bytes: u64) {
        let tally = self.by_type.entry(envelope.payload.map_or(0, |(id, _)| id)).or_default();
        tally.packets += 1;
        tally.bytes += bytes;
        if envelope.uid.is_some() && envelope.sequence > SERVICE_SEQUENCE {
            self.meta.progress.add_packet();
        }
    }
}

/// Returns the name of a kind of packet.
pub(crate) fn packet_type(id: u32) -> String {
    match id {
        0 => "(empty)".to_owned(),
        DATA_SOURCE_PROBLEM_FIELD => "data_source_problem".to_owned(),
        id => field_names::name(field_names::trace_packet(), id),
    }
}

/// Extends a span of time to contain `ts`.
pub(crate) fn widen(span: &mut Option<(i64, i64)>, ts: i64) {
    let (from, to) = span.unwrap_or((ts, ts));
    *span = Some((from.min(ts), to.max(ts)));
}
