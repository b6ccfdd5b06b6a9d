//! What the service tells about itself: statistics and its state (`docs/spec/service.md §17, §24`).

use esatto_protozero::Owned;
use esatto_schema::trace_stats::{BufferStats, WriterStats};
use esatto_schema::tracing_service_state::{Producer, TracingSession};
use esatto_schema::{GetTraceStatsResponse, TraceStats, TracingServiceState};

use crate::api::CallId;
use crate::buffer::{CentralBuffer, HISTOGRAM_LIMITS};
use crate::context::Context;
use crate::ids::SessionId;
use crate::packet_check::put_varint;
use crate::service::Service;
use crate::session::{Session, State};

/// Bytes of a reply, with room for what is around it in its frame.
const MAX_REPLY_BYTES: usize = 131_072 - 128;
/// Bytes of one part of the state.
const MAX_STATE_BYTES: usize = MAX_REPLY_BYTES;

impl Service {
    /// The statistics of a session; none of its filter, while it is being read.
    pub(crate) fn trace_stats(&mut self, id: SessionId) -> Option<TraceStats> {
        let count = |len: usize| Some(u32::try_from(len).unwrap_or(u32::MAX));
        let mut stats = TraceStats {
            producers_connected: count(self.producers.len()),
            producers_seen: Some(self.last.producer.into()),
            data_sources_registered: count(self.registry.len()),
            data_sources_seen: Some(self.last.instance),
            tracing_sessions: count(self.sessions.len()),
            total_buffers: count(self.buffers.len()),
            chunks_discarded: Some(self.discarded.chunks),
            patches_discarded: Some(self.discarded.patches),
            ..TraceStats::default()
        };
        let session = self.sessions.get_mut(&id)?;
        stats.invalid_packets = Some(session.invalid_packets);
        stats.flushes_requested = Some(session.flushes_requested);
        stats.flushes_succeeded = Some(session.flushes_succeeded);
        stats.flushes_failed = Some(session.flushes_failed);
        stats.final_flush_outcome = Some(session.final_flush_outcome.unwrap_or_default());
        stats.filter_stats = session.trace_filter.as_ref().map(|filter| Box::new(filter.stats()));
        let has_histograms = !session.builtin(|builtin| builtin.disable_chunk_usage_histograms);
        for (index, buffer) in session.buffers.iter().enumerate() {
            let Some(buffer) = self.buffers.get(buffer) else { continue };
            stats.buffer_stats.push(buffer_stats(buffer));
            if !has_histograms {
                continue;
            }
            for writer in buffer.writers() {
                let sequence_ids = &mut session.sequence_ids;
                let id = sequence_ids.of(writer.identity.machine_id, writer.producer.0, writer.writer.0);
                stats.writer_stats.push(WriterStats {
                    sequence_id: Some(id.into()),
                    chunk_payload_histogram_counts: writer.counts.to_vec(),
                    chunk_payload_histogram_sum: writer.sums.iter().map(|&sum| sum as i64).collect(),
                    buffer: count(index),
                    ..WriterStats::default()
                });
            }
        }
        if !stats.writer_stats.is_empty() {
            stats.chunk_payload_histogram_def = HISTOGRAM_LIMITS.iter().map(|&limit| limit as i64).collect();
        }
        Some(stats)
    }

    /// Answers GetTraceStats; without the histograms of very many writers, which fit into no frame.
    pub(crate) fn get_trace_stats(&mut self, call: CallId, session: Option<SessionId>, cx: &mut Context<'_>) {
        let Some(mut stats) = session.and_then(|session| self.trace_stats(session)) else { return cx.reject(call) };
        let encode = |stats: &TraceStats| {
            GetTraceStatsResponse { trace_stats: Some(Box::new(stats.clone())), ..Default::default() }.encode()
        };
        let mut reply = encode(&stats);
        if reply.len() > MAX_REPLY_BYTES {
            stats.writer_stats.clear();
            reply = encode(&stats);
        }
        cx.reply(call, reply);
    }

