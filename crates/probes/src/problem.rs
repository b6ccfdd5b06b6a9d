//! Writes into the trace why a data source does not record.

use esatto::producer::TraceWriter;
use esatto_schema::ftrace_stats::Phase;
use esatto_schema::{DATA_SOURCE_PROBLEM_FIELD, TracePacketWriter, data_source_problem};

/// Longest reason in the trace. It may quote texts of the config.
const MAX_REASON_BYTES: usize = 4096;

/// Writes why the data source `name` does not record, and flushes the writer.
///
/// For `linux.ftrace`, the reason is also in its statistics, where Perfetto's tools look for it.
pub(crate) fn write(writer: &mut TraceWriter, name: &str, reason: &str) {
    let end = (0..=reason.len().min(MAX_REASON_BYTES)).rev().find(|&end| reason.is_char_boundary(end));
    let reason = &reason[..end.unwrap_or(0)];
    {
        let mut packet = writer.new_packet();
        let mut fields = packet.typed::<TracePacketWriter<'_>>();
        fields.timestamp(boot_now_ns());
        if name == "linux.ftrace" {
            fields.ftrace_stats().phase(Phase::START_OF_TRACE).atrace_errors(reason);
        }
        let mut problem = fields.message().begin(DATA_SOURCE_PROBLEM_FIELD);
        problem.bytes(data_source_problem::DATA_SOURCE_NAME, name.as_bytes());
        problem.bytes(data_source_problem::REASON, reason.as_bytes());
    }
    writer.flush();
}

fn boot_now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
