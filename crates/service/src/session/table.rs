//! Table of all sessions, and the indexes by which the service finds them.

use esatto_map::LargeSet;
use esatto_map::Map;

use super::Session;
use super::clone::{CloneId, PendingClone};
use super::freed::FreedSession;
use super::guarded_names::GuardedNames;
use super::trigger_history::TriggerHistory;
use super::triggers::Listeners;
use crate::api::FileId;
use crate::client_text::Name;
use crate::ids::{InstanceId, ProducerId, SessionId};

/// All sessions, also those that are being cloned and those that complete their files.
#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: Map<SessionId, Session>,
    /// Freed sessions whose files are not complete yet.
    pub(crate) freed: Map<SessionId, FreedSession>,
    /// Sessions by their trace files.
    pub(crate) files: Map<FileId, SessionId>,
    /// Clones whose data sources have not flushed yet.
    pub(crate) clones: Map<CloneId, PendingClone>,
    /// All instances by producer and name.
    pub(crate) instances_of: LargeSet<(ProducerId, Name, SessionId, InstanceId)>,
    /// Sessions by the names of their triggers.
    pub(crate) listeners: Listeners,
    pub(crate) trigger_history: TriggerHistory,
    /// Names of guarded sessions that began a short time ago.
    pub(crate) guarded_names: GuardedNames,
    pub(crate) last: LastIds,
    /// User id of the service.
    pub(super) service_uid: i32,
}

/// Numbers that the service gave last.
#[derive(Debug, Default)]
pub(crate) struct LastIds {
    pub(crate) session: u64,
    pub(crate) instance: u64,
    pub(crate) flush: u64,
    pub(crate) clone: u64,
    file: u64,
}

impl Sessions {
    pub(crate) fn new(service_uid: i32) -> Self {
        Self {
            by_id: Map::new(),
            freed: Map::new(),
            files: Map::new(),
            clones: Map::new(),
            instances_of: LargeSet::new(),
            listeners: Listeners::default(),
            trigger_history: TriggerHistory::default(),
            guarded_names: GuardedNames::default(),
            last: LastIds::default(),
            service_uid,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn get(&self, id: SessionId) -> Option<&Session> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.by_id.get_mut(&id)
    }

    /// Iterates over the sessions, oldest first.
    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &Session> + Clone {
        self.by_id.values()
    }

    /// Iterates over the sessions, oldest first.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.by_id.values_mut()
    }

    pub(crate) fn insert(&mut self, session: Session) {
        self.by_id.insert(session.id, session);
    }

    pub(crate) fn remove(&mut self, id: SessionId) -> Option<Session> {
        self.by_id.remove(&id)
    }

    /// Returns the session that streams into a file.
    pub(crate) fn of_file(&mut self, file: FileId) -> Option<&mut Session> {
        self.by_id.get_mut(self.files.get(&file)?)
    }

    /// Returns a clone that is being made, and its source.
    pub(crate) fn pending_clone(&mut self, id: CloneId) -> Option<(&mut PendingClone, &Session)> {
        let pending = self.clones.get_mut(&id)?;
        let source = self.by_id.get(&pending.source)?;
        Some((pending, source))
    }

    pub(crate) fn next_session(&mut self) -> SessionId {
        self.last.session += 1;
        SessionId(self.last.session)
    }

    pub(crate) fn next_flush(&mut self) -> u64 {
        self.last.flush += 1;
        self.last.flush
    }

    pub(crate) fn next_file(&mut self) -> FileId {
        self.last.file += 1;
        FileId(self.last.file)
    }
}
