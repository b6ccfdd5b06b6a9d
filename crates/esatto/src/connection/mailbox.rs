//! The queue of commands for the control thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

use esatto_instances::ThreadGate as _;

use crate::os::Waker;
use crate::trace_point_gate::{Closed, Gate};

/// The queue, and how to wake the thread that takes commands. `None` when it takes no more.
pub(super) struct Mailbox<C>(Mutex<Option<Open<C>>>);

struct Open<C> {
    commands: Vec<C>,
    waker: Waker,
}

/// See [`Mailbox::lock`].
struct Locked<'c, C> {
    open: MutexGuard<'c, Option<Open<C>>>,
    _closed: Closed,
}

impl<C> Mailbox<C> {
    pub(super) const fn new(waker: Waker) -> Self {
        Self(Mutex::new(Some(Open { commands: Vec::new(), waker })))
    }

    /// Leaves a command, or returns it if no more are taken.
    pub(super) fn try_send(&self, command: C) -> Option<C> {
        let mut commands = self.lock();
        let Some(open) = &mut *commands.open else { return Some(command) };
        open.commands.push(command);
        open.waker.wake();
        None
    }

    /// Wakes the thread that takes commands.
    pub(super) fn wake(&self) {
        if let Some(open) = &*self.lock().open {
            open.waker.wake();
        }
    }

    /// Returns the commands that have arrived since the last call.
    pub(super) fn take(&self) -> Vec<C> {
        self.lock().open.as_mut().map(|open| core::mem::take(&mut open.commands)).unwrap_or_default()
    }

    /// Takes no more commands.
    pub(super) fn close(&self) {
        // Dropped outside of the lock: the destructor of a command may send another one.
        let rest = self.lock().open.take();
        drop(rest);
    }

    /// Locks. Meanwhile this thread is closed to trace points, because a signal handler that
    /// registers a category takes this lock.
    fn lock(&self) -> Locked<'_, C> {
        let closed = Gate::close();
        Locked { open: self.0.lock().unwrap_or_else(PoisonError::into_inner), _closed: closed }
    }
}