    /// Answers QueryServiceState in parts that each fit into a frame.
    pub(crate) fn query_service_state(&mut self, call: CallId, sessions_only: bool, cx: &mut Context<'_>) {
        let Some(uid) = self.consumers.get(&call.client).map(|consumer| consumer.uid) else { return cx.reject(call) };
        let started = self.sessions.values().filter(|session| session.state == State::Started).count();
        let count = |len: usize| Some(i32::try_from(len).unwrap_or(i32::MAX));
        let mut parts = Parts::default();
        let head = TracingServiceState {
            num_sessions: count(self.sessions.len()),
            num_sessions_started: count(started),
            tracing_service_version: Some(self.config.version.as_str().into()),
            supports_tracing_sessions: Some(true),
            ..TracingServiceState::default()
        };
        parts.add(&head.encode());
        for session in self.sessions.values().filter(|session| uid == 0 || session.consumer_uid == uid) {
            parts.add_message(6, &tracing_session(session).encode());
        }
        if !sessions_only {
            for producer in self.producers.values() {
                let entry = Producer {
                    id: Some(producer.id.0.into()),
                    name: Some(producer.name.clone().into()),
                    uid: Some(producer.peer.uid),
                    sdk_version: Some(producer.sdk_version.clone().into()),
                    pid: producer.peer.pid,
                    machine_id: Some(producer.peer.machine_id).filter(|&id| id != 0),
                    machine_name: Some(&producer.machine_name)
                        .filter(|name| !name.is_empty())
                        .map(|name| name.clone().into()),
                    ..Producer::default()
                };
                parts.add_message(1, &entry.encode());
            }
            for registration in &self.registry {
                // DataSource { ds_descriptor = 1, producer_id = 2 }
                let mut entry = vec![1 << 3 | 2];
                put_varint(&mut entry, registration.descriptor.len() as u64);
                entry.extend_from_slice(&registration.descriptor);
                entry.push(2 << 3);
                put_varint(&mut entry, registration.producer.0.into());
                parts.add_message(2, &entry);
            }
        }
        let mut parts = parts.finish().into_iter().peekable();
        while let Some(state) = parts.next() {
            // QueryServiceStateResponse { service_state = 1 }
            let mut body = vec![1 << 3 | 2];
            put_varint(&mut body, state.len() as u64);
            body.extend_from_slice(&state);
            if parts.peek().is_some() {
                cx.reply_part(call, body);
            } else {
                cx.reply(call, body);
            }
        }
    }
}

/// Fields of a message, spread over several messages of limited size.
#[derive(Default)]
struct Parts {
    done: Vec<Vec<u8>>,
    current: Vec<u8>,
}

impl Parts {
    fn add(&mut self, field: &[u8]) {
        if !self.current.is_empty() && self.current.len() + field.len() > MAX_STATE_BYTES {
            self.done.push(core::mem::take(&mut self.current));
        }
        // What fits into no frame at all is left out.
        if field.len() <= MAX_STATE_BYTES {
            self.current.extend_from_slice(field);
        }
    }

    fn add_message(&mut self, field: u64, message: &[u8]) {
        let mut bytes = Vec::with_capacity(message.len() + 8);
        put_varint(&mut bytes, field << 3 | 2);
        put_varint(&mut bytes, message.len() as u64);
        bytes.extend_from_slice(message);
        self.add(&bytes);
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        self.done.push(self.current);
        self.done
    }
}

fn tracing_session(session: &Session) -> TracingSession {
    let config = &session.config;
    TracingSession {
        id: Some(session.id.0),
        consumer_uid: Some(session.consumer_uid),
        state: Some(session.state.name().into()),
        unique_session_name: config.unique_session_name.clone(),
        buffer_size_kb: config.buffers.iter().map(|buffer| buffer.size_kb.unwrap_or(0)).collect(),
        duration_ms: Some(config.duration_ms.unwrap_or(0)),
        num_data_sources: Some(u32::try_from(session.instances.len()).unwrap_or(u32::MAX)),
        start_realtime_ns: session.started_realtime_ns.map(|ns| ns as i64),
        bugreport_score: config.bugreport_score,
        bugreport_filename: config.bugreport_filename.clone(),
        is_started: Some(session.state == State::Started),
        ..TracingSession::default()
    }
}

fn buffer_stats(buffer: &CentralBuffer) -> BufferStats {
    let stats = buffer.stats();
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
        ..BufferStats::default()
    }
}
