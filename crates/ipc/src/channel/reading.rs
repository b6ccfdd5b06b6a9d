//! Reading of a channel: one thread or task at a time, for all calls.

use std::os::fd::AsFd;
use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use super::events::Done;
use super::events::{Arrived, Next};
use super::thread_waker::{parked, polling};
use super::{Shared, State};
use crate::call_error::CallError;
use crate::caller::CallerEvent;
use crate::clock;
use crate::error::Error;
use crate::foreign_fd::ForeignFd;
use crate::frame::FrameDecoder;
use crate::frame::rpc::Features;
use crate::observed::TracedReply;
use crate::passed_fds::PassedFds;
use crate::scratch::Scratch;
use crate::sys::{PollFd, poll};

/// Frames that one turn handles, so that callbacks and other work run in between.
const FRAMES_PER_TURN: usize = 64;

/// Wait of a thread that cannot be woken up because the process has no descriptors left.
const WAIT_WITHOUT_WAKER: Duration = Duration::from_millis(10);

/// Receiving side of a channel.
#[derive(Debug, Default)]
pub(super) struct Reader {
    decoder: FrameDecoder,
    fds: PassedFds,
    /// The socket may have more, although an edge-triggered source does not say so again.
    has_unread: bool,
    /// Unexpected descriptors and malformed frames that the state knows.
    counted: (u64, u64),
}

/// Call for which the reading thread waits. Its reply is not copied.
pub(super) struct Wanted<'w> {
    pub(super) id: u64,
    pub(super) decode: &'w mut dyn FnMut(&[u8]),
    pub(super) fd: Option<ForeignFd>,
    pub(super) is_decoded: bool,
}

impl Shared {
    /// Reads, writes and runs callbacks without waiting. Returns true if there is more to do.
    pub(super) fn pump(&self) -> Result<bool, Arc<Error>> {
        let mut done = Done::default();
        let mut has_more = false;
        let is_reading = match self.try_reader() {
            Some(mut reader) => {
                has_more = self.receive(&mut reader, &mut None, &mut done);
                true
            }
            None => false,
        };
        let mut state = self.lock();
        state.driver_missed |= !is_reading;
        self.expire(&mut state, &mut done);
        self.flush(&mut state, &mut done);
        let end = state.end.clone();
        let sleeper = if is_reading { state.sleepers.pop_front() } else { None };
        drop(state);
        done.wakers.extend(sleeper.map(|(_, waker)| waker));
        done.run(self);
        end.map_or(Ok(has_more), Err)
    }

    /// Takes the newest descriptor of a peer that does not mark its frames.
    pub(super) fn take_fd(&self) -> Option<ForeignFd> {
        let is_exact = self.lock().caller.features().has(Features::DESCRIPTORS);
        let mut reader = self.try_reader().filter(|_| !is_exact)?;
        reader.fds.take_newest()
    }

    /// Waits for the reply to a unary call.
    pub(super) fn wait_unary(&self, id: u64, decode: &mut dyn FnMut(&[u8])) -> Result<Option<ForeignFd>, CallError> {
        let mut wanted = Wanted { id, decode, fd: None, is_decoded: false };
        loop {
            if wanted.is_decoded {
                self.lock().slots.remove(id);
                return Ok(wanted.fd);
            }
            match self.next(id) {
                Next::Reply(arrived) => {
                    (wanted.decode)(&arrived.body);
                    self.lock().slots.remove(id);
                    return Ok(arrived.fd);
                }
                Next::End(result) => return result.map(|()| None),
                Next::Pending => self.wait_for_event(id, &mut Some(&mut wanted)),
            }
        }
    }

    /// Waits until something happens to a call, or for no reason.
    pub(super) fn wait_for_event(&self, id: u64, wanted: &mut Option<&mut Wanted<'_>>) {
        let is_over = |state: &State| !state.slots.is_waiting(id);
        if self.read_blocking(wanted, &is_over) {
            return;
        }
        let waker = parked();
        let mut state = self.lock();
        if !state.slots.is_waiting(id) || state.end.is_some() {
            return;
        }
        state.slots.watch(id, &waker);
        let sleeper = state.add_sleeper(waker);
        drop(state);
        self.sleep(sleeper, wanted, &is_over);
    }

    /// Waits until fewer bytes wait to be sent, or for no reason.
    pub(super) fn wait_for_room(&self) {
        self.wait_for_write(&|state| state.has_room(&self.limits));
    }

