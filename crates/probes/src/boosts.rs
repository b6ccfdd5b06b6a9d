//! [`Boosts`]: priority of a worker while instances raise it.

use std::collections::BTreeMap;

use esatto_daemon_program::{PriorityBoost, ThreadPriority};
use esatto_schema::priority_boost_config::BoostPolicy;

use crate::data_source::{Instance, InstanceId};

/// Largest value of `priority` with `POLICY_SCHED_OTHER`, and with `POLICY_SCHED_FIFO`
/// (`docs/spec/service.md` §26).
const MAX_OTHER: u8 = 20;
const MAX_FIFO: u8 = 99;

/// The boosts of all instances (`priority_boost` of their configs). The strongest one counts.
#[derive(Debug, Default)]
pub(crate) struct Boosts {
    wanted: BTreeMap<InstanceId, PriorityBoost>,
    applied: Option<PriorityBoost>,
    thread: ThreadPriority,
}

impl Boosts {
    /// Applies the boost of an instance, if its config has one. Call it on the thread to boost.
    pub(crate) fn begin(&mut self, instance: &Instance) {
        match boost_of(instance) {
            Ok(None) => return,
            Ok(Some(boost)) => drop(self.wanted.insert(instance.id, boost)),
            Err(why) => log::warn!("cannot raise the priority of a data source: {why}"),
        }
        self.apply();
    }

    /// Takes it back.
    pub(crate) fn end(&mut self, id: InstanceId) {
        if self.wanted.remove(&id).is_some() {
            self.apply();
        }
    }

    fn apply(&mut self) {
        let strongest = self.wanted.values().copied().max();
        if strongest == self.applied {
            return;
        }
        match self.thread.set(strongest) {
            Ok(()) => self.applied = strongest,
            Err(why) => log::warn!("cannot change the priority of a data source: {why}; it needs CAP_SYS_NICE"),
        }
    }
}

fn boost_of(instance: &Instance) -> Result<Option<PriorityBoost>, String> {
    let Some(boost) = instance.config().priority_boost() else { return Ok(None) };
    let (policy, priority) = (boost.policy().unwrap_or_default(), boost.priority().unwrap_or(0));
    let byte = u8::try_from(priority).unwrap_or(u8::MAX);
    match policy {
        BoostPolicy::POLICY_SCHED_OTHER if byte <= MAX_OTHER => Ok(Some(PriorityBoost::Other(byte))),
        BoostPolicy::POLICY_SCHED_FIFO if (1..=MAX_FIFO).contains(&byte) => Ok(Some(PriorityBoost::Fifo(byte))),
        BoostPolicy(policy) => Err(format!("priority_boost has policy {policy} and priority {priority}")),
    }
}

#[cfg(test)]
mod tests {
    use esatto_protozero::Owned as _;
    use esatto_schema::{DataSourceConfig, PriorityBoostConfig};

    use super::*;
    use crate::data_source::TracingSession;

    fn instance(policy: BoostPolicy, priority: u32) -> Instance {
        let boost = PriorityBoostConfig { policy: Some(policy), priority: Some(priority), ..Default::default() };
        let config = DataSourceConfig { priority_boost: Some(boost), ..Default::default() };
        Instance { id: InstanceId(1), session: TracingSession(1), config: config.encode() }
    }

    #[test]
    fn only_priorities_of_the_system_count() {
        let (other, fifo) = (BoostPolicy::POLICY_SCHED_OTHER, BoostPolicy::POLICY_SCHED_FIFO);
        assert_eq!(boost_of(&instance(other, 20)), Ok(Some(PriorityBoost::Other(20))));
        assert_eq!(boost_of(&instance(fifo, 99)), Ok(Some(PriorityBoost::Fifo(99))));
        for bad in [
            instance(other, 21),
            instance(fifo, 0),
            instance(fifo, 100),
            instance(BoostPolicy(9), 1),
            instance(other, 300),
        ] {
            assert!(boost_of(&bad).is_err());
        }
        let none = Instance { config: Vec::new(), ..instance(other, 1) };
        assert_eq!(boost_of(&none), Ok(None));
    }
}
