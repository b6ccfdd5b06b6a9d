//! Time-outs of operations that the service does not answer.

use std::time::{Duration, Instant};

use super::{Consumer, Kind};
use crate::error::Error;

/// How long the service may take for any operation, beyond agreed time-outs.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

impl Consumer {
    /// Returns when to [`expire`](Self::expire), if nothing happens before.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.operations.next_deadline()
    }

    /// Fails the operations that the service should have answered by `now`.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.now = now;
        if self.is_paused() {
            // The reader causes the delay, not the service.
            self.operations.extend(Kind::Read, now + PATIENCE);
        }
        for kind in self.operations.expire(now) {
            match kind {
                Kind::Read => {
                    let error = Error::timed_out("deliver the trace");
                    self.abandon_read(&error);
                    self.refuse_parked(&error);
                }
                Kind::Start => self.stop_if_wanted(),
                _ => {}
            }
        }
    }
}
