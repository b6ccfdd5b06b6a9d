//! The pause of the control thread while the process forks.
//!
//! A thread that forks asks for the pause, and the control thread rests between two pieces of work.
//! So it holds no locks during the fork.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a fork waits for the control thread to rest.
const PAUSE_PATIENCE: Duration = Duration::from_millis(200);

/// The states of a rest that a forking thread may want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    No,
    Wanted,
    Taken,
}

static REST: Mutex<Rest> = Mutex::new(Rest::No);
static RESTED: Condvar = Condvar::new();

/// Keeps the control thread paused, if it paused in time.
#[derive(Debug)]
pub(crate) struct Pause {
    rest: Option<MutexGuard<'static, Rest>>,
    _unchanging: Option<MutexGuard<'static, ()>>,
}

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

impl Pause {
    /// Pauses the control thread, so that it holds no locks. `wake` wakes it; `None` if there is no
    /// control thread to wait for. `unchanging` keeps the control thread from starting and ending.
    pub(super) fn begin(unchanging: Option<MutexGuard<'static, ()>>, wake: Option<impl FnOnce()>) -> Self {
        let Some(wake) = wake else { return Self { rest: None, _unchanging: unchanging } };
        let mut rest = lock(&REST);
        *rest = Rest::Wanted;
        wake();
        let (rest, _) = RESTED
            .wait_timeout_while(rest, PAUSE_PATIENCE, |rest| *rest == Rest::Wanted)
            .unwrap_or_else(PoisonError::into_inner);
        Self { rest: Some(rest), _unchanging: unchanging }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        if let Some(mut rest) = self.rest.take() {
            *rest = Rest::No;
            drop(rest);
            RESTED.notify_all();
        }
    }
}

/// Locks. A panic elsewhere leaves nothing half done here.
fn lock(rest: &Mutex<Rest>) -> MutexGuard<'_, Rest> {
    rest.lock().unwrap_or_else(PoisonError::into_inner)
}
