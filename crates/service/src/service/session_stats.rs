//! Answers to QueryServiceState that tell the statistics of running sessions
//! (`docs/spec/service.md §24`).

use esatto_protozero::{Fields, Owned as _};
use esatto_schema::trace_config::BufferConfig;
use esatto_schema::{
    QueryServiceStateRequestReader, SESSION_STATS_FIELD, SESSION_STATS_WANTED_FIELD, TraceConfig, session_stats,
};

use crate::api::CallId;
use crate::context::Context;
use crate::encode::{put, put_message};
use crate::ids::SessionId;
use crate::service::Service;

/// Bytes of the statistics of a session beyond which writers are left out.
const STATS_BYTES: usize = 16 << 10;

/// Returns whether a request asks for the statistics of sessions instead of the state.
pub(crate) fn wants_session_stats(request: QueryServiceStateRequestReader<'_>) -> bool {
    Fields::new(request.as_bytes()).any(|field| field.id == SESSION_STATS_WANTED_FIELD && field.as_u64() != 0)
}

/// Returns the parts of a config that explain the statistics.
fn told_config(config: &TraceConfig) -> TraceConfig {
    let told = |buffer: &BufferConfig| BufferConfig {
        size_kb: buffer.size_kb,
        fill_policy: buffer.fill_policy,
        ..BufferConfig::default()
    };
    TraceConfig {
        buffers: config.buffers.iter().map(told).collect(),
        write_into_file: config.write_into_file,
        ..TraceConfig::default()
    }
}

impl Service {
    /// Tells the statistics of all sessions that the consumer may see, each in a reply of its own.
    pub(crate) fn tell_session_stats(&mut self, call: CallId, cx: &mut Context<'_>) {
        let Some(uid) = self.consumers.get_mut(call.client).map(|consumer| consumer.uid) else {
            return cx.reject(call);
        };
        let totals = self.totals();
        let visible = self.sessions.values().filter(|session| uid == 0 || session.consumer_uid == uid);
        let ids: Vec<SessionId> = visible.map(|session| session.id).collect();
        for id in ids {
            let Some(session) = self.sessions.get_mut(id) else { continue };
            let stats = session.encode_stats(None, STATS_BYTES, &totals, &self.buffers, &mut self.work);
            let config = told_config(&session.config).encode();
            let mut told = Vec::with_capacity(stats.len() + config.len() + 24);
            put(&mut told, session_stats::SESSION_ID, id.0);
            put_message(&mut told, session_stats::STATS.into(), &stats);
            put_message(&mut told, session_stats::CONFIG.into(), &config);
            let mut state = Vec::with_capacity(told.len() + 8);
            put_message(&mut state, SESSION_STATS_FIELD.into(), &told);
            let mut body = Vec::with_capacity(state.len() + 8);
            put_message(&mut body, 1, &state);
            cx.reply_part(call, body);
        }
        cx.reply_empty(call);
    }
}
