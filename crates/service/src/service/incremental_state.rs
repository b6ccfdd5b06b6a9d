//! Periodic requests to clear incremental state (`docs/spec/service.md §13`).

use esatto_map::LargeMap;

use crate::api::TimerClock;
use crate::context::Context;
use crate::ids::{InstanceId, ProducerId, SessionId};
use crate::producer::commands::{Command, encoded};
use crate::service::Service;
use crate::session::state::State;
use crate::timers::Purpose;

impl Service {
    pub(crate) fn clear_incremental_state(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get(session_id).filter(|session| session.state() == State::Started) else {
            return;
        };
        let mut requests: LargeMap<ProducerId, Vec<InstanceId>> = LargeMap::new();
        cx.charge(session.instances.len());
        for instance in session.instances.iter().filter(|instance| instance.clears_incremental_state) {
            requests.get_or_default(instance.producer).push(instance.id);
        }
        for (producer, instances) in &requests {
            if let Some(producer) = self.producers.get_mut(*producer) {
                producer.send(Command::Encoded(encoded::clear_incremental_state(instances)), cx);
            }
        }
        self.arm_incremental_state_clear(session_id, cx);
    }

    pub(crate) fn arm_incremental_state_clear(&mut self, session_id: SessionId, cx: &mut Context<'_>) {
        let config = self.sessions.get(session_id).and_then(|session| session.config.incremental_state_config.as_ref());
        if let Some(period_ms) = config.and_then(|config| config.clear_period_ms).filter(|&period| period != 0) {
            self.timers.set_periodic(session_id, Purpose::ClearIncrementalState, TimerClock::Monotonic, period_ms, cx);
        }
    }
}
