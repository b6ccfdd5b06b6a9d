//! The priority of the service: the strongest one that a session wants. Sessions wait for it.

use esatto_schema::TraceConfig;
use esatto_schema::priority_boost_config::BoostPolicy;
use esatto_service::{CallId, Input, PriorityBoost};

use crate::world::World;

/// Returns the priority that a config wants. Only configs in range become sessions.
pub(crate) fn boost_of(config: &TraceConfig) -> Option<PriorityBoost> {
    let boost = config.priority_boost.as_ref()?;
    let priority = boost.priority.unwrap_or(0) as u8;
    match boost.policy {
        Some(BoostPolicy::POLICY_SCHED_FIFO) => Some(PriorityBoost::Fifo(priority)),
        _ => Some(PriorityBoost::Other(priority)),
    }
}

impl World {
    /// Notes that the service asks for a change. The session that wants it waits.
    pub(crate) fn model_priority(&mut self, change: u64, boost: Option<PriorityBoost>) {
        assert!(self.model.changing.insert(change), "priority: a change has a number that is not new");
        let has_failed = core::mem::take(&mut self.model.priority_failed);
        let is_raised = has_failed || self.model.boost < boost;
        self.model.boost = boost;
        self.model.last_change = change;
        if !is_raised {
            // A session ended that had wanted a stronger priority.
            return;
        }
        let new = self.model.enabling.as_ref().map(|(call, _)| *call);
        let mut sessions = self.model.sessions.values_mut();
        let new = sessions.find(|session| session.boost.is_some() && new.is_some() && session.enable_call == new);
        if let Some(session) = new {
            session.awaits_change = Some(change);
        }
    }

    /// Notes the answer to a change. The sessions that wait for it begin, or are rejected.
    pub(crate) fn priority_set(&mut self, change: u64, result: Result<(), String>) {
        assert!(self.model.changing.remove(&change));
        self.model.priority_failed |= result.is_err() && change == self.model.last_change;
        let mut refused: Vec<CallId> = Vec::new();
        for session in self.model.sessions.values_mut().filter(|session| session.awaits_change == Some(change)) {
            session.awaits_change = None;
            session.may_end |= result.is_err();
            refused.extend(session.enable_call.filter(|_| result.is_err()));
        }
        self.feed(Input::PrioritySet { change, result });
        for call in refused {
            assert!(!self.calls.contains_key(&call), "every request is answered: {call:?} gets no priority");
        }
    }

    /// Checks that the strongest boost of all sessions is set or asked for after each step.
    pub(crate) fn check_priority(&self) {
        let strongest = self.model.sessions.values().filter_map(|session| session.boost).max();
        assert_eq!(self.model.boost, strongest, "priority: what is asked for, and what the sessions want");
    }
}
