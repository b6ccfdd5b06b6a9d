//! Priority of the service's process while sessions want it raised (`docs/spec/service.md §26`).

use esatto_map::Map;
use esatto_schema::priority_boost_config::BoostPolicy;
use esatto_schema::{PriorityBoostConfig, TraceConfig};

use crate::api::{Output, PriorityBoost};
use crate::context::Context;
use crate::ids::SessionId;

const MAX_OTHER: u32 = 20;
const FIFO: core::ops::RangeInclusive<u32> = 1..=99;

/// Number of a change of priority, never reused.
pub(crate) type ChangeId = u64;

/// Changes of priority that the owner was asked for.
#[derive(Debug, Default)]
pub(crate) struct Priorities {
    /// The boost of the latest change.
    asked: Option<PriorityBoost>,
    /// The latest change failed. The service tries again when a session begins or ends.
    has_failed: bool,
    last: ChangeId,
    /// Changes without an answer, and the sessions that wait for them.
    waiting: Map<ChangeId, Vec<SessionId>>,
}

/// Returns the boost of a config.
///
/// # Errors
///
/// A text for the consumer, if the priority is out of range.
pub(crate) fn boost_of(config: &TraceConfig) -> Result<Option<PriorityBoost>, String> {
    let Some(PriorityBoostConfig { policy, priority, .. }) = config.priority_boost else { return Ok(None) };
    let (policy, priority) = (policy.unwrap_or_default(), priority.unwrap_or(0));
    let byte = u8::try_from(priority).unwrap_or(u8::MAX);
    match policy {
        BoostPolicy::POLICY_SCHED_OTHER if priority <= MAX_OTHER => Ok(Some(PriorityBoost::Other(byte))),
        BoostPolicy::POLICY_SCHED_OTHER => {
            Err(format!("priority_boost.priority is {priority}, with POLICY_SCHED_OTHER it is at most {MAX_OTHER}"))
        }
        BoostPolicy::POLICY_SCHED_FIFO if FIFO.contains(&priority) => Ok(Some(PriorityBoost::Fifo(byte))),
        BoostPolicy::POLICY_SCHED_FIFO => {
            Err(format!("priority_boost.priority is {priority}, with POLICY_SCHED_FIFO it is between 1 and 99"))
        }
        BoostPolicy(policy) => Err(format!("priority_boost.policy is {policy}, which is not supported")),
    }
}

impl Priorities {
    /// Asks for this boost if that was not done yet, or if the last change failed. Returns the
    /// latest change.
    pub(crate) fn ask(&mut self, boost: Option<PriorityBoost>, cx: &mut Context<'_>) -> ChangeId {
        if boost != self.asked || self.has_failed {
            self.asked = boost;
            self.has_failed = false;
            self.last += 1;
            self.waiting.insert(self.last, Vec::new());
            cx.push(Output::SetPriority { change: self.last, boost });
        }
        self.last
    }

    /// Lets a session wait for a change. Returns false if the owner has already made it.
    pub(crate) fn wait(&mut self, change: ChangeId, session: SessionId) -> bool {
        let waiting = self.waiting.get_mut(&change);
        waiting.map(|waiting| waiting.push(session)).is_some()
    }

    /// Takes the owner's answer. Returns the sessions that waited for it.
    pub(crate) fn answered(
        &mut self,
        change: ChangeId,
        result: &Result<(), String>,
        cx: &mut Context<'_>,
    ) -> Vec<SessionId> {
        let Some(waiting) = self.waiting.remove(&change) else { return Vec::new() };
        if let Err(error) = result {
            cx.warn(format!("the priority cannot be changed: {error}"));
            self.has_failed |= change == self.last;
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boost(policy: i32, priority: u32) -> Result<Option<PriorityBoost>, String> {
        let priority_boost =
            PriorityBoostConfig { policy: Some(BoostPolicy(policy)), priority: Some(priority), ..Default::default() };
        boost_of(&TraceConfig { priority_boost: Some(priority_boost), ..Default::default() })
    }

    #[test]
    fn boosts_have_ranges() {
        assert_eq!(boost_of(&TraceConfig::default()), Ok(None));
        assert_eq!(boost(1, 0), Ok(Some(PriorityBoost::Other(0))));
        assert_eq!(boost(1, 20), Ok(Some(PriorityBoost::Other(20))));
        assert_eq!(boost(2, 1), Ok(Some(PriorityBoost::Fifo(1))));
        assert_eq!(boost(2, 99), Ok(Some(PriorityBoost::Fifo(99))));
        for (policy, priority) in [(1, 21), (1, 256), (2, 0), (2, 100), (2, 257), (0, 1), (3, 1)] {
            assert!(boost(policy, priority).is_err(), "{policy} {priority}");
        }
    }

    #[test]
    fn real_time_is_above_nice() {
        assert!(PriorityBoost::Fifo(1) > PriorityBoost::Other(20));
        assert!(PriorityBoost::Other(2) > PriorityBoost::Other(1));
    }
}
