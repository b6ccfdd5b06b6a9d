//! Periodic requests to clear incremental state (`docs/spec/service.md §13`).

use esatto_map::LargeMap;

use crate::api::TimerClock;
use crate::buffer::table::RingNames;
use crate::context::Context;
use crate::ids::{BufferId, InstanceId, ProducerId, SessionId};
use crate::observer::Step;
use crate::producer::commands::{Command, encoded};
use crate::service::Service;
use crate::session::Session;
use crate::session::state::State;
use crate::timers::Purpose;

/// The time between two requests for names grows with each further so many instances.
const INSTANCES_PER_INTERVAL: usize = 100;

impl Service {
    /// Lets each ring keep the names that its events need: each time an eighth of a ring has been
    /// written, the service sends ClearIncrementalState to its writers, but not twice within this
    /// time, which is longer for sessions of very many data sources. This does not hold for
    /// sessions that write a file, or whose `clear_period_ms` is 0 (`docs/spec/service.md` §13).
    pub fn keep_names(&mut self, interval_ms: u32) {
        let interval_ns = u64::from(interval_ms) * 1_000_000;
        self.buffers.names = Some(RingNames { interval_ns, due: Vec::new() });
    }

    /// Asks the writers of each ring for their names, if a part was written since the last time.
    pub(super) fn renew_names(&mut self, cx: &mut Context<'_>) {
        let Some(names) = self.buffers.names.as_mut().filter(|names| !names.due.is_empty()) else { return };
        let mut due = core::mem::take(&mut names.due);
        let interval_ns = names.interval_ns;
        let now_ns = cx.now.monotonic_ns;
        cx.charge(due.len());
        due.retain(|&id| self.buffers.get_mut(id).is_some_and(|buffer| buffer.ask_for_names(now_ns)));
        if due.is_empty() {
            return;
        }
        cx.charge(self.sessions.len());
        let is_due = |session: &&Session| {
            let config = session.config.incremental_state_config.as_ref();
            let is_wanted = config.and_then(|config| config.clear_period_ms) != Some(0);
            is_wanted && session.file.open().is_none() && session.buffers.iter().any(|id| due.contains(id))
        };
        let sessions = self.sessions.values().filter(is_due).map(|session| (session.id, session.instances.len()));
        for (session, instances) in sessions.collect::<Vec<(SessionId, usize)>>() {
            self.observer.report(Step::AsksForNames);
            self.clear_incremental_state_of(session, |buffer| due.contains(&buffer), cx);
            // One writer must not make very many others wake up all the time.
            let pause_ns = interval_ns * (instances / INSTANCES_PER_INTERVAL + 1) as u64;
            for id in self.sessions.get(session).into_iter().flat_map(|session| &session.buffers) {
                if let Some(buffer) = self.buffers.get_mut(*id).filter(|_| due.contains(id)) {
                    buffer.ask_no_names_before(now_ns + pause_ns);
                }
            }
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
