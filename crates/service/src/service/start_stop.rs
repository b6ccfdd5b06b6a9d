//! Start, stop and end of sessions (`docs/spec/service.md §9, §10`).

use esatto_schema::trace_config::trigger_config::TriggerMode;

use crate::api::{Output, TimerClock};
use crate::context::Context;
use crate::ids::{InstanceId, SessionId};
use crate::producer::commands::Command;
use crate::service::Service;
use crate::service::slow_data_sources::SLOW_START_MS;
use crate::session::Session;
use crate::session::flush::{AfterFlush, FlushReason};
use crate::session::flush_strategy::FlushStrategy;
use crate::session::instances::{Instance, InstanceState};
use crate::session::phase::Phase;
use crate::session::state::State;
use crate::session::triggers;
use crate::session::unread_events::Event;
use crate::timers::Purpose;

impl Service {
    /// Starts a configured session. Sessions in other states are left alone.
    pub(crate) fn start(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if let Some(opening) = session.opening_mut() {
            opening.starts = true;
            return;
        }
        if session.state() != State::Configured {
            return cx.warn(format!("session {} is not configured, it cannot start", session_id.0));
        }
        self.sessions.enter(session_id, Phase::Started, cx);
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        session.started_realtime_ns = Some(cx.now.realtime_ns);
        session.started_boottime_ns = Some(cx.now.boottime_ns);
        self.activity.sessions_started += 1;
        if session.takes_snapshots() {
            session.unread.initial_snapshot = Some(*cx.now);
        }
        session.record(Event::TracingStarted, false, cx.now);
        let duration_ms = session.config.duration_ms.unwrap_or(0);
        let duration_clock = match session.config.prefer_suspend_clock_for_duration {
            Some(true) => TimerClock::Boottime,
            _ => TimerClock::Monotonic,
        };
        let file_period_ms = session.file.is_used().then(|| session.file_write_period_ms());
        let flush_strategy = session.flushes.strategy;
        let instances = session.instances.ids();
        let started = session.start_in_words();

        self.periodic_snapshot(session_id, cx);
        if duration_ms > 0 {
            self.timers.set(session_id, Purpose::Duration, duration_clock, duration_ms, cx);
        }
        if let Some(period_ms) = file_period_ms {
            self.timers.set_periodic(session_id, Purpose::WriteFile, TimerClock::Monotonic, period_ms, cx);
        }
        if let FlushStrategy::Periodic { period_ms } = flush_strategy {
            self.timers.set_periodic(session_id, Purpose::PeriodicFlush, TimerClock::Monotonic, period_ms, cx);
        }
        self.arm_incremental_state_clear(session_id, cx);
        cx.info(started);
        for instance in instances {
            self.send_start(session_id, instance, cx);
        }
        self.report_all_started(session_id, cx);
        self.timers.set(session_id, Purpose::SlowStart, TimerClock::Monotonic, SLOW_START_MS, cx);
    }

    /// Starts an instance that was set up while the session runs.
    pub(crate) fn start_instance(&mut self, session_id: SessionId, id: InstanceId, cx: &mut Context<'_>) {
        self.send_start(session_id, id, cx);
        self.report_all_started(session_id, cx);
    }

    fn send_start(&mut self, session_id: SessionId, id: InstanceId, cx: &mut Context<'_>) {
        cx.charge(1);
        let Some(session) = self.sessions.get(session_id) else { return };
        let Some(instance) = session.instances.get(id) else { return };
        if instance.state != InstanceState::Configured {
            return;
        }
        let state = if instance.notifies_start { InstanceState::Starting } else { InstanceState::Started };
        if let Some(producer) = self.producers.get_mut(instance.producer) {
            producer.send(Command::Start(id, instance.config.clone()), cx);
        }
        self.set_instance_state(session_id, id, state);
    }

    /// Tells the trace and the consumer once that every instance has started, if the session runs.
    pub(crate) fn report_all_started(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if session.instances.is_start_reported
            || session.state() != State::Started
            || !session.instances.are_all_started()
        {
            return;
        }
        session.instances.is_start_reported = true;
        session.record(Event::AllDataSourcesStarted, true, cx.now);
        if let Some(client) = session.consumer() {
            self.consumers.notify_all_started(client);
        }
    }

