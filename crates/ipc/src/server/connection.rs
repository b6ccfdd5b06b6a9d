//! [`ServerConnection`]: one accepted connection.

use std::fmt;
use std::future::poll_fn;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::ServerLimits;
use super::context::take_fd;
use super::counters::{Counters, Counts};
use super::dispatch::{Dispatch, Invocation};
use super::open_call::OpenCall;
use super::shared::{Shared, State};
use super::tasks::Tasks;
use crate::callee::CalleeEvent;
use crate::clock;
use crate::error::Error;
use crate::frame::FrameDecoder;
use crate::frame::rpc::Features;
use crate::passed_fds::PassedFds;
use crate::peer::Peer;
use crate::readiness::{Interest, Readiness};
use crate::sys::{PollFd, Stream, WakeFd, poll};

/// Frames that one turn handles, so that other connections have their turn.
const FRAMES_PER_TURN: usize = 64;

/// Accepted connection, and the services that it offers.
pub struct ServerConnection<D> {
    dispatch: D,
    receiving: Receiving,
    shared: Arc<Shared>,
}

/// Socket of a [`ServerConnection`], which stays open as long as this value.
#[derive(Clone)]
pub struct Socket(Arc<Shared>);

/// Parts that only the driver uses.
#[derive(Default)]
struct Receiving {
    decoder: FrameDecoder,
    fds: PassedFds,
    tasks: Tasks,
    /// Frame that has arrived in part.
    partial: Option<Partial>,
    /// Counters of the server, and what they have of this connection.
    counters: Option<Arc<Counters>>,
    counted: Counts,
    /// The socket may have more, although an edge-triggered source does not say so again.
    has_unread: bool,
    is_at_end: bool,
}

/// Frame whose rest has not arrived.
struct Partial {
    /// Its position in the stream.
    at: u64,
    /// Time at which the connection ends without it.
    deadline: Option<Instant>,
}

impl<D: Dispatch> ServerConnection<D> {
    /// Makes the serving end of a connected stream.
    #[must_use]
    pub fn new(stream: Stream, dispatch: D, limits: ServerLimits) -> Self {
        // Bytes that came before the first wait may be reported to nobody.
        let receiving = Receiving { has_unread: true, ..Receiving::default() };
        Self { dispatch, receiving, shared: Arc::new(Shared::new(stream, limits)) }
    }

    /// Adds what goes wrong to the counters of a server.
    pub(super) fn count_into(&mut self, counters: Arc<Counters>) {
        self.receiving.counters = Some(counters);
    }

    /// Reads requests, runs them, and writes replies, without waiting. Returns true if there is
    /// more to do at once.
    ///
    /// # Errors
    ///
    /// The reason why the connection has ended: [`Error::Disconnected`] if the client closed it.
    pub fn pump(&mut self) -> Result<bool, Arc<Error>> {
        self.receiving.turn(&self.shared, &mut self.dispatch, true)
    }

    /// As [`pump`](Self::pump), with services that several connections share.
    ///
    /// # Errors
    ///
    /// As [`pump`](Self::pump).
    pub fn pump_with(&mut self, dispatch: &mut dyn Dispatch) -> Result<bool, Arc<Error>> {
        self.receiving.turn(&self.shared, dispatch, true)
    }

    /// Serves the connection on this thread until it ends, and returns the reason.
    pub fn block(&mut self) -> Arc<Error> {
        let wake = match WakeFd::new() {
            Ok(fd) => Arc::new(fd),
            Err(error) => return Arc::new(error.into()),
        };
        self.set_waker(&Waker::from(Arc::clone(&wake)));
        let mut is_readable = true;
        loop {
            let has_more = match self.receiving.turn(&self.shared, &mut self.dispatch, is_readable) {
                Ok(has_more) => has_more,
                Err(error) => return error,
            };
            if has_more {
                is_readable = true;
                continue;
            }
            let interest = self.interest();
            let timeout = self.next_deadline().map(|deadline| deadline.saturating_duration_since(clock::now()));
            let mut fds = [PollFd::new(wake.as_fd(), false), PollFd::new(self.shared.stream.as_fd(), interest.write)];
            let waiting = if interest.read || interest.write { &mut fds[..] } else { &mut fds[..1] };
            // A signal ends the wait early, which does no harm.
            let _ = poll(waiting, timeout);
            if fds[0].is_readable() {
                wake.reset();
            }
            is_readable = fds[1].is_readable();
        }
    }

    /// Serves the connection until it ends, and returns the reason. Dropping the future ends the
    /// connection.
    pub async fn drive(&mut self, mut io: impl Readiness) -> Arc<Error> {
        poll_fn(|cx| self.poll_drive(cx, &mut io)).await
    }

