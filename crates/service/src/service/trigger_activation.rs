//! Triggers that producers send: they start, stop or clone sessions (`docs/spec/service.md §11`).
//!
//! A clone trigger does nothing by itself: the service tells the consumer, which makes the clone.

use esatto_schema::trace_config::trigger_config::TriggerMode;

use crate::api::TimerClock;
use crate::client_text::{MAX_NAME_BYTES, Name, quoted};
use crate::context::Context;
use crate::ids::{ProducerId, SessionId};
use crate::service::Service;
use crate::session::Session;
use crate::session::flush::{AfterFlush, FlushReason};
use crate::session::state::State;
use crate::session::trigger_history::MAX_NAMES;
use crate::session::triggers::{Received, mode_of};
use crate::timers::Purpose;

/// Triggers that a session keeps between two reads. Later ones act, but the trace does not tell
/// them; the statistics count them.
const MAX_RECEIVED: usize = 1024;

/// Clone triggers of a session whose delay is not over. Later ones do not act; the log says so, and
/// the statistics count them.
const MAX_DELAYED: usize = 256;

/// Triggers of one call that the service considers. The log says how many more there were.
const MAX_TRIGGERS_PER_CALL: usize = 4096;

/// Triggers of one call that may be accepted; each can act on every session. The log says how many
/// more there were.
const MAX_HITS_PER_CALL: usize = 1024;

impl Service {
    /// Prepares a session for its triggers after its data sources are set up.
    pub(crate) fn arm_triggers(&mut self, id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let timeout_ms =
            session.config.trigger_config.as_ref().and_then(|config| config.trigger_timeout_ms).unwrap_or(0);
        match mode_of(&session.config) {
            Some(TriggerMode::START_TRACING) => {
                self.timers.set(id, Purpose::TriggerTimeout, TimerClock::Monotonic, timeout_ms, cx);
            }
            Some(_) => session.set_duration(timeout_ms),
            None => {}
        }
    }

