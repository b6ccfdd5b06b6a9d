//! The rest of the control thread while the process forks.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Whether somebody wants the control thread to rest, and whether it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    No,
    Wanted,
    Taken,
}

pub(super) static REST: Mutex<Rest> = Mutex::new(Rest::No);
pub(super) static RESTED: Condvar = Condvar::new();

/// Rests if somebody wants that, and as long. On the control thread, between two pieces of work.
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

/// A panic elsewhere leaves nothing half done here.
fn lock(rest: &Mutex<Rest>) -> MutexGuard<'_, Rest> {
    rest.lock().unwrap_or_else(PoisonError::into_inner)
}
