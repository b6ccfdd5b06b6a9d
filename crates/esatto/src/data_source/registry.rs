//! The list of the data sources of this process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::track_event::TrackEvents;
use super::{AnySource, HeldInstances};
use crate::error::Error;

/// The most custom data sources of a process (`docs/spec/client-library.md` §2).
pub(crate) const MAX_SOURCES: usize = 32;

static SOURCES: Mutex<Vec<&'static dyn AnySource>> = Mutex::new(Vec::new());

/// Adds a data source and returns its index.
pub(super) fn add(source: &'static dyn AnySource) -> Result<usize, Error> {
    let mut sources = lock();
    if sources.len() >= MAX_SOURCES {
        return Err(Error::data_source(
            source.name(),
            "cannot be registered: the process already has 32, which is the limit",
        ));
    }
    sources.push(source);
    Ok(sources.len() - 1)
}

/// Returns all data sources: that of track events, then the registered ones in their order. The
/// list only grows.
pub(crate) fn registered() -> Vec<&'static dyn AnySource> {
    let mut all: Vec<&'static dyn AnySource> = vec![track_events()];
    all.extend(lock().iter());
    all
}

/// Returns the data source of track events, which always exists.
pub(crate) fn track_events() -> &'static dyn AnySource {
    static TRACK_EVENTS: TrackEvents = TrackEvents::new();
    &TRACK_EVENTS
}

/// The data sources and their instances, locked while the process forks.
pub(crate) struct HeldSources {
    _list: MutexGuard<'static, Vec<&'static dyn AnySource>>,
    instances: Vec<Box<dyn HeldInstances>>,
}

pub(crate) fn hold_for_fork() -> HeldSources {
    let list = lock();
    let instances = core::iter::once(track_events()).chain(list.iter().copied()).map(AnySource::hold).collect();
    HeldSources { _list: list, instances }
}

impl HeldSources {
    /// Forgets the instances, in the child.
    pub(crate) fn forget_instances(&mut self) {
        self.instances.iter_mut().for_each(|instances| instances.forget());
    }
}

fn lock() -> MutexGuard<'static, Vec<&'static dyn AnySource>> {
    SOURCES.lock().unwrap_or_else(PoisonError::into_inner)
}