    /// As [`drive`](Self::drive), for futures that are written by hand.
    pub fn poll_drive(&mut self, cx: &mut Context<'_>, io: &mut impl Readiness) -> Poll<Arc<Error>> {
        self.set_waker(cx.waker());
        let mut is_woken = true;
        loop {
            let interest = self.interest();
            let mut ready = [false; 2];
            // Asked before the socket is read, not after: then a read that leaves room is the last
            // one, and need not be followed by one that finds nothing.
            let polls = [interest.read.then(|| io.poll_readable(cx)), interest.write.then(|| io.poll_writable(cx))];
            for (is_ready, poll) in ready.iter_mut().zip(polls) {
                match poll {
                    Some(Poll::Ready(Err(error))) => return Poll::Ready(Arc::new(error.into())),
                    poll => *is_ready = poll.is_some_and(|poll| poll.is_ready()),
                }
            }
            let [is_readable, mut is_ready] = ready;
            if let Some(deadline) = self.next_deadline() {
                is_ready |= io.poll_sleep_until(cx, deadline).is_ready();
            }
            if !is_readable && !is_ready && !is_woken {
                return Poll::Pending;
            }
            is_woken = false;
            let read = is_readable || self.receiving.has_unread;
            match self.receiving.turn(&self.shared, &mut self.dispatch, read) {
                Ok(false) => {}
                Ok(true) => {
                    // Other tasks of the runtime have their turn first.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(error),
            }
        }
    }

    /// Returns the events of [`as_fd`](AsFd::as_fd) to wait for before [`pump`](Self::pump).
    #[must_use]
    pub fn interest(&self) -> Interest {
        let state = self.shared.lock();
        let is_paused = state.is_paused(&self.shared.limits);
        Interest { read: !is_paused && !self.receiving.is_at_end, write: !state.out.is_empty() }
    }

    /// Returns the time at which [`pump`](Self::pump) must be called even if the socket is not
    /// ready, because a deadline passes.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let frame = self.receiving.partial.as_ref().and_then(|partial| partial.deadline);
        self.shared.lock().callee.next_deadline().into_iter().chain(frame).min()
    }

    /// Sets the function that tells the event loop to call [`pump`](Self::pump) although the socket
    /// is not ready: a future can continue, or a reply of another thread must be written.
    pub fn set_waker(&self, waker: &Waker) {
        let mut state = self.shared.lock();
        if !state.driver.as_ref().is_some_and(|driver| driver.will_wake(waker)) {
            state.driver = Some(waker.clone());
        }
    }

    /// Returns the services.
    pub fn dispatch_mut(&mut self) -> &mut D {
        &mut self.dispatch
    }

    /// Returns the identity of the client.
    #[must_use]
    pub fn peer(&self) -> Arc<Peer> {
        Arc::clone(&self.shared.lock().peer)
    }

    /// Returns the socket, for a [`Readiness`] that keeps it.
    #[must_use]
    pub fn socket(&self) -> Socket {
        Socket(Arc::clone(&self.shared))
    }

    /// Returns the number of calls that have not ended.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.shared.lock().callee.open_calls()
    }

    /// Returns the number of bytes that wait to be written.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.shared.lock().out.queued()
    }

    /// Returns the number of requests that were answered with an error because they were not valid.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.shared.lock().callee.refused()
    }

    /// Returns the number of frames that were empty or no protobuf message.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.receiving.decoder.skipped()
    }

    /// Returns the number of descriptors that no frame announced or no call took.
    #[must_use]
    pub fn unexpected_fds(&self) -> u64 {
        self.receiving.fds.unexpected()
    }
}

impl Receiving {
    fn turn(&mut self, shared: &Arc<Shared>, dispatch: &mut dyn Dispatch, read: bool) -> Result<bool, Arc<Error>> {
        let mut state = shared.lock();
        state.pumping = Some(thread::current().id());
        let ready = std::mem::take(&mut state.ready);
        let is_paused = state.is_paused(&shared.limits);
        drop(state);
        if read {
            self.has_unread = is_paused || self.decoder.has_frame() || self.read(shared);
        }
        if !is_paused {
            self.handle_frames(shared, dispatch);
        }
        for serial in ready {
            self.tasks.resume(serial);
        }
        let mut state = shared.lock();
        state.expire();
        state.pumping = None;
        // This is the driver.
        state.is_driver_writing = true;
        let mut wakers = shared.flush(&mut state);
        state.is_driver_writing = state.out.queued() > 0;
        let is_paused = state.is_paused(&shared.limits);
        if self.is_at_end && !self.decoder.has_frame() {
            shared.end(&mut state, Error::Disconnected);
        } else if self.is_too_slow(is_paused, shared.limits.max_frame_time) {
            shared.end(&mut state, Error::FrameTooSlow);
        }
        self.count(&state);
        if state.end.is_some() {
            wakers.append(&mut state.take_wakers());
        } else {
            wakers.append(&mut state.callee.take_wakers());
        }
        let ended: Vec<_> = std::iter::from_fn(|| state.callee.next_ended()).collect();
        let end = state.end.clone();
        let has_more = !state.ready.is_empty() || !is_paused && (self.has_unread || self.decoder.has_frame());
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        for key in ended {
            self.tasks.cancel(key.serial);
        }
        match end {
            Some(error) => {
                self.tasks.clear();
                Err(error)
            }
            None => Ok(has_more),
        }
    }

