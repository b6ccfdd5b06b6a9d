//! Triggers that wait for a connection.

use core::mem;
use std::time::Instant;

use super::losses;

/// The most requests for triggers that wait for a connection. With more, the oldest is dropped and
/// [counted](crate::Losses::triggers).
const MAX_PENDING_TRIGGERS: usize = 64;

/// Requests for triggers, the oldest first.
pub(super) struct PendingTriggers(Vec<Trigger>);

struct Trigger {
    names: Vec<String>,
    until: Instant,
}

impl PendingTriggers {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a request for triggers, which are not activated after `until`.
    pub(super) fn push(&mut self, names: Vec<String>, until: Instant) {
        if self.0.len() >= MAX_PENDING_TRIGGERS {
            losses::note_triggers(self.0.remove(0).names.len());
        }
        self.0.push(Trigger { names, until });
    }

    /// Returns whether a request waits whose time is not over.
    pub(super) fn wait_for_service(&self, now: Instant) -> bool {
        self.0.iter().any(|trigger| trigger.until > now)
    }

    /// Takes all requests. Returns the names of those whose time is not over.
    pub(super) fn take(&mut self, now: Instant) -> impl Iterator<Item = Vec<String>> {
        mem::take(&mut self.0).into_iter().filter(move |trigger| trigger.until > now).map(|trigger| trigger.names)
    }
}