    /// Ends a session after its duration.
    pub(crate) fn duration_is_over(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let stops_by_trigger = |session: &Session| {
            triggers::mode_of(&session.config) == Some(TriggerMode::STOP_TRACING) && session.triggers.is_hit
        };
        if self.sessions.get(session_id).is_some_and(stops_by_trigger) {
            return;
        }
        self.flush(session_id, 0, FlushReason::TraceStop, AfterFlush::StopSession, cx);
    }

    /// Stops a session.
    pub(crate) fn disable(
        &mut self,
        session_id: SessionId,
        immediately: bool,
        error: Option<String>,
        cx: &mut Context<'_>,
    ) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if error.is_some() {
            session.end_error = error;
        }
        if let Some(opening) = session.opening_mut() {
            opening.stops = true;
            return;
        }
        let immediately = match session.state() {
            State::Disabled | State::Cloned => return,
            State::WaitingForStop if immediately => return self.finish_stopping(session_id, cx),
            State::WaitingForStop => return,
            State::Configured => true,
            State::Started => immediately,
        };
        for instance in session.instances.ids() {
            self.stop_instance(session_id, instance, immediately, cx);
        }
        let lasts = |purpose| matches!(purpose, Purpose::FlushTimeout(_) | Purpose::Scrape | Purpose::CloneTrigger(_));
        self.timers.cancel_matching(session_id, |purpose| !lasts(purpose), cx);
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if session.instances.are_all_stopped() {
            return self.finish_stopping(session_id, cx);
        }
        let timeout_ms = session.stop_timeout_ms().min(self.stops_within_ms.unwrap_or(u32::MAX));
        self.sessions.enter(session_id, Phase::WaitingForStop, cx);
        self.timers.set(session_id, Purpose::StopTimeout, TimerClock::Monotonic, timeout_ms, cx);
    }

    pub(crate) fn stop_instance(
        &mut self,
        session_id: SessionId,
        id: InstanceId,
        immediately: bool,
        cx: &mut Context<'_>,
    ) {
        cx.charge(1);
        let Some(session) = self.sessions.get(session_id) else { return };
        let Some(instance) = session.instances.get(id) else { return };
        if matches!(instance.state, InstanceState::Stopping | InstanceState::Stopped) {
            return;
        }
        let is_told = self.producers.get_mut(instance.producer).is_some_and(|producer| producer.send_stop(id, cx));
        let waits = instance.notifies_stop && !immediately && is_told;
        let state = if waits { InstanceState::Stopping } else { InstanceState::Stopped };
        self.set_instance_state(session_id, id, state);
    }

    /// Ends the stop if all instances have stopped or vanished.
    pub(crate) fn finish_if_all_stopped(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let done = |session: &&Session| session.state() == State::WaitingForStop && session.instances.are_all_stopped();
        if self.sessions.get(session_id).filter(done).is_some() {
            self.finish_stopping(session_id, cx);
        }
    }

    /// Names the data sources that did not acknowledge their stop in time, and ends the wait.
    pub(crate) fn stop_timed_out(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let is_slow = |instance: &Instance| instance.state == InstanceState::Stopping;
        let slow = self.names_of(session_id, is_slow, cx);
        let named = self.in_words(session_id, is_slow, cx);
        let max_ms = self.stops_within_ms.unwrap_or(u32::MAX);
        if let Some(session) = self.sessions.get_mut(session_id) {
            let (label, timeout_ms) = (session.label(), session.stop_timeout_ms().min(max_ms));
            self.activity.stops_failed += 1;
            session.record(Event::SlowStoppingDataSources(slow), false, cx.now);
            cx.warn(format!("{label}: its stop was not acknowledged within {timeout_ms} ms by {named}"));
        }
        self.finish_stopping(session_id, cx);
    }

    /// Ends the wait for data sources. The session becomes DISABLED after a scrape.
    pub(crate) fn finish_stopping(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if session.state() == State::Disabled || session.scrapes.are_last() {
            return;
        }
        for instance in session.instances.ids() {
            cx.charge(1);
            self.set_instance_state(session_id, instance, InstanceState::Stopped);
        }
        self.timers.cancel(session_id, Purpose::StopTimeout, cx);
        self.scrape_session(session_id, Vec::new(), true, cx);
        let is_early = |session: &Session| matches!(session.state(), State::Configured | State::Started);
        if self.sessions.get(session_id).is_some_and(is_early) {
            self.sessions.enter(session_id, Phase::WaitingForStop, cx);
        }
    }

    /// Disables a session that is scraped.
    pub(crate) fn complete_stop(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        self.sessions.enter(session_id, Phase::Disabled, cx);
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        session.record(Event::TracingDisabled, true, cx.now);
        // The last statistics of a trace are those of the end, also if a consumer has read it
        // before.
        session.unread.stats |= session.started_realtime_ns.is_some();
        if session.file.open().is_some() {
            // The service tells the log and the consumer when the file is complete.
            self.write_file(session_id, true, cx);
        } else {
            self.log_end(session_id, cx);
            self.notify_disabled(session_id, cx);
        }
    }

    /// Tells the log what became of a session, unless it is a clone.
    pub(crate) fn log_end(&self, session_id: SessionId, cx: &mut Context<'_>) {
        if let Some(session) = self.sessions.get(session_id).filter(|session| !session.is_clone) {
            cx.info(session.end_in_words(&self.buffers));
        }
    }

    /// Frees a session: stops it, completes its file and removes it.
    pub(crate) fn free(&mut self, session_id: SessionId, error: Option<String>, cx: &mut Context<'_>) {
        self.disable(session_id, true, error, cx);
        self.end_last_scrape(session_id, cx);
        self.stop_opening(session_id, cx);
        self.abandon_clones_of(session_id, cx);
        let is_complete = self.complete_file(session_id, cx);
        self.timers.cancel_matching(session_id, |_| true, cx);
        if self.sessions.get(session_id).is_some_and(|session| session.state() == State::Cloned) {
            self.sessions.enter(session_id, Phase::Disabled, cx);
        }
        let Some(mut session) = self.sessions.remove(session_id) else { return };
        self.forget_departed_producers(cx);
        self.forget_members_of(&session, cx);
        for (id, flush) in core::mem::take(&mut session.flushes.pending) {
            self.producers.forget_flush(&flush.waiting_for, id);
            if let AfterFlush::Reply(call) = flush.then {
                cx.reject(call);
            }
        }
        let mut notice = None;
        if let Some(consumer) = session.consumer().and_then(|client| self.consumers.get_mut(client)) {
            consumer.session = None;
            if let Some(call) = consumer.read_call.take() {
                cx.reply_empty(call);
            }
            if !is_complete {
                notice = consumer.enable_call.take();
            }
        }
        if is_complete {
            self.drop_content(session, cx);
        } else {
            self.begin_drain(session, notice, cx);
        }
        self.update_priority(None, cx);
    }

    /// Removes the buffers of a session that are no longer used.
    pub(crate) fn drop_content(&mut self, session: Session, cx: &mut Context<'_>) {
        if !session.is_clone {
            self.activity.recorded = self.activity.recorded.plus(session.recorded(&self.buffers));
        }
        for buffer in &session.buffers {
            self.buffers.remove(*buffer);
        }
        if let Some(file) = session.file.open() {
            self.sessions.files.remove(&file.id);
            cx.push(Output::CloseFile(file.id));
        }
        cx.debug(format!("{} is freed", session.label()));
    }

    /// Takes from the producers of an ended session the right to write to its buffers.
    fn forget_members_of(&mut self, session: &Session, cx: &mut Context<'_>) {
        for &id in session.members.by_producer.keys() {
            self.producers.forbid_buffers(id, &session.buffers, cx);
        }
        for instance in session.instances.iter() {
            cx.charge(1);
            self.sessions.instances_of.remove(&(instance.producer, instance.name.clone(), session.id, instance.id));
        }
        self.sessions.listeners.remove(session);
    }

    /// Changes the state of an instance, and tells the consumer if it observes instances.
    pub(crate) fn set_instance_state(&mut self, session_id: SessionId, id: InstanceId, state: InstanceState) {
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        if session.instances.set_state(id, state) {
            if let Some(client) = session.consumer() {
                self.notify_instance_state(client, session_id, id);
            }
        }
    }
}