    /// Handles the triggers of a producer's call.
    pub(crate) fn activate_triggers<'a>(
        &mut self,
        producer: ProducerId,
        names: impl Iterator<Item = &'a [u8]>,
        cx: &mut Context<'_>,
    ) {
        let Some(sender) = self.producers.get(producer) else { return };
        let (producer_name, producer_uid) = (Name::clone(&sender.name), sender.peer.uid);
        let mut names = names;
        let (mut hits, mut ignored, mut is_uncounted) = (0, 0, false);
        let mut delayed_lost = 0;
        for name in names.by_ref().take(MAX_TRIGGERS_PER_CALL) {
            cx.charge(1);
            cx.charge_bytes(name.len());
            // No config has a longer name.
            let listeners = if name.len() <= MAX_NAME_BYTES { self.sessions.listeners.of(name) } else { None };
            let Some((name, sessions)) = listeners else { continue };
            if hits >= MAX_HITS_PER_CALL {
                ignored += 1;
                continue;
            }
            hits += 1;
            let before = self.sessions.trigger_history.count(&name, cx.now.boottime_ns);
            let mut is_accepted = false;
            for (id, index) in sessions {
                cx.charge(1);
                let Some(delay_ms) = self.accept_trigger(id, index, &producer_name, before, cx) else { continue };
                is_accepted = true;
                let received = Received {
                    boottime_ns: cx.now.boottime_ns,
                    name: Name::clone(&name),
                    producer_name: Name::clone(&producer_name),
                    producer_uid,
                    stop_delay_ms: delay_ms.into(),
                };
                delayed_lost += usize::from(!self.hit(id, received, delay_ms, cx));
            }
            if is_accepted {
                is_uncounted |= !self.sessions.trigger_history.add(&name, cx.now.boottime_ns);
            }
        }
        ignored += names.count();
        if ignored > 0 {
            let name = String::from_utf8_lossy(&producer_name);
            cx.warn(format!("producer {name:?} sends too many triggers in one call: {ignored} are ignored"));
        }
        if delayed_lost > 0 {
            cx.warn(format!("{MAX_DELAYED} clone triggers of a session wait already: {delayed_lost} are ignored"));
        }
        if is_uncounted {
            cx.warn(format!("{MAX_NAMES} triggers are counted already: max_per_24_h has no effect on further ones"));
        }
    }

    /// Returns the delay of a session's trigger, if the session accepts this activation.
    fn accept_trigger(
        &mut self,
        id: SessionId,
        index: usize,
        producer_name: &Name,
        before: usize,
        cx: &mut Context<'_>,
    ) -> Option<u32> {
        let session = self.sessions.get_mut(id).filter(|session| session.state() != State::Cloned)?;
        let trigger = session.config.trigger_config.as_ref()?.triggers.get(index)?;
        let pattern = session.triggers.patterns.get(index)?;
        if pattern.as_ref().is_some_and(|pattern| !pattern.matches(id, producer_name, cx)) {
            return None;
        }
        let skip_probability = trigger.skip_probability.unwrap_or(0.0);
        if skip_probability > 0.0 && self.random.fraction() < skip_probability {
            return None;
        }
        let max = trigger.max_per_24_h.unwrap_or(0);
        if max == 0 || before < max as usize {
            return Some(trigger.stop_delay_ms.unwrap_or(0));
        }
        let is_told = session.triggers.told_limited.contains(&index);
        let name = if is_told { String::new() } else { quoted(trigger.name.as_deref().unwrap_or_default()) };
        session.triggers.limited += 1;
        if session.triggers.told_limited.insert(index) {
            cx.info(format!(
                "{}: the trigger {name} is ignored from now on: sessions have accepted it {before} times in the last 24 \
                 hours, and max_per_24_h is {max}",
                session.label()
            ));
        }
        None
    }

    /// Lets an accepted trigger act on a session. Returns false if it is ignored, because too many
    /// wait.
    fn hit(&mut self, id: SessionId, received: Received, delay_ms: u32, cx: &mut Context<'_>) -> bool {
        let Some(session) = self.sessions.get_mut(id) else { return true };
        session.snapshot(cx.now);
        let is_first = !core::mem::replace(&mut session.triggers.is_hit, true);
        if session.triggers.received.len() < MAX_RECEIVED {
            session.triggers.received.push(received.clone());
        } else {
            session.unread.lost.triggers += 1;
        }
        match mode_of(&session.config) {
            Some(TriggerMode::START_TRACING) if session.state() == State::Configured => {
                session.set_duration(delay_ms);
                self.start(id, cx);
            }
            Some(TriggerMode::STOP_TRACING)
                if is_first && matches!(session.state(), State::Configured | State::Started) =>
            {
                self.timers.set(id, Purpose::TriggerStop, TimerClock::Monotonic, delay_ms, cx);
            }
            Some(TriggerMode::CLONE_SNAPSHOT) if delay_ms == 0 => self.notify_clone_trigger(id, received),
            Some(TriggerMode::CLONE_SNAPSHOT) if session.triggers.delayed.len() < MAX_DELAYED => {
                session.triggers.last_delayed += 1;
                let number = session.triggers.last_delayed;
                session.triggers.delayed.insert(number, received);
                self.timers.set(id, Purpose::CloneTrigger(number), TimerClock::Monotonic, delay_ms, cx);
            }
            Some(TriggerMode::CLONE_SNAPSHOT) => {
                session.unread.lost.triggers += 1;
                return false;
            }
            _ => {}
        }
        true
    }

    /// Reports a clone trigger after its delay.
    pub(crate) fn clone_trigger(&mut self, id: SessionId, number: u64) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if let Some(received) = session.triggers.delayed.remove(&number) {
            self.notify_clone_trigger(id, received);
        }
    }

    /// Tells the consumer of a session that a trigger asks for a clone.
    fn notify_clone_trigger(&mut self, id: SessionId, received: Received) {
        if let Some(client) = self.sessions.get(id).and_then(Session::consumer) {
            self.consumers.notify_clone_trigger(client, id, received);
        }
    }

    /// Ends a session for which no start trigger came in time.
    pub(crate) fn trigger_timeout(&mut self, id: SessionId, cx: &mut Context<'_>) {
        if self.sessions.get(id).is_some_and(|session| session.state() == State::Configured) {
            self.disable(id, true, None, cx);
        }
    }

    /// Ends a session after the delay of a stop trigger.
    pub(crate) fn trigger_stop(&mut self, id: SessionId, cx: &mut Context<'_>) {
        self.flush(id, 0, FlushReason::TraceStop, AfterFlush::StopSession, cx);
    }
}