    /// Waits until a call is sent whose service must be bound first. Returns false if it was bound
    /// already.
    pub(super) fn wait_until_sent(&self, id: u64) -> bool {
        let is_waiting = |state: &State| state.end.is_none() && state.caller.is_unsent(id);
        let mut has_waited = false;
        while is_waiting(&self.lock()) {
            has_waited = true;
            self.wait_for_write(&|state| !is_waiting(state));
        }
        has_waited
    }

    /// Waits until a write has made something true, or for no reason.
    fn wait_for_write(&self, is_so: &dyn Fn(&State) -> bool) {
        let is_over = |state: &State| state.end.is_some() || is_so(state);
        if self.read_blocking(&mut None, &is_over) {
            return;
        }
        let mut state = self.lock();
        if is_over(&state) {
            return;
        }
        // Each write wakes these, if there is room.
        state.waiting_for_room.push(parked());
        let sleeper = state.add_sleeper(parked());
        drop(state);
        self.sleep(sleeper, &mut None, &is_over);
    }

    /// Sleeps until this thread is woken, or reads. A sleeper that was chosen as the next reader,
    /// and need not read because its wait `is_over`, chooses another one.
    fn sleep(&self, sleeper: u64, wanted: &mut Option<&mut Wanted<'_>>, is_over: &dyn Fn(&State) -> bool) {
        // The reader may have finished before it could see this sleeper.
        if !self.read_blocking(wanted, is_over) {
            thread::park();
        }
        // A reader that is still in the list may have chosen itself.
        let is_decoded = wanted.as_ref().is_some_and(|wanted| wanted.is_decoded);
        let mut state = self.lock();
        let before = state.sleepers.len();
        state.sleepers.retain(|(other, _)| *other != sleeper);
        let was_chosen = state.sleepers.len() == before;
        if was_chosen && (is_decoded || is_over(&state)) {
            drop(state);
            self.wake_sleeper();
        }
    }

    /// Waits for the socket and handles what arrives, until the wanted call ends or other code must
    /// run. Does nothing if the wait `is_over`. Returns false if another thread reads.
    fn read_blocking(&self, wanted: &mut Option<&mut Wanted<'_>>, is_over: &dyn Fn(&State) -> bool) -> bool {
        let Some(mut reader) = self.try_reader() else { return false };
        // The last reader may have handled what this thread waits for.
        if is_over(&self.lock()) {
            drop(reader);
            self.wake_sleeper();
            return true;
        }
        let mut done = Done::default();
        loop {
            self.wait_for_socket(&mut reader, wanted, &mut done);
            let Some(wanted) = wanted.as_ref().filter(|wanted| !wanted.is_decoded) else { break };
            if !done.callbacks.is_empty() || !self.lock().slots.is_waiting(wanted.id) {
                break;
            }
            if !done.is_empty() {
                std::mem::take(&mut done).run(self);
            }
        }
        drop(reader);
        done.run(self);
        self.wake_sleeper();
        true
    }

    fn wait_for_socket(&self, reader: &mut Reader, wanted: &mut Option<&mut Wanted<'_>>, done: &mut Done) {
        // Frames may be left of an earlier turn.
        if reader.decoder.has_frame() {
            self.handle_frames(reader, wanted, done);
            return;
        }
        let wake = polling();
        let mut state = self.lock();
        self.expire(&mut state, done);
        if state.end.is_some() || !done.is_empty() {
            return;
        }
        state.poller = wake.as_ref().map(|(_, waker)| waker.clone());
        let wants_write = !state.out.is_empty();
        let deadline = state.caller.next_deadline();
        drop(state);
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
        let socket = PollFd::new(self.stream.as_fd(), wants_write);
        let (is_readable, is_writable) = match &wake {
            Some((fd, _)) => {
                let mut fds = [socket, PollFd::new(fd.as_fd(), false)];
                // A signal ends the wait early, which does no harm.
                let _ = poll(&mut fds, timeout);
                if fds[1].is_readable() {
                    fd.reset();
                }
                (fds[0].is_readable(), fds[0].is_writable())
            }
            None => {
                let mut fds = [socket];
                let _ = poll(&mut fds, Some(timeout.unwrap_or(WAIT_WITHOUT_WAKER).min(WAIT_WITHOUT_WAKER)));
                (fds[0].is_readable(), fds[0].is_writable())
            }
        };
        if is_writable || deadline.is_some() {
            let mut state = self.lock();
            state.poller = None;
            self.expire(&mut state, done);
            self.flush(&mut state, done);
        }
        if is_readable {
            self.receive(reader, wanted, done);
        }
    }

