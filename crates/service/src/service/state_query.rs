//! What the service tells about itself: statistics and its state (`docs/spec/service.md §17, §24`).

use esatto_protozero::Owned;
use esatto_schema::trace_stats::{BufferStats, FilterStats, WriterStats};
use esatto_schema::tracing_service_state::{Producer, TracingSession};
use esatto_schema::{
    INSTANCES_REFUSED_FIELD, SEQUENCES_RENAMED_FIELD, SESSION_EVENTS_LOST_FIELD, TRIGGERS_LOST_FIELD, TraceStats,
    TracingServiceState, WRITERS_LEFT_OUT_FIELD,
};

use crate::api::{CallId, ClientId, Output};
use crate::buffer::{CentralBuffer, HISTOGRAM_LIMITS};
use crate::context::{Context, WORK_BYTES};
use crate::encode::{put, put_message};
use crate::frame_limits::FULL_BODY_BYTES;
use crate::ids::{ProducerId, SessionId};
use crate::producer::data_sources::RegistrationId;
use crate::service::Service;
use crate::session::{Session, State};

/// Bytes of statistics in a trace; the histograms of writers that do not fit are left out, and
/// counted.
const MAX_STATS_PACKET_BYTES: usize = 1 << 20;

/// Bytes of a state that are sent before the consumer has to take some of them.
const QUERY_BATCH_BYTES: usize = 256 << 10;

/// QueryServiceState calls of a consumer that wait for their answer; further ones are rejected.
const MAX_QUERIES: usize = 16;

impl Service {
    /// The encoded statistics of a session for its trace.
    pub(crate) fn stats_packet(&mut self, id: SessionId, filter_stats: Option<Box<FilterStats>>) -> Option<Vec<u8>> {
        self.trace_stats(id, filter_stats, MAX_STATS_PACKET_BYTES)
    }

    /// The encoded statistics of a session: the histograms of as many writers as fit.
    fn trace_stats(
        &mut self,
        id: SessionId,
        filter_stats: Option<Box<FilterStats>>,
        max_bytes: usize,
    ) -> Option<Vec<u8>> {
        let count = |len: usize| Some(u32::try_from(len).unwrap_or(u32::MAX));
        let mut stats = TraceStats {
            producers_connected: count(self.producers.len()),
            producers_seen: Some(self.producers.last_id().into()),
            data_sources_registered: count(self.producers.data_sources.len()),
            data_sources_seen: Some(self.last.instance),
            tracing_sessions: count(self.sessions.len()),
            total_buffers: count(self.buffers.len()),
            chunks_discarded: Some(self.buffers.discarded.chunks),
            patches_discarded: Some(self.buffers.discarded.patches),
            ..TraceStats::default()
        };
        let session = self.sessions.get_mut(&id)?;
        stats.invalid_packets = Some(session.invalid_packets);
        stats.flushes_requested = Some(session.flushes_requested);
        stats.flushes_succeeded = Some(session.flushes_succeeded);
        stats.flushes_failed = Some(session.flushes_failed);
        stats.final_flush_outcome = Some(session.final_flush_outcome.unwrap_or_default());
        stats.filter_stats = filter_stats;
        let buffers = session.buffers.iter().filter_map(|buffer| self.buffers.get(*buffer));
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
            (INSTANCES_REFUSED_FIELD, session.instances_refused),
            (TRIGGERS_LOST_FIELD, session.triggers_lost),
            (SESSION_EVENTS_LOST_FIELD, session.concurrent_lost),
            (SEQUENCES_RENAMED_FIELD, session.sequence_ids.forgotten()),
        ] {
            if lost > 0 {
                put(&mut stats.unknown_fields, field, lost);
            }
        }
        let mut out = stats.encode();
        let sequence_ids = &mut session.sequence_ids;
        // Room for what is left out.
        let max_bytes = max_bytes - 16;
        while let Some((index, writer)) = next.take() {
            self.work += 1;
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
            self.work += left_out / 16;
            put(&mut out, WRITERS_LEFT_OUT_FIELD, left_out);
        }
        self.work += (out.len() / WORK_BYTES) as u64;
        Some(out)
    }

    /// Answers GetTraceStats; with the histograms of as many writers as fit into a frame.
    pub(crate) fn get_trace_stats(&mut self, call: CallId, session: Option<SessionId>, cx: &mut Context<'_>) {
        let filter = session.and_then(|session| self.sessions.get(&session)).and_then(|s| s.trace_filter.as_ref());
        let filter_stats = filter.map(|filter| Box::new(filter.stats()));
        let stats = session.and_then(|session| self.trace_stats(session, filter_stats, FULL_BODY_BYTES - 8));
        let Some(stats) = stats else { return cx.reject(call) };
        // GetTraceStatsResponse { trace_stats = 1 }
        let mut reply = Vec::with_capacity(stats.len() + 8);
        put_message(&mut reply, 1, &stats);
        cx.reply(call, reply);
    }

    /// Answers QueryServiceState in parts that each fit into a frame, as fast as the consumer takes
    /// them.
    pub(crate) fn query_service_state(&mut self, call: CallId, sessions_only: bool, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(&call.client) else { return cx.reject(call) };
        if consumer.queries.len() >= MAX_QUERIES {
            return cx.reject(call);
        }
        consumer.queries.push_back(Query { call, sessions_only, at: At::Head, part: Vec::new() });
        if consumer.queries.len() == 1 {
            self.continue_queries(call.client, cx);
        }
    }

    /// Sends the next parts of the state to a consumer that asked for it.
    pub(crate) fn continue_queries(&mut self, client: ClientId, cx: &mut Context<'_>) {
        loop {
            let Some(consumer) = self.consumers.get_mut(&client) else { return };
            let Some(query) = consumer.queries.front_mut() else { return };
            let uid = consumer.uid;
            let mut query = core::mem::replace(query, Query::done(client));
            let is_done = self.continue_query(&mut query, uid, cx);
            let Some(consumer) = self.consumers.get_mut(&client) else { return };
            if is_done {
                consumer.queries.pop_front();
                continue;
            }
            if let Some(front) = consumer.queries.front_mut() {
                *front = query;
            }
            return cx.push(Output::AwaitReady(client));
        }
    }

    /// A batch of the answer; true if that was all.
    fn continue_query(&self, query: &mut Query, uid: i32, cx: &mut Context<'_>) -> bool {
        let mut parts = Parts { call: query.call, current: core::mem::take(&mut query.part), sent_bytes: 0 };
        if query.at == At::Head {
            self.tell_sessions(uid, &mut parts, cx);
            query.at = At::Producer(0);
        }
        while let At::Producer(from) = query.at {
            let rest = self.producers.iter_from(ProducerId(from)).filter(|_| !query.sessions_only);
            for producer in rest {
                if parts.sent_bytes > QUERY_BATCH_BYTES {
                    query.at = At::Producer(producer.id.0);
                    query.part = parts.current;
                    return false;
                }
                cx.charge(1);
                parts.add_message(1, &told_producer(producer).encode(), cx);
            }
            query.at = At::Registration(RegistrationId(0));
        }
        let At::Registration(from) = query.at else { return true };
        for (id, registration) in self.producers.data_sources.iter_from(from).filter(|_| !query.sessions_only) {
            if parts.sent_bytes > QUERY_BATCH_BYTES {
                query.at = At::Registration(id);
                query.part = parts.current;
                return false;
            }
            cx.charge(1);
            // DataSource { ds_descriptor = 1, producer_id = 2 }
            let mut entry = Vec::with_capacity(registration.descriptor.len() + 16);
            put_message(&mut entry, 1, &registration.descriptor);
            put(&mut entry, 2, registration.producer.0.into());
            parts.add_message(2, &entry, cx);
        }
        cx.reply(query.call, parts.body());
        true
    }

    /// Everything but producers and data sources.
    fn tell_sessions(&self, uid: i32, parts: &mut Parts, cx: &mut Context<'_>) {
        let started = self.sessions.values().filter(|session| session.state == State::Started).count();
        let count = |len: usize| Some(i32::try_from(len).unwrap_or(i32::MAX));
        let head = TracingServiceState {
            num_sessions: count(self.sessions.len()),
            num_sessions_started: count(started),
            tracing_service_version: Some(self.config.version.as_str().into()),
            supports_tracing_sessions: Some(true),
            ..TracingServiceState::default()
        };
        parts.add(&head.encode(), cx);
        for session in self.sessions.values().filter(|session| uid == 0 || session.consumer_uid == uid) {
            cx.charge(1);
            parts.add_message(6, &tracing_session(session).encode(), cx);
        }
    }
}

