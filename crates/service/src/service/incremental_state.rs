//! Periodic requests to clear incremental state (`docs/spec/service.md §13`).

use esatto_map::LargeMap;

use crate::api::TimerClock;
use crate::context::Context;
use crate::ids::{BufferId, InstanceId, ProducerId, SessionId};
use crate::producer::commands::{Command, encoded};
use crate::service::Service;
use crate::session::state::State;
use crate::timers::Purpose;

/// A ring has so many parts. Writers are asked for their names once for each.
const NAMED_PARTS: u64 = 8;

impl Service {
    /// Lets each ring keep the names that its events need: while a ring fills, the service often
    /// sends ClearIncrementalState. This holds for sessions without a file and without a
    /// `clear_period_ms` of their own (`docs/spec/service.md` §13).
    pub fn keep_names(&mut self) {
        self.keeps_names = true;
    }

    /// Asks the writers of each ring for their names, if a part was written since the last time.
    pub(super) fn renew_names(&mut self, cx: &mut Context<'_>) {
        if !self.keeps_names {
            return;
        }
        let Self { sessions, buffers, .. } = self;
        let mut due = Vec::new();
        for session in sessions.values() {
            let period = session.config.incremental_state_config.as_ref().and_then(|config| config.clear_period_ms);
            if session.state() != State::Started || session.file.open().is_some() || period.is_some() {
                continue;
            }
            let mut needs_names = false;
            for &id in &session.buffers {
                needs_names |= buffers.get_mut(id).is_some_and(|buffer| buffer.needs_names(NAMED_PARTS));
            }
            if needs_names {
                due.push(session.id);
            }
        }
        for session in due {
            self.clear_incremental_state(session, cx);
        }
    }

    pub(crate) fn clear_incremental_state(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        self.clear_incremental_state_of(session_id, |_| true, cx);
        self.arm_incremental_state_clear(session_id, cx);
    }

    /// Sends the request to the data sources of some buffers.
    pub(super) fn clear_incremental_state_of(
        &mut self,
        session_id: SessionId,
        is_wanted: impl Fn(BufferId) -> bool,
        cx: &mut Context<'_>,
    ) {
        let Some(session) = self.sessions.get(session_id).filter(|session| session.state() == State::Started) else {
            return;
        };
        let mut requests: LargeMap<ProducerId, Vec<InstanceId>> = LargeMap::new();
        cx.charge(session.instances.len());
        for instance in session.instances.iter() {
            if instance.clears_incremental_state && is_wanted(instance.buffer) {
                requests.get_or_default(instance.producer).push(instance.id);
            }
        }
        for (producer, instances) in &requests {
            if let Some(producer) = self.producers.get_mut(*producer) {
                producer.send(Command::Encoded(encoded::clear_incremental_state(instances)), cx);
            }
        }
    }

    pub(crate) fn arm_incremental_state_clear(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let config = self.sessions.get(session_id).and_then(|session| session.config.incremental_state_config.as_ref());
        if let Some(period_ms) = config.and_then(|config| config.clear_period_ms).filter(|&period| period != 0) {
            self.timers.set_periodic(session_id, Purpose::ClearIncrementalState, TimerClock::Monotonic, period_ms, cx);
        }
    }
}
