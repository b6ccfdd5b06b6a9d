//! Asking data sources for everything they have written so far (`docs/spec/service.md §12, §13`).

use esatto_map::Map;
use esatto_schema::trace_config::trigger_config::TriggerMode;
use esatto_schema::trace_stats::FinalFlushOutcome;
use esatto_shm::planted;

use crate::api::{MemoryKind, TimerClock};
use crate::context::Context;
use crate::ids::{InstanceId, ProducerId, SessionId};
use crate::producer::command;
use crate::service::{Purpose, Service};
use crate::session::{
    AfterFlush, Event, FlushReason, FlushStrategy, Instance, InstanceState, PendingFlush, Session, State,
};
use crate::triggers;

/// Flushes of one session that may wait for answers; a further one is refused at this many.
const MAX_PENDING_FLUSHES: usize = 1000;

/// Data sources named in a "slow" event.
const MAX_SLOW_DATA_SOURCES: usize = 32;

impl Service {
    /// Asks every producer of a session; `timeout_ms` 0 means the session's.
    pub(crate) fn flush(
        &mut self,
        session_id: SessionId,
        timeout_ms: u32,
        reason: FlushReason,
        then: AfterFlush,
        cx: &mut Context<'_>,
    ) {
        let Some(session) = self.sessions.get_mut(&session_id) else { return };
        session.record(Event::FlushStarted, false, cx.now);
        self.flush_instances(session_id, timeout_ms, reason, then, |_| true, cx);
    }

    /// Asks the producers of some instances. The flush is told in the trace by the caller.
    pub(crate) fn flush_instances(
        &mut self,
        session_id: SessionId,
        timeout_ms: u32,
        reason: FlushReason,
        then: AfterFlush,
        is_asked: impl Fn(&Instance) -> bool,
        cx: &mut Context<'_>,
    ) {
        let Some(session) = self.sessions.get_mut(&session_id) else { return };
        if session.flushes.len() > MAX_PENDING_FLUSHES || session.state != State::Started {
            return self.after_flush(session_id, then, false, cx);
        }
        let mut requests: Map<ProducerId, Vec<InstanceId>> = Map::new();
        for instance in session.instances.iter().filter(|instance| is_asked(instance)) {
            let Some(producer) = self.producers.get(&instance.producer) else { continue };
            let scrapes_itself = producer.memory_kind == MemoryKind::Emulated && producer.wants_scraping;
            if !instance.no_flush {
                requests.get_or_default(instance.producer).push(instance.id);
            } else if scrapes_itself {
                requests.get_or_default(instance.producer);
            }
        }
        session.news.forget_slow_flush();
        session.flushes_requested += 1;

        self.last.flush += 1;
        let id = self.last.flush;
        let timeout_ms = if timeout_ms == 0 { session.flush_timeout_ms() } else { timeout_ms };
        let is_empty = requests.is_empty();
        for (producer, instances) in &requests {
            if let Some(producer) = self.producers.get_mut(producer) {
                producer.send(command::flush(instances, id, reason.flags()), cx);
            }
        }
        session.flushes.insert(id, PendingFlush { waiting_for: requests, reason, then });
        if is_empty {
            return self.finish_flush(session_id, id, true, cx);
        }
        self.set_timer(session_id, Purpose::FlushTimeout(id), TimerClock::Monotonic, timeout_ms, cx);
    }

    /// A producer answered this and all earlier flushes.
    pub(crate) fn acknowledge_flush(&mut self, producer: ProducerId, up_to: u64, cx: &mut Context<'_>) {
        let mut complete = Vec::new();
        for session in self.sessions.values_mut() {
            let up_to = if planted!("flush-id-off-by-one") { up_to - 1 } else { up_to };
            for (&id, flush) in session.flushes.iter_mut().take_while(|(id, _)| **id <= up_to) {
                if flush.waiting_for.remove(&producer).is_some() && flush.waiting_for.is_empty() {
                    complete.push((session.id, id));
                }
            }
        }
        for (session, flush) in complete {
            self.finish_flush(session, flush, true, cx);
        }
    }

    /// A flush is over: every producer answered, or the time is.
    pub(crate) fn finish_flush(&mut self, session_id: SessionId, id: u64, succeeded: bool, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(&session_id) else { return };
        let Some(flush) = session.flushes.remove(&id) else { return };
        self.cancel_timers(session_id, |purpose| purpose == Purpose::FlushTimeout(id), cx);
        if !planted!("flush-unscraped") {
            self.scrape_session(session_id);
        }
        let slow = if !succeeded && flush.reason.names_slow_ones() {
            let unanswered = |instance: &Instance| {
                flush.waiting_for.get(&instance.producer).is_some_and(|asked| asked.contains(&instance.id))
            };
            self.names_of(session_id, unanswered)
        } else {
            Vec::new()
        };
        let Some(session) = self.sessions.get_mut(&session_id) else { return };
        if !slow.is_empty() {
            session.record(Event::LastFlushSlowDataSources(slow), false, cx.now);
        }
        session.record(Event::AllDataSourcesFlushed, true, cx.now);
        if succeeded {
            session.flushes_succeeded += 1;
        } else {
            session.flushes_failed += 1;
            cx.warn(format!("session {}: flush {id} timed out", session_id.0));
        }
        self.after_flush(session_id, flush.then, succeeded, cx);
    }

