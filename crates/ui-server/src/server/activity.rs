//! Activity of clients, by which a server finds out that it is no longer needed.

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Requests, open pages and deliveries of a server.
#[derive(Clone, Debug)]
pub struct Activity(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// The last time at which a request was answered, or a page closed.
    last: Instant,
    /// Admitted requests that are being answered.
    running: usize,
    /// Pages that hold a connection as long as they are open.
    pages: usize,
    has_had_page: bool,
    has_delivered: bool,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            last: Instant::now(),
            running: 0,
            pages: 0,
            has_had_page: false,
            has_delivered: false,
        })))
    }

    /// Returns whether the trace has been sent whole.
    #[must_use]
    pub fn has_delivered(&self) -> bool {
        self.state().has_delivered
    }

    /// Returns whether a page has told that it is open, at any time.
    #[must_use]
    pub fn has_had_page(&self) -> bool {
        self.state().has_had_page
    }

    /// Returns for how long nothing has happened: no admitted request, no open page.
    #[must_use]
    pub fn idle_for(&self, now: Instant) -> Duration {
        let state = self.state();
        if state.running + state.pages > 0 { Duration::ZERO } else { now.saturating_duration_since(state.last) }
    }

    pub(crate) fn request(&self) -> Running {
        self.state().running += 1;
        Running(self.clone(), |state| state.running -= 1)
    }

    pub(crate) fn page(&self) -> Running {
        let mut state = self.state();
        state.pages += 1;
        state.has_had_page = true;
        Running(self.clone(), |state| state.pages -= 1)
    }

    pub(crate) fn delivered(&self) {
        self.state().has_delivered = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that goes on. It ends with this value.
#[derive(Debug)]
pub(crate) struct Running(Activity, fn(&mut State));

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.0.state();
        self.1(&mut state);
        state.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_idle_while_a_page_is_open() {
        let activity = Activity::new();
        let later = Instant::now() + Duration::from_secs(100);
        assert!(activity.idle_for(later) > Duration::from_secs(90) && !activity.has_had_page());
        let page = activity.page();
        let request = activity.request();
        drop(request);
        assert_eq!(activity.idle_for(later), Duration::ZERO);
        drop(page);
        assert!(activity.idle_for(later) > Duration::ZERO && activity.has_had_page());
        assert!(!activity.has_delivered());
        activity.delivered();
        assert!(activity.has_delivered());
    }
}
