//! Lets the start of a session wait for this process's own connection to the service, and the other
//! way round.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::backend::Backend;
use crate::connection::pending_operation::{Completer, Pending};
use crate::connection::{self, Command, Handle};
use crate::control_thread;

/// How long a start waits for the connection. A service that answers one socket answers the other
/// in milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// The start of a session. It is complete when all references to it are dropped.
struct Start(Mutex<Option<Completer>>);

impl Start {
    fn complete(&self) {
        let done = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(done) = done {
            done.complete(Ok(Vec::new()));
        }
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        self.complete();
    }
}

/// Returns an operation that is complete when `started` is, and when the session records this
/// process too: it may have begun to connect a moment ago.
pub(super) fn and_this_process(started: Pending<()>) -> Pending<()> {
    let (pending, done) = Pending::new(super::nothing);
    started.then(move |result| match (result, connection::handle()) {
        (Ok(()), Some(control)) => {
            let start = Arc::new(Start(Mutex::new(Some(done))));
            control.send(Command::With(Box::new(move |control| {
                let late = Arc::downgrade(&start);
                control.call_after(PATIENCE, move || {
                    if let Some(start) = late.upgrade() {
                        start.complete();
                    }
                });
                control.sync_connecting(
                    |backend| *backend == Backend::System,
                    || {
                        let start = Arc::clone(&start);
                        Box::new(move || drop(start))
                    },
                );
            })));
        }
        (result, _) => done.complete(result.map(|()| Vec::new())),
    });
    pending
}

/// Sessions of this process that are open.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Notes that a session is opened, or closed.
pub(super) fn opened() {
    OPEN.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn closed() {
    OPEN.fetch_sub(1, Ordering::Relaxed);
}

/// Waits until the sessions of this process that run already record it. The process has just begun
/// to connect.
pub(crate) fn await_earlier_sessions(control: &Handle) {
    if OPEN.load(Ordering::Relaxed) == 0 || control_thread::is_current() {
        return;
    }
    let (answer, answers) = connection::answers();
    control.send(Command::With(Box::new(move |control| {
        control.sync_connecting(
            |_| true,
            || {
                let answer = answer.clone();
                Box::new(move || answer.give())
            },
        );
    })));
    let _ = answers.wait(PATIENCE);
}
