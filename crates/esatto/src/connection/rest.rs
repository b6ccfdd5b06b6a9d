//! The rest of the control thread while the process forks.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The states of a rest that a forking thread may want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    No,
    Wanted,
    Taken,
}

pub(super) static REST: Mutex<Rest> = Mutex::new(Rest::No);
pub(super) static RESTED: Condvar = Condvar::new();

/// Rests as long as a forking thread wants it. The control thread calls this between two pieces of
/// work.
pub(super) fn rest_if_wanted() {
    let mut rest = lock(&REST);
    if *rest == Rest::No {
        return;
    }
    *rest = Rest::Taken;
    RESTED.notify_all();
    while *rest != Rest::No {
        rest = RESTED.wait(rest).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Locks. A panic elsewhere leaves nothing half done here.
fn lock(rest: &Mutex<Rest>) -> MutexGuard<'_, Rest> {
    rest.lock().unwrap_or_else(PoisonError::into_inner)
}
