//! Batches of a session for a consumer or a file (`docs/spec/service.md §15`).

use crate::api::{Attachment, Body, ClientId, Now, Output};
use crate::context::Context;
use crate::ids::SessionId;
use crate::read::packet_sink::{PacketSink, ReplySink};
use crate::service::Service;
use crate::session::read::ReadContext;
use crate::session::statistics::Totals;

/// Bytes of a batch for a consumer. The contract has half of it, but a pass costs more than its
/// packets.
const BATCH_BYTES: usize = 64 * 1024;

/// Bytes by which a batch may be longer before its memory moves.
const SLACK_BYTES: usize = 32 * 1024;

impl Service {
    /// Sends the next batch of a pending ReadBuffers call.
    pub(crate) fn continue_read(&mut self, client: ClientId, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(client) else { return };
        let Some(call) = consumer.read_call else { return };
        let session = consumer.session.and_then(|id| self.sessions.get(id));
        let Some(session) = session.filter(|session| !session.file.is_used()).map(|session| session.id) else {
            consumer.read_call = None;
            return cx.reply_empty(call);
        };
        let mut sink = ReplySink::new(cx.out.buffer(BATCH_BYTES + SLACK_BYTES));
        let has_more = self.read_session(session, BATCH_BYTES, &mut sink, cx.now);
        let mut replies = sink.into_replies();
        let last = replies.pop();
        for reply in replies {
            cx.reply_part(call, reply);
        }
        if let Some(last) = last {
            let body = if last.is_empty() { Body::Empty } else { Body::Encoded(last) };
            cx.send(call, body, has_more, Attachment::Absent);
        }
        if has_more {
            cx.push(Output::AwaitReady(client));
        } else if let Some(consumer) = self.consumers.get_mut(client) {
            consumer.read_call = None;
            cx.out.forget_buffers();
        }
    }

    /// Reads a batch of a session into a sink. Returns true if there is more.
    pub(crate) fn read_session(
        &mut self,
        id: SessionId,
        threshold_bytes: usize,
        sink: &mut impl PacketSink,
        now: &Now,
    ) -> bool {
        let totals = self.totals();
        let Self { sessions, buffers, config, machines, work, observer, .. } = self;
        let Some(session) = sessions.get_mut(id) else { return false };
        session.read(threshold_bytes, sink, &mut ReadContext { config, machines, buffers, totals, now, work, observer })
    }

    /// Returns the numbers of the whole service that the statistics of a session tell.
    pub(crate) fn totals(&self) -> Totals {
        Totals {
            producers_connected: self.producers.len(),
            producers_seen: self.producers.last_id(),
            data_sources_registered: self.producers.data_sources.len(),
            instances_seen: self.sessions.last.instance,
            sessions: self.sessions.len(),
        }
    }
}