    /// Returns true if the client has had enough time for the rest of a frame. The time in which
    /// nothing is read does not count.
    fn is_too_slow(&mut self, is_paused: bool, limit: Duration) -> bool {
        if is_paused || self.decoder.buffered() == 0 || self.decoder.has_frame() {
            self.partial = None;
            return false;
        }
        let (at, now) = (self.decoder.consumed(), clock::now());
        match &self.partial {
            Some(partial) if partial.at == at => partial.deadline.is_some_and(|deadline| deadline <= now),
            _ => {
                self.partial = Some(Partial { at, deadline: now.checked_add(limit) });
                false
            }
        }
    }

    /// Tells the counters of the server what has changed.
    fn count(&mut self, state: &State) {
        let Some(counters) = &self.counters else { return };
        let refused = state.callee.refused();
        let now = Counts { refused, malformed: self.decoder.skipped(), unexpected_fds: self.fds.unexpected() };
        if now != self.counted {
            counters.add(self.counted, now);
            self.counted = now;
        }
    }

    /// Reads once. Returns true if more may have arrived.
    fn read(&mut self, shared: &Shared) -> bool {
        let room = self.decoder.spare();
        let len = room.len();
        match shared.stream.recv(room) {
            Ok(None) => false,
            Ok(Some(received)) if received.len == 0 => {
                self.is_at_end = true;
                false
            }
            Ok(Some(received)) => {
                self.decoder.advance(received.len);
                let has_fd = received.fd.is_some();
                if let Some(fd) = received.fd {
                    let end = self.decoder.consumed() + self.decoder.buffered() as u64;
                    let is_exact = shared.lock().callee.features().has(Features::DESCRIPTORS);
                    self.fds.arrived(fd, end, is_exact);
                }
                received.len == len || has_fd
            }
            Err(error) => {
                shared.end(&mut shared.lock(), error);
                false
            }
        }
    }

    fn handle_frames(&mut self, shared: &Arc<Shared>, dispatch: &mut dyn Dispatch) {
        let mut now = None;
        for _ in 0..FRAMES_PER_TURN {
            let mut frame = match self.decoder.next_rpc_frame() {
                Ok(Some((frame, _))) => frame,
                Ok(None) => break,
                Err(error) => return shared.end(&mut shared.lock(), error),
            };
            let now = *now.get_or_insert_with(clock::now);
            let mut state = shared.lock();
            if state.end.is_some() {
                return;
            }
            let State { callee, out, .. } = &mut *state;
            // Clients that do not mark their frames mean the next call that takes a descriptor.
            frame.has_fd |= !callee.features().has(Features::DESCRIPTORS) && self.fds.has_waiting();
            let event = callee.handle(&frame, &|index| dispatch.service(index), now, out);
            let invoking = callee.take_invoked();
            let wakers = callee.take_wakers();
            let is_exact = callee.features().has(Features::DESCRIPTORS);
            if let CalleeEvent::PeerIdentity(claim) = &event {
                Arc::make_mut(&mut state.peer).identify(claim);
                let State { callee, peer, .. } = &mut *state;
                callee.set_peer(peer);
            }
            let peer = Arc::clone(&state.peer);
            let is_paused = state.is_paused(&shared.limits);
            let ended: Vec<_> = std::iter::from_fn(|| state.callee.next_ended()).collect();
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            for key in ended {
                self.tasks.cancel(key.serial);
            }
            if let CalleeEvent::Invoke(invoked) = event {
                let mut fd = self.fds.take(frame.has_fd, is_exact);
                let _invoking = invoking.invoking();
                dispatch.dispatch(Invocation {
                    service: invoked.service,
                    method_id: invoked.method_id,
                    call: OpenCall::new(Arc::clone(shared), invoked.key, invoked.method),
                    args: invoked.args,
                    deadline: invoked.deadline,
                    peer: &peer,
                    fd: &mut fd,
                    tasks: &mut self.tasks,
                });
                self.tasks.start(shared);
                let lent = self.tasks.lent_fd.take().filter(|_| !is_exact);
                let fd = fd.or_else(|| take_fd(&lent?));
                self.fds.put_back(fd, self.decoder.consumed(), is_exact);
            }
            self.fds.handled(self.decoder.consumed(), is_exact);
            if is_paused {
                break;
            }
        }
    }
}

impl<D> AsFd for ServerConnection<D> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.stream.as_fd()
    }
}

impl Socket {
    /// Ends the connection.
    pub(super) fn shutdown(&self) {
        self.0.stream.shutdown();
    }

    /// Returns true if the client has asked for a service.
    pub(super) fn has_begun(&self) -> bool {
        self.0.lock().callee.was_bound()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.stream.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Socket").field(&self.0.stream).finish()
    }
}

impl<D> Drop for ServerConnection<D> {
    /// Ends the connection: handles of its calls find it closed.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        self.shared.end(&mut state, Error::Disconnected);
        let wakers = state.take_wakers();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl<D> fmt::Debug for ServerConnection<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("ServerConnection")
            .field("stream", &self.shared.stream)
            .field("open_calls", &state.callee.open_calls())
            .field("end", &state.end)
            .finish_non_exhaustive()
    }
}