    /// Reads what has arrived, and handles it. Returns true if there may be more.
    fn receive(&self, reader: &mut Reader, wanted: &mut Option<&mut Wanted<'_>>, done: &mut Done) -> bool {
        reader.has_unread = reader.decoder.has_frame() || self.read(reader, done);
        self.handle_frames(reader, wanted, done);
        reader.has_unread || reader.decoder.has_frame()
    }

    /// Reads once. Returns true if more may have arrived.
    fn read(&self, reader: &mut Reader, done: &mut Done) -> bool {
        let room = reader.decoder.spare();
        let len = room.len();
        match self.stream.recv(room) {
            Ok(None) => false,
            Ok(Some(received)) if received.len == 0 => {
                self.end(Error::Disconnected, done);
                false
            }
            Ok(Some(received)) => {
                reader.decoder.advance(received.len);
                let has_fd = received.fd.is_some();
                if let Some(fd) = received.fd {
                    let end = reader.decoder.consumed() + reader.decoder.buffered() as u64;
                    let is_exact = self.lock().caller.features().has(Features::DESCRIPTORS);
                    reader.fds.arrived(fd, end, is_exact);
                }
                received.len == len || has_fd
            }
            Err(error) => {
                self.end(error, done);
                false
            }
        }
    }

    fn handle_frames(&self, reader: &mut Reader, wanted: &mut Option<&mut Wanted<'_>>, done: &mut Done) {
        self.handle_some_frames(reader, wanted, done);
        let counted = (reader.fds.unexpected(), reader.decoder.skipped());
        if counted != reader.counted {
            reader.counted = counted;
            let mut state = self.lock();
            (state.unexpected_fds, state.malformed) = counted;
        }
    }

    fn handle_some_frames(&self, reader: &mut Reader, wanted: &mut Option<&mut Wanted<'_>>, done: &mut Done) {
        let mut now = None;
        for _ in 0..FRAMES_PER_TURN {
            let Reader { decoder, fds, .. } = &mut *reader;
            let (frame, len) = match decoder.next_rpc_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => return self.end(error, done),
            };
            let now = *now.get_or_insert_with(clock::now);
            let mut state = self.lock();
            if state.end.is_some() {
                return;
            }
            let is_exact = state.caller.features().has(Features::DESCRIPTORS);
            let State { caller, out, slots, .. } = &mut *state;
            match caller.handle(&frame, len, now, out) {
                CallerEvent::None => {}
                CallerEvent::Reply { id, body, has_more } => {
                    let fd = if is_exact { fds.take(frame.has_fd, true) } else { None };
                    match wanted.as_mut().filter(|wanted| wanted.id == id) {
                        Some(wanted) => {
                            let body = body.unwrap_or_default();
                            let traced = slots.take_at_once(id, body);
                            drop(state);
                            (wanted.decode)(body);
                            traced.end();
                            wanted.fd = fd;
                            wanted.is_decoded = true;
                            let consumed = reader.decoder.consumed();
                            reader.fds.handled(consumed, is_exact);
                            return;
                        }
                        None => {
                            let arrived = body.map(|body| Arrived {
                                body: Scratch::copy_of(body),
                                fd,
                                len,
                                is_marked: frame.has_fd,
                                has_more,
                                traced: TracedReply::none(),
                            });
                            slots.arrived(id, arrived, has_more, done);
                        }
                    }
                }
                CallerEvent::Failed { id, error } => slots.fail(id, error, done),
            }
            state.settle(done);
            self.flush(&mut state, done);
            drop(state);
            let consumed = reader.decoder.consumed();
            reader.fds.handled(consumed, is_exact);
        }
    }

    fn expire(&self, state: &mut State, done: &mut Done) {
        if state.caller.next_deadline().is_some() {
            let State { caller, out, .. } = &mut *state;
            caller.expire(clock::now(), out);
            state.settle(done);
        }
    }

    fn try_reader(&self) -> Option<MutexGuard<'_, Reader>> {
        match self.reader.try_lock() {
            Ok(reader) => Some(reader),
            Err(TryLockError::Poisoned(reader)) => Some(PoisonError::into_inner(reader)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Lets another thread read, and tells the driver that nobody reads for it now.
    fn wake_sleeper(&self) {
        let mut state = self.lock();
        let sleeper = state.sleepers.pop_front().map(|(_, waker)| waker);
        let driver = if std::mem::take(&mut state.driver_missed) { state.driver.clone() } else { None };
        drop(state);
        sleeper.into_iter().chain(driver).for_each(Waker::wake);
    }
}
