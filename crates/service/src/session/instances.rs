//! The data source instances of a session.

use std::sync::Arc;

use esatto_map::LargeMap;

use crate::client_text::Name;
use crate::ids::{BufferId, InstanceId, ProducerId};

/// State of a data source instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstanceState {
    Configured,
    Starting,
    Started,
    Stopping,
    Stopped,
}

/// A data source of a producer that records for a session.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) id: InstanceId,
    pub(crate) producer: ProducerId,
    pub(crate) name: Name,
    /// The buffer that it writes to.
    pub(crate) buffer: BufferId,
    pub(crate) state: InstanceState,
    pub(crate) notifies_start: bool,
    pub(crate) notifies_stop: bool,
    pub(crate) clears_incremental_state: bool,
    pub(crate) no_flush: bool,
    /// The encoded DataSourceConfig with the service's fields. All instances of an entry share it.
    pub(crate) config: Arc<[u8]>,
}

/// Instances in the order of their set-up, and counters of their states.
#[derive(Debug, Default)]
pub(crate) struct Instances {
    by_id: LargeMap<InstanceId, Instance>,
    /// The trace says that all instances have started.
    pub(crate) is_start_reported: bool,
    started: usize,
    stopped: usize,
}

impl Instances {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.by_id.values()
    }

    pub(crate) fn ids(&self) -> Vec<InstanceId> {
        self.by_id.keys().copied().collect()
    }

    pub(crate) fn get(&self, id: InstanceId) -> Option<&Instance> {
        self.by_id.get(&id)
    }

    pub(crate) fn add(&mut self, instance: Instance) {
        self.count(instance.state, 1);
        if let Some(replaced) = self.by_id.insert(instance.id, instance) {
            self.count(replaced.state, -1);
        }
    }

    pub(crate) fn remove(&mut self, id: InstanceId) -> Option<Instance> {
        let removed = self.by_id.remove(&id)?;
        self.count(removed.state, -1);
        Some(removed)
    }

    /// Changes the state of an instance. Returns false if there is no such instance or if it has
    /// that state already.
    pub(crate) fn set_state(&mut self, id: InstanceId, state: InstanceState) -> bool {
        let Some(instance) = self.by_id.get_mut(&id).filter(|instance| instance.state != state) else { return false };
        let before = core::mem::replace(&mut instance.state, state);
        self.count(before, -1);
        self.count(state, 1);
        true
    }

    pub(crate) fn are_all_started(&self) -> bool {
        self.started == self.len()
    }

    pub(crate) fn are_all_stopped(&self) -> bool {
        self.stopped == self.len()
    }

    fn count(&mut self, state: InstanceState, by: isize) {
        let count = match state {
            InstanceState::Started => &mut self.started,
            InstanceState::Stopped => &mut self.stopped,
            _ => return,
        };
        *count = count.saturating_add_signed(by);
    }
}
