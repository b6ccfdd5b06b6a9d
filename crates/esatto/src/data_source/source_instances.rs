//! Instances of a custom data source.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esatto_instances::{Recording, Slots};

use crate::destination::Destination;

/// Instances of one data source.
pub(super) struct Instances<T> {
    /// Instances that record.
    pub(super) recording: Recording,
    pub(super) slots: Slots<Instance<T>>,
}

/// Instance that a session has made.
pub(super) struct Instance<T> {
    pub(super) destination: Destination,
    /// `None` when the instance has ended.
    object: Mutex<Option<Arc<T>>>,
}

impl<T> Instances<T> {
    pub(super) const fn new() -> Self {
        Self { recording: Recording::new(0), slots: Slots::new() }
    }
}

impl<T> Instance<T> {
    pub(super) const fn new(destination: Destination, object: Arc<T>) -> Self {
        Self { destination, object: Mutex::new(Some(object)) }
    }

    /// Returns the data source's state of the instance, unless the instance has ended.
    pub(super) fn object(&self) -> Option<Arc<T>> {
        self.lock().clone()
    }

    /// Takes the data source's state, when the instance has ended.
    pub(super) fn take_object(&self) -> Option<Arc<T>> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<T>>> {
        self.object.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