/// A QueryServiceState call that is not answered in full yet.
#[derive(Debug)]
pub(crate) struct Query {
    call: CallId,
    sessions_only: bool,
    at: At,
    /// The state so far that was not sent.
    part: Vec<u8>,
}

impl Query {
    /// Nothing is asked.
    fn done(client: ClientId) -> Self {
        let call = CallId { client, request: 0 };
        Self { call, sessions_only: true, at: At::Head, part: Vec::new() }
    }
}

/// What of the state comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Head,
    /// Producers from this number on.
    Producer(u16),
    /// Data sources from this one on.
    Registration(RegistrationId),
}

/// A state that is spread over several replies of limited size.
struct Parts {
    call: CallId,
    current: Vec<u8>,
    sent_bytes: usize,
}

impl Parts {
    fn add(&mut self, field: &[u8], cx: &mut Context<'_>) {
        // What is too long for a full part has one of its own; it fits into a frame, because its
        // cause was refused otherwise.
        if !self.current.is_empty() && self.current.len() + field.len() > FULL_BODY_BYTES - 8 {
            let body = self.body();
            cx.reply_part(self.call, body);
        }
        self.current.extend_from_slice(field);
    }

    fn add_message(&mut self, field: u64, message: &[u8], cx: &mut Context<'_>) {
        let mut bytes = Vec::with_capacity(message.len() + 8);
        put_message(&mut bytes, field, message);
        self.add(&bytes, cx);
    }

    /// The state so far as a QueryServiceStateResponse { service_state = 1 }.
    fn body(&mut self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.current.len() + 8);
        put_message(&mut body, 1, &self.current);
        self.current.clear();
        self.sent_bytes += body.len();
        body
    }
}

fn told_producer(producer: &crate::producer::Producer) -> Producer {
    Producer {
        id: Some(producer.id.0.into()),
        name: Some(producer.name.to_vec().into()),
        uid: Some(producer.peer.uid),
        sdk_version: Some(producer.sdk_version.clone().into()),
        pid: producer.peer.pid,
        machine_id: Some(producer.peer.machine_id).filter(|&id| id != 0),
        machine_name: Some(&producer.machine_name).filter(|name| !name.is_empty()).map(|name| name.clone().into()),
        ..Producer::default()
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
