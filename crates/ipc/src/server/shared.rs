//! State of a connection that its calls share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{self, ThreadId};

use super::ServerLimits;
use crate::callee::{CallKey, Callee};
use crate::clock;
use crate::connection::WriteQueue;
use crate::error::Error;
use crate::peer::Peer;
use crate::sys::Stream;

/// Bytes of replies that are collected while frames are handled.
const FLUSH_AT: usize = 64 << 10;

pub(super) struct Shared {
    pub(super) stream: Stream,
    pub(super) limits: ServerLimits,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) callee: Callee,
    pub(super) out: WriteQueue,
    pub(super) peer: Arc<Peer>,
    /// The thread that handles frames now. It writes replies later, all at once.
    pub(super) pumping: Option<ThreadId>,
    /// Tasks that can continue, by serial.
    pub(super) ready: Vec<u64>,
    /// Event loop, thread or task that drives the connection.
    pub(super) driver: Option<Waker>,
    /// The driver knows that bytes wait until the socket takes them.
    pub(super) is_driver_writing: bool,
    /// Streams that wait until the client reads.
    pub(super) waiting_for_room: Vec<Waker>,
    pub(super) end: Option<Arc<Error>>,
}

impl Shared {
    pub(super) fn new(stream: Stream, limits: ServerLimits) -> Self {
        let peer = Arc::new(Peer::of(&stream));
        let mut callee = Callee::new(limits.max_calls).with_request_bounds(limits.max_request_bytes, limits.max_fds);
        callee.set_peer(&peer);
        let state = State {
            callee,
            out: WriteQueue::default(),
            peer,
            pumping: None,
            ready: Vec::new(),
            driver: None,
            is_driver_writing: false,
            waiting_for_room: Vec::new(),
            end: None,
        };
        Self { stream, limits, state: Mutex::new(state) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and writes what it queued unless this thread writes a little later
    /// anyway.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        let queued = state.out.queued();
        let is_pumping = state.pumping.is_some_and(|thread| thread == thread::current().id());
        let is_later = queued == 0 || is_pumping && queued < FLUSH_AT;
        let mut wakers = if is_later { Vec::new() } else { self.flush(&mut state) };
        wakers.append(&mut state.callee.take_wakers());
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    /// Writes what the socket takes now. Returns those who must look at the connection again.
    pub(super) fn flush(&self, state: &mut State) -> Vec<Waker> {
        if state.end.is_some() {
            return state.take_wakers();
        }
        let mut wakers = Vec::new();
        let written = state.out.write_to(&self.stream);
        let (queued, limit) = (state.out.queued(), self.limits.max_queued);
        if let Err(error) = written {
            self.end(state, error);
        } else if queued > limit {
            self.end(state, Error::PeerNotReading { queued, limit });
        }
        // Only once, because the driver also writes here, and would wake itself until the socket
        // takes more.
        let is_new = queued > 0 && !std::mem::replace(&mut state.is_driver_writing, true);
        if is_new || state.end.is_some() {
            wakers.extend(state.driver.clone());
        }
        wakers.append(&mut state.callee.take_wakers());
        if !state.is_paused(&self.limits) || state.end.is_some() {
            wakers.append(&mut state.waiting_for_room);
        }
        wakers
    }

    /// Ends the connection. The driver drops its tasks.
    pub(super) fn end(&self, state: &mut State, error: Error) {
        if state.end.is_none() {
            state.end = Some(Arc::new(error));
            state.out = WriteQueue::default();
            state.callee.disconnect();
            self.stream.shutdown();
        }
    }
}

impl State {
    /// Ends the calls whose deadline has passed.
    pub(super) fn expire(&mut self) {
        if self.callee.next_deadline().is_some() {
            self.callee.expire(clock::now(), &mut self.out);
        }
    }

    /// Returns true if a stream may send a further reply.
    pub(super) fn has_room(&self, key: CallKey, limits: &ServerLimits) -> bool {
        self.callee.has_room(key) && !self.is_paused(limits)
    }

    /// Returns true if the client must take replies before it gets more.
    pub(super) fn is_paused(&self, limits: &ServerLimits) -> bool {
        self.out.queued() >= limits.pause_at || self.out.queued_fds() >= limits.max_fds.max(1)
    }

    /// Takes the wakers of all who wait, because the connection has ended.
    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        let mut wakers = self.callee.take_wakers();
        wakers.append(&mut self.waiting_for_room);
        wakers
    }

    /// Wakes a task when a stream may have room, or has ended.
    pub(super) fn watch(&mut self, key: CallKey, waker: &Waker) {
        self.callee.watch(key, waker);
        if self.callee.has_room(key) && !self.waiting_for_room.iter().any(|known| known.will_wake(waker)) {
            self.waiting_for_room.push(waker.clone());
        }
    }
}
