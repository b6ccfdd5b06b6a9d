//! [`Running`]: the connections that a server serves now.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::Socket;
use super::counters::Counters;
use crate::error::Error;
use crate::sys::{Listener, PollFd, poll};

/// Time that a client has for its first request before its place is given to another one.
const TIME_TO_BEGIN: Duration = Duration::from_secs(1);

/// State that the clones of a server share.
#[derive(Debug, Default)]
pub(crate) struct Running {
    pub(super) counters: Arc<Counters>,
    is_stopped: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    /// Connections by their number, with the times at which they were accepted.
    open: BTreeMap<u64, (Instant, Socket)>,
    /// Woken when a connection ends, and at the stop.
    acceptors: Vec<Waker>,
}

/// Place of a connection among those that are served. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Place {
    running: Arc<Running>,
    number: u64,
    has_hung_up: bool,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, unless the server was stopped.
    pub(crate) fn add(self: &Arc<Self>, socket: Socket) -> Option<Place> {
        let mut state = self.lock();
        if self.is_stopped() {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.open.insert(number, (Instant::now(), socket));
        self.counters.accepted.fetch_add(1, Ordering::Relaxed);
        self.counters.open.fetch_add(1, Ordering::Relaxed);
        Some(Place { running: Arc::clone(self), number, has_hung_up: false })
    }

    /// Counts a connection that could not be accepted or served.
    pub(crate) fn failed(&self) {
        self.counters.failed_accepts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn open(&self) -> usize {
        self.lock().open.len()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    pub(super) fn stop(&self) {
        let mut state = self.lock();
        self.is_stopped.store(true, Ordering::Release);
        state.open.values().for_each(|(_, socket)| socket.shutdown());
        let acceptors = std::mem::take(&mut state.acceptors);
        drop(state);
        acceptors.into_iter().for_each(Waker::wake);
    }

    /// Wakes a thread or task when a connection ends, and at the stop.
    pub(crate) fn watch(&self, waker: &Waker) {
        let mut state = self.lock();
        if !state.acceptors.iter().any(|known| known.will_wake(waker)) {
            state.acceptors.push(waker.clone());
        }
    }

    pub(super) fn unwatch(&self, waker: &Waker) {
        self.lock().acceptors.retain(|known| !known.will_wake(waker));
    }

    /// Ends the oldest connection that has not asked for a service, if a client waits for its
    /// place.
    pub(crate) fn evict(&self, listener: &Listener) {
        if !poll(&mut [PollFd::new(listener.as_fd(), false)], Some(Duration::ZERO)).is_ok_and(|ready| ready > 0) {
            return;
        }
        let state = self.lock();
        let has_waited = |since: &Instant| since.elapsed() >= TIME_TO_BEGIN;
        let idle = state.open.values().find(|(since, socket)| has_waited(since) && !socket.has_begun());
        if let Some((_, socket)) = idle {
            self.counters.evicted.fetch_add(1, Ordering::Relaxed);
            socket.shutdown();
        }
    }
}

impl Place {
    /// Notes the reason why the connection has ended.
    pub(crate) fn ended(&mut self, reason: &Error) {
        self.has_hung_up = matches!(reason, Error::Disconnected);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let counters = &self.running.counters;
        if !self.has_hung_up {
            counters.broken.fetch_add(1, Ordering::Relaxed);
        }
        counters.open.fetch_sub(1, Ordering::Relaxed);
        let mut state = self.running.lock();
        let socket = state.open.remove(&self.number);
        let acceptors = state.acceptors.clone();
        drop(state);
        // The socket is closed before another one is accepted.
        drop(socket);
        acceptors.into_iter().for_each(Waker::wake);
    }
}