    fn after_flush(&mut self, session_id: SessionId, then: AfterFlush, succeeded: bool, cx: &mut Context<'_>) {
        match then {
            AfterFlush::Nothing => {}
            AfterFlush::Reply(call) if succeeded => {
                cx.reply_empty(call);
                if planted!("flush-answered-twice") {
                    cx.reply_empty(call);
                }
            }
            AfterFlush::Reply(_) if planted!("flush-unanswered") => {}
            AfterFlush::Reply(call) => cx.reject(call),
            AfterFlush::WriteFile => self.write_file(session_id, false, cx),
            AfterFlush::Clone(clone, group) => self.take_group(clone, group, succeeded, cx),
            AfterFlush::StopSession => {
                let Some(session) = self.sessions.get_mut(&session_id) else { return };
                session.final_flush_outcome = Some(match succeeded {
                    true => FinalFlushOutcome::FINAL_FLUSH_SUCCEEDED,
                    false => FinalFlushOutcome::FINAL_FLUSH_FAILED,
                });
                if session.consumer.is_some() {
                    self.disable(session_id, false, None, cx);
                } else {
                    self.free(session_id, None, cx);
                }
            }
        }
    }

    pub(crate) fn periodic_flush(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get(&session_id).filter(|session| session.state == State::Started) else {
            return;
        };
        if let FlushStrategy::Periodic { period_ms } = session.flush_strategy {
            if !planted!("periodic-flush-forgotten") {
                self.set_periodic_timer(session_id, Purpose::PeriodicFlush, TimerClock::Monotonic, period_ms, cx);
            }
            self.flush(session_id, 0, FlushReason::Periodic, AfterFlush::Nothing, cx);
        }
    }

    /// The duration of a session is over.
    pub(crate) fn duration_is_over(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let stops_by_trigger = |session: &Session| {
            triggers::mode_of(&session.config) == Some(TriggerMode::STOP_TRACING) && session.triggers.is_hit
        };
        if self.sessions.get(&session_id).is_some_and(stops_by_trigger) {
            return;
        }
        self.flush(session_id, 0, FlushReason::TraceStop, AfterFlush::StopSession, cx);
    }

    pub(crate) fn clear_incremental_state(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get(&session_id).filter(|session| session.state == State::Started) else {
            return;
        };
        let mut requests: Map<ProducerId, Vec<InstanceId>> = Map::new();
        for instance in session.instances.iter().filter(|instance| instance.clears_incremental_state) {
            requests.get_or_default(instance.producer).push(instance.id);
        }
        for (producer, instances) in &requests {
            if let Some(producer) = self.producers.get_mut(producer) {
                producer.send(command::clear_incremental_state(instances), cx);
            }
        }
        self.arm_incremental_state_clear(session_id, cx);
    }

    pub(crate) fn arm_incremental_state_clear(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let config =
            self.sessions.get(&session_id).and_then(|session| session.config.incremental_state_config.as_ref());
        if let Some(period_ms) = config.and_then(|config| config.clear_period_ms).filter(|&period| period != 0) {
            self.set_periodic_timer(session_id, Purpose::ClearIncrementalState, TimerClock::Monotonic, period_ms, cx);
        }
    }

    /// 20 s after the start: which data sources are still not running?
    pub(crate) fn record_slow_start(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let slow = self.names_of(session_id, |instance| instance.state != InstanceState::Started);
        if let Some(session) = self.sessions.get_mut(&session_id) {
            if !session.all_started_reported && session.state == State::Started {
                session.record(Event::SlowStartingDataSources(slow), false, cx.now);
            }
        }
    }

    /// Producer and data source names of some instances of a session.
    fn names_of(&self, session: SessionId, wanted: impl Fn(&Instance) -> bool) -> Vec<(Vec<u8>, Vec<u8>)> {
        let Some(session) = self.sessions.get(&session) else { return Vec::new() };
        let instances = session.instances.iter().filter(|instance| wanted(instance)).take(MAX_SLOW_DATA_SOURCES);
        let producer_name = |id| self.producers.get(&id).map_or_else(Vec::new, |producer| producer.name.clone());
        instances.map(|instance| (producer_name(instance.producer), instance.name.clone())).collect()
    }
}
