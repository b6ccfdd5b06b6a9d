//! [`CommitSchedule`]: when the control thread polls the arbiter.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use esatto_instances::Uncancelled;
use esatto_shm::Notify;

use super::losses;
use crate::connection::{reclaiming, wakeups};
use crate::diagnostics;
use crate::os::Waker;

/// The time at which the arbiter wants to be polled. Threads that trace set it, and wake the
/// control thread.
pub(crate) struct CommitSchedule {
    waker: Waker,
    control_thread: ThreadId,
    due: Mutex<Option<Instant>>,
}

impl CommitSchedule {
    /// Makes a schedule for the thread that calls, which is the control thread.
    pub(crate) fn new(waker: Waker) -> Self {
        Self { waker, control_thread: thread::current().id(), due: Mutex::default() }
    }

    /// Returns when to poll the arbiter, if it has something.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        *self.due()
    }

    /// Returns whether it is time to poll the arbiter. If it is, the deadline is taken back.
    pub(crate) fn take_due(&self, now: Instant) -> bool {
        self.due().take_if(|due| *due <= now).is_some()
    }

    fn due(&self) -> MutexGuard<'_, Option<Instant>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notify for CommitSchedule {
    fn wake(&self) {
        *self.due() = Some(Instant::now());
        self.waker.wake();
    }

    fn wake_after(&self, delay: Duration) {
        let mut due = self.due();
        if due.is_none() {
            *due = Some(Instant::now() + delay);
            drop(due);
            // A thread that waits must not wait for longer than that. While the control thread
            // collects chunks, it looks at the deadline anyway.
            if !wakeups::is_collecting() {
                self.waker.wake();
            }
        }
    }

    fn stall(&self, duration: Duration) {
        let _uncancelled = Uncancelled::begin();
        thread::sleep(duration);
    }

    fn on_scarce(&self, exhausted: bool) {
        reclaiming::note_scarcity(exhausted);
        self.waker.wake();
    }

    fn on_writer_refused(&self) {
        losses::note_sequence();
        diagnostics::say_once(
            "a connection has reached the limit of 32767 sequences: further threads lose their events".into(),
        );
    }

    fn on_drop(&self) {
        losses::note_gap();
    }

    fn on_chunk_lost(&self) {
        losses::note_chunk();
    }

    /// The control thread cannot send inside a trace point, because its state is in use.
    /// It waits only half as often as other threads, which wait for it.
    fn send_on_connection_thread(&self) -> bool {
        thread::current().id() == self.control_thread
    }
}

impl core::fmt::Debug for CommitSchedule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CommitSchedule").finish_non_exhaustive()
    }
}
