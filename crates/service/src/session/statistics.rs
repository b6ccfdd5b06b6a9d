//! Statistics of a session, for its trace and for GetTraceStats (`docs/spec/service.md §17`).

use esatto_protozero::Owned;
use esatto_schema::trace_stats::{BufferStats, FilterStats, WriterStats};
use esatto_schema::{
    GAPS_BETWEEN_PACKETS_FIELD, INSTANCES_REFUSED_FIELD, PACKETS_AFTER_LOSS_FIELD, PATCHES_OF_OVERWRITTEN_FIELD,
    SEQUENCES_RENAMED_FIELD, SESSION_EVENTS_LOST_FIELD, TRIGGERS_DELAYED_FIELD, TRIGGERS_LIMITED_FIELD,
    TRIGGERS_LOST_FIELD, TraceStats, WRITERS_LEFT_OUT_FIELD,
};

use super::Session;
use crate::buffer::table::Buffers;
use crate::buffer::{CentralBuffer, HISTOGRAM_LIMITS};
use crate::context::WORK_BYTES;
use crate::encode::{put, put_message};

/// Bytes of statistics in a trace. The service leaves out and counts the histograms of writers that
/// do not fit.
pub(crate) const MAX_STATS_PACKET_BYTES: usize = 1 << 20;

/// Numbers of the whole service that the statistics of a session tell.
#[derive(Debug)]
pub(crate) struct Totals {
    pub(crate) producers_connected: usize,
    pub(crate) producers_seen: u16,
    pub(crate) data_sources_registered: usize,
    pub(crate) instances_seen: u64,
    pub(crate) sessions: usize,
}

impl Session {
    /// Encodes the statistics of a session, with the histograms of as many writers as fit.
    pub(crate) fn encode_stats(
        &mut self,
        filter_stats: Option<Box<FilterStats>>,
        max_bytes: usize,
        totals: &Totals,
        all_buffers: &Buffers,
        work: &mut u64,
    ) -> Vec<u8> {
        let count = |len: usize| Some(u32::try_from(len).unwrap_or(u32::MAX));
        let mut stats = TraceStats {
            producers_connected: count(totals.producers_connected),
            producers_seen: Some(totals.producers_seen.into()),
            data_sources_registered: count(totals.data_sources_registered),
            data_sources_seen: Some(totals.instances_seen),
            tracing_sessions: count(totals.sessions),
            total_buffers: count(all_buffers.len()),
            chunks_discarded: Some(all_buffers.discarded.chunks),
            patches_discarded: Some(all_buffers.discarded.patches),
            ..TraceStats::default()
        };
        let session = self;
        stats.invalid_packets = Some(session.reading.invalid_packets);
        stats.flushes_requested = Some(session.flushes.requested);
        stats.flushes_succeeded = Some(session.flushes.succeeded);
        stats.flushes_failed = Some(session.flushes.failed);
        stats.final_flush_outcome = Some(session.flushes.final_outcome.unwrap_or_default());
        stats.filter_stats = filter_stats;
        let buffers = session.buffers.iter().filter_map(|&buffer| all_buffers.get(buffer));
        stats.buffer_stats.extend(buffers.clone().map(buffer_stats));
        let has_histograms = !session.builtin(|builtin| builtin.disable_chunk_usage_histograms);
        let buffers = buffers.enumerate().filter(|_| has_histograms);
        let mut writers =
            buffers.flat_map(|(index, buffer)| buffer.unsorted_writers().map(move |writer| (index, writer)));
        let mut next = writers.next();
        if next.is_some() {
            stats.chunk_payload_histogram_def = HISTOGRAM_LIMITS.iter().map(|&limit| limit as i64).collect();
        }
        for (field, lost) in [
            (INSTANCES_REFUSED_FIELD, session.unread.lost.instances),
            (TRIGGERS_LOST_FIELD, session.unread.lost.triggers),
            (SESSION_EVENTS_LOST_FIELD, session.unread.lost.session_events),
            (SEQUENCES_RENAMED_FIELD, session.reading.sequence_ids.forgotten()),
            (TRIGGERS_LIMITED_FIELD, session.triggers.limited),
            (TRIGGERS_DELAYED_FIELD, session.triggers.delayed.len() as u64),
        ] {
            if lost > 0 {
                put(&mut stats.unknown_fields, field, lost);
            }
        }
        let mut out = stats.encode();
        let sequence_ids = &mut session.reading.sequence_ids;
        // Room for the number of writers that are left out.
        let max_bytes = max_bytes - 16;
        while let Some((index, writer)) = next.take() {
            *work += 1;
            let encoded = WriterStats {
                sequence_id: Some(sequence_ids.of(&writer.identity, writer.producer.0, writer.writer.0).into()),
                chunk_payload_histogram_counts: writer.counts.to_vec(),
                chunk_payload_histogram_sum: writer.sums.iter().map(|&sum| sum as i64).collect(),
                buffer: count(index),
                ..WriterStats::default()
            }
            .encode();
            if out.len() + encoded.len() + 8 > max_bytes {
                next = Some((index, writer));
                break;
            }
            put_message(&mut out, 18, &encoded);
            next = writers.next();
        }
        if next.is_some() {
            let left_out = 1 + writers.count() as u64;
            *work += left_out / 16;
            put(&mut out, WRITERS_LEFT_OUT_FIELD, left_out);
        }
        *work += (out.len() / WORK_BYTES) as u64;
        out
    }
}

fn buffer_stats(buffer: &CentralBuffer) -> BufferStats {
    let stats = buffer.stats();
    let mut unknown_fields = Vec::new();
    for (field, count) in [
        (GAPS_BETWEEN_PACKETS_FIELD, stats.gaps_between_packets),
        (PACKETS_AFTER_LOSS_FIELD, buffer.losses_told()),
        (PATCHES_OF_OVERWRITTEN_FIELD, stats.patches_of_overwritten),
    ] {
        if count > 0 {
            put(&mut unknown_fields, field, count);
        }
    }
    BufferStats {
        buffer_size: Some(buffer.size_bytes() as u64),
        bytes_written: Some(stats.bytes_written),
        bytes_overwritten: Some(stats.bytes_overwritten),
        bytes_read: Some(stats.bytes_read),
        padding_bytes_written: Some(stats.padding_bytes_written),
        padding_bytes_cleared: Some(stats.padding_bytes_cleared),
        chunks_written: Some(stats.chunks_written),
        chunks_rewritten: Some(stats.chunks_rewritten),
        chunks_overwritten: Some(stats.chunks_overwritten),
        chunks_discarded: Some(stats.chunks_discarded),
        chunks_read: Some(stats.chunks_read),
        chunks_committed_out_of_order: Some(stats.chunks_committed_out_of_order),
        chunks_relocated: Some(stats.chunks_relocated),
        write_wrap_count: Some(stats.write_wrap_count),
        patches_succeeded: Some(stats.patches_succeeded),
        patches_failed: Some(stats.patches_failed),
        readaheads_succeeded: Some(stats.readaheads_succeeded),
        readaheads_failed: Some(stats.readaheads_failed),
        abi_violations: Some(stats.abi_violations),
        trace_writer_packet_loss: Some(stats.trace_writer_packet_loss),
        unknown_fields,
    }
}
