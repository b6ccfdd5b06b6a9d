//! Flushes: data sources hand over everything that they have written (`docs/spec/service.md §12`).

use esatto_map::LargeMap;
use esatto_schema::trace_stats::FinalFlushOutcome;

use crate::api::TimerClock;
use crate::context::Context;
use crate::ids::{BufferId, InstanceId, ProducerId, SessionId};
use crate::service::Service;
use crate::session::flush::{AfterFlush, Asked, FlushReason};
use crate::session::flush_strategy::FlushStrategy;
use crate::session::instances::Instance;
use crate::session::state::State;
use crate::session::unread_events::Event;
use crate::timers::Purpose;

impl Service {
    /// Asks every producer of a session to flush. A `timeout_ms` of 0 stands for the session's.
    pub(crate) fn flush(
        &mut self,
        session_id: SessionId,
        timeout_ms: u32,
        reason: FlushReason,
        then: AfterFlush,
        cx: &mut Context<'_>,
    ) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        session.record(Event::FlushStarted, false, cx.now);
        self.flush_buffers(session_id, timeout_ms, reason, then, None, cx);
    }

    /// Asks the producers of the instances that write to these buffers, or all producers. The
    /// caller records the flush in the trace.
    pub(crate) fn flush_buffers(
        &mut self,
        session_id: SessionId,
        timeout_ms: u32,
        reason: FlushReason,
        then: AfterFlush,
        buffers: Option<Vec<BufferId>>,
        cx: &mut Context<'_>,
    ) {
        let Some(session) = self.sessions.get(session_id) else { return };
        if !session.can_flush() {
            return self.after_flush(session_id, then, false, cx);
        }
        let asked = Asked { up_to: InstanceId(self.sessions.last.instance), buffers };
        let id = self.sessions.next_flush();
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let timeout_ms = if timeout_ms == 0 { session.flush_timeout_ms() } else { timeout_ms };
        if session.ask_to_flush(id, asked, reason, then, &mut self.producers, cx) {
            self.timers.set(session_id, Purpose::FlushTimeout(id), TimerClock::Monotonic, timeout_ms, cx);
        } else {
            self.finish_flush(session_id, id, true, cx);
        }
    }

    /// Handles a producer's answer to this and all earlier flushes.
    pub(crate) fn acknowledge_flush(&mut self, producer: ProducerId, up_to: u64, cx: &mut Context<'_>) {
        let Self { producers, sessions, .. } = self;
        let Some(found) = producers.get_mut(producer) else { return };
        let mut complete: LargeMap<SessionId, Vec<(u64, bool)>> = LargeMap::new();
        while found.flushes.first_key_value().is_some_and(|(&id, _)| id <= up_to) {
            let Some((id, session)) = found.flushes.pop_first() else { break };
            cx.charge(1);
            let flush = sessions.get_mut(session).and_then(|session| session.flushes.pending.get_mut(&id));
            let Some(flush) = flush else { continue };
            if flush.waiting_for.remove(&producer) && flush.waiting_for.is_empty() && !flush.is_over {
                complete.get_or_default(session).push((id, true));
            }
        }
        for (session, flushes) in complete {
            // One scrape serves all flushes that end now. There may be very many of them, and a few
            // bytes may answer each one.
            self.scrape_flushed(session, flushes, cx);
        }
    }

    /// Ends the wait of a flush: every producer has answered, or the time is over.
    pub(crate) fn finish_flush(&mut self, session_id: SessionId, id: u64, succeeded: bool, cx: &mut Context<'_>) {
        let flush = self.sessions.get(session_id).and_then(|session| session.flushes.pending.get(&id));
        if flush.is_some_and(|flush| !flush.is_over) {
            self.scrape_flushed(session_id, vec![(id, succeeded)], cx);
        }
    }

    /// Scrapes for these flushes, whose wait is over. They end when the scrape is complete.
    fn scrape_flushed(&mut self, session_id: SessionId, flushes: Vec<(u64, bool)>, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        for (id, _) in &flushes {
            if let Some(flush) = session.flushes.pending.get_mut(id) {
                flush.is_over = true;
            }
        }
        for (id, _) in &flushes {
            self.timers.cancel(session_id, Purpose::FlushTimeout(*id), cx);
        }
        self.scrape_session(session_id, flushes, false, cx);
    }

    /// Ends a flush whose scrape is complete.
    pub(crate) fn end_flush(&mut self, session_id: SessionId, id: u64, succeeded: bool, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let Some(flush) = session.flushes.pending.remove(&id) else { return };
        for producer in &flush.waiting_for {
            cx.charge(1);
            if let Some(producer) = self.producers.get_mut(*producer) {
                producer.flushes.remove(&id);
            }
        }
        let unanswered = |instance: &Instance| {
            !instance.no_flush && flush.asked.includes(instance) && flush.waiting_for.contains(&instance.producer)
        };
        let slow = if !succeeded && flush.reason.names_slow_ones() {
            self.names_of(session_id, unanswered, cx)
        } else {
            Vec::new()
        };
        let named = if succeeded { String::new() } else { self.in_words(session_id, unanswered, cx) };
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if !slow.is_empty() {
            session.record(Event::LastFlushSlowDataSources(slow), false, cx.now);
        }
        session.record(Event::AllDataSourcesFlushed, true, cx.now);
        if succeeded {
            session.flushes.succeeded += 1;
        } else {
            session.flushes.failed += 1;
            self.activity.flushes_failed += 1;
            cx.warn(format!("{}: flush {id} was not acknowledged in time by {named}", session.label()));
        }
        self.after_flush(session_id, flush.then, succeeded, cx);
    }

    fn after_flush(&mut self, session_id: SessionId, then: AfterFlush, succeeded: bool, cx: &mut Context<'_>) {
        match then {
            AfterFlush::Nothing => {}
            AfterFlush::Reply(call) if succeeded => cx.reply_empty(call),
            AfterFlush::Reply(call) => cx.reject(call),
            AfterFlush::WriteFile => self.write_file(session_id, false, cx),
            AfterFlush::Clone(clone, group) => self.take_group(clone, group, succeeded, cx),
            AfterFlush::StopSession => {
                let Some(session) = self.sessions.get_mut(session_id) else { return };
                session.flushes.final_outcome = Some(match succeeded {
                    true => FinalFlushOutcome::FINAL_FLUSH_SUCCEEDED,
                    false => FinalFlushOutcome::FINAL_FLUSH_FAILED,
                });
                if session.consumer().is_some() {
                    self.disable(session_id, false, None, cx);
                } else {
                    self.free(session_id, None, cx);
                }
            }
        }
    }

    pub(crate) fn periodic_flush(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get(session_id).filter(|session| session.state() == State::Started) else {
            return;
        };
        if let FlushStrategy::Periodic { period_ms } = session.flushes.strategy {
            self.timers.set_periodic(session_id, Purpose::PeriodicFlush, TimerClock::Monotonic, period_ms, cx);
            self.flush(session_id, 0, FlushReason::Periodic, AfterFlush::Nothing, cx);
        }
    }
}
