//! [`Channel`]: the calling side of a connection, shared by all clients of its services.
//!
//! A call can be made in three ways, in any mixture on one channel:
//!
//! - **blocking**: [`Call::wait`]. Any number of threads may wait. One of them reads the socket for
//!   all; the others sleep.
//! - **callbacks on your own event loop**: [`Call::then`]. The loop waits for [`Channel::as_fd`] as
//!   [`Channel::interest`] says, and calls [`Channel::pump`], which runs the callbacks.
//! - **futures**: `.await` the call. Something must drive the channel: [`Channel::drive`], or a
//!   thread that waits for another call.

mod call;
mod callback;
mod drive;
mod events;
mod one_way_call;
mod reading;
mod slot;
mod stream_call;
mod thread_waker;

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use esatto_protozero::service::Kind;

pub use self::call::{Call, CallFuture};
pub use self::drive::Driver;
use self::events::Done;
pub use self::one_way_call::OneWayCall;
use self::reading::Reader;
use self::slot::Slots;
pub use self::stream_call::StreamCall;

use crate::address::{Address, Family};
use crate::call_error::CallError;
use crate::caller::{Caller, NewCall};
use crate::clock;
use crate::connection::WriteQueue;
use crate::error::Error;
use crate::foreign_fd::ForeignFd;
use crate::peer::Peer;
use crate::readiness::Interest;
use crate::sys::Stream;

/// Descriptors that may wait to be sent. A call that comes then waits, as for
/// [`ChannelLimits::max_queued`].
const MAX_QUEUED_FDS: usize = 64;

/// Bytes that wait for the driver although the socket might take them. More are written at once.
const WRITE_AT: usize = 64 << 10;

/// Bounds of a [`Channel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelLimits {
    /// Bytes that may wait to be sent. A call that comes then waits, or fails with
    /// [`CallError::QueueFull`] if it cannot wait.
    pub max_queued: usize,
    /// Bytes of replies of one stream that may wait for the program. The service pauses the stream
    /// beyond it.
    pub window: u32,
}

impl Default for ChannelLimits {
    fn default() -> Self {
        Self { max_queued: 4 << 20, window: 1 << 20 }
    }
}

/// Calling side of a connection. Clones are the same channel.
///
/// The connection ends when the last clone, and the last client and call with one, is dropped.
#[doc(alias = "stub", alias = "client", alias = "grpc")]
#[derive(Clone)]
pub struct Channel {
    shared: Arc<Shared>,
}

/// Lock order: `reader` before `state`. No lock is held while foreign code runs.
struct Shared {
    stream: Stream,
    limits: ChannelLimits,
    /// The receiving side, held by the thread that reads.
    reader: Mutex<Reader>,
    state: Mutex<State>,
}

struct State {
    caller: Caller,
    out: WriteQueue,
    slots: Slots,
    /// Threads that sleep until a call ends, one of which reads next.
    sleepers: VecDeque<(u64, Waker)>,
    last_sleeper: u64,
    /// Callers that wait until fewer bytes wait to be sent.
    waiting_for_room: Vec<Waker>,
    /// The thread that waits for the socket.
    poller: Option<Waker>,
    /// The event loop or the future that drives the channel.
    driver: Option<Waker>,
    /// The driver could not read because a thread did.
    driver_missed: bool,
    /// The driver knows that bytes wait until the socket takes them.
    is_driver_writing: bool,
    /// Counters of the reader.
    unexpected_fds: u64,
    malformed: u64,
    end: Option<Arc<Error>>,
}

impl Channel {
    /// Connects to a service. Waits at most `timeout`.
    ///
    /// # Errors
    ///
    /// The reason why the connection failed.
    pub fn connect(address: &Address, timeout: Duration) -> Result<Self, Error> {
        Ok(Self::new(Stream::connect(address, timeout)?))
    }

    /// Makes a channel of a connected stream, with the default limits.
    #[must_use]
    pub fn new(stream: Stream) -> Self {
        Self::with_limits(stream, ChannelLimits::default())
    }

    /// Makes a channel of a connected stream.
    #[must_use]
    pub fn with_limits(stream: Stream, limits: ChannelLimits) -> Self {
        let mut caller = Caller::new(crate::observed::new_seed());
        if cfg!(feature = "trace") {
            caller.set_peer(&Peer::of(&stream));
        }
        let state = State {
            caller,
            out: WriteQueue::default(),
            slots: Slots::default(),
            sleepers: VecDeque::new(),
            last_sleeper: 0,
            waiting_for_room: Vec::new(),
            poller: None,
            driver: None,
            driver_missed: false,
            is_driver_writing: false,
            unexpected_fds: 0,
            malformed: 0,
            end: None,
        };
        let reader = Mutex::new(Reader::default());
        Self { shared: Arc::new(Shared { stream, limits, reader, state: Mutex::new(state) }) }
    }

    /// Reads, writes, and runs callbacks, without waiting. Returns true if there is more to do at
    /// once.
    ///
    /// # Errors
    ///
    /// The reason why the connection has ended. All calls have failed then.
    pub fn pump(&self) -> Result<bool, Arc<Error>> {
        self.shared.pump()
    }

    /// Returns the events of [`as_fd`](Self::as_fd) to wait for before [`pump`](Self::pump).
    #[must_use]
    pub fn interest(&self) -> Interest {
        Interest { read: true, write: !self.shared.lock().out.is_empty() }
    }

    /// Returns the time at which [`pump`](Self::pump) must be called even if the socket is not
    /// ready, because a deadline passes.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.shared.lock().caller.next_deadline()
    }

    /// Sets the function that tells the event loop to look at [`interest`](Self::interest) and
    /// [`next_deadline`](Self::next_deadline) again, after a call of another thread.
    pub fn set_waker(&self, waker: &Waker) {
        let mut state = self.shared.lock();
        if !state.driver.as_ref().is_some_and(|driver| driver.will_wake(waker)) {
            state.driver = Some(waker.clone());
        }
    }

    /// Takes the newest descriptor that came from a service that does not say to which reply a
    /// descriptor belongs, such as those of Perfetto.
    pub fn take_fd(&self) -> Option<ForeignFd> {
        self.shared.take_fd()
    }

    /// Writes the one-way calls that wait, if the socket takes them, and ends the connection. All
    /// other calls fail with [`CallError::Disconnected`].
    pub fn close(&self) {
        let mut done = Done::default();
        self.shared.flush(&mut self.shared.lock(), &mut done);
        self.shared.end(Error::Disconnected, &mut done);
        done.run(&self.shared);
    }

    /// Returns true if the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.lock().end.is_some()
    }

    /// Returns the number of calls that have not ended.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.shared.lock().caller.open_calls()
    }

    /// Returns the number of frames that answered no call.
    #[must_use]
    pub fn unexpected(&self) -> u64 {
        self.shared.lock().caller.unexpected()
    }

    /// Returns the number of descriptors that came with no reply to a call.
    #[must_use]
    pub fn unexpected_fds(&self) -> u64 {
        self.shared.lock().unexpected_fds
    }

    /// Returns the number of frames that were empty or no protobuf message.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.shared.lock().malformed
    }

    /// Returns the socket.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.shared.stream
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a call unless too many bytes wait to be sent. If `is_deferred`, the driver may write
    /// it, together with those that follow.
    fn start(
        &self,
        call: NewCall<'_>,
        timeout: Option<Duration>,
        is_deferred: bool,
        done: &mut Done,
    ) -> Result<u64, CallError> {
        let method = call.service.method(call.method_id).expect("generated code names an existing method");
        if call.fd.is_some() && self.stream.family() != Family::Unix {
            return Err(CallError::DescriptorsUnsupported(method.full_name));
        }
        let now = clock::now();
        let deadline = timeout.map(|timeout| now.checked_add(timeout));
        let call = NewCall { deadline: deadline.flatten(), window: self.limits.window, ..call };
        let mut state = self.lock();
        if state.end.is_some() {
            return Err(CallError::Disconnected(method.full_name));
        }
        if !state.has_room(&self.limits) {
            return Err(CallError::QueueFull(method.full_name));
        }
        let has_deadline = call.deadline.is_some();
        let State { caller, out, .. } = &mut *state;
        let (id, traced) = caller.start_traced(call, now, out)?;
        // Other callers find room.
        let is_small = state.out.queued() < WRITE_AT && state.has_room(&self.limits);
        if is_deferred && state.driver.is_some() && is_small {
            state.wake_to_write(done);
        } else {
            self.flush(&mut state, done);
        }
        traced.request_sent();
        if state.end.is_some() {
            // The write failed. The call has no slot in which it could fail.
            let error = CallError::Disconnected(method.full_name);
            traced.failed(1, &error);
            return Err(error);
        }
        if method.kind != Kind::OneWay {
            state.slots.insert(id, traced);
        }
        if has_deadline {
            state.wake_drivers(done);
        }
        Ok(id)
    }

    /// Writes what the socket takes now.
    fn flush(&self, state: &mut State, done: &mut Done) {
        if state.end.is_some() {
            return;
        }
        if let Err(error) = self.write(state, done) {
            state.end(error, done);
            self.stream.shutdown();
        }
    }

    /// Writes what the socket takes now. After an error the connection must end.
    fn write(&self, state: &mut State, done: &mut Done) -> Result<(), Error> {
        state.out.write_to(&self.stream)?;
        if state.out.is_empty() {
            state.is_driver_writing = false;
        } else {
            done.wakers.extend(state.poller.take());
            state.wake_to_write(done);
        }
        if !state.waiting_for_room.is_empty() && state.has_room(&self.limits) {
            done.wakers.append(&mut state.waiting_for_room);
        }
        Ok(())
    }

    /// Ends the connection. All calls fail.
    fn end(&self, error: Error, done: &mut Done) {
        let mut state = self.lock();
        state.end(error, done);
        self.stream.shutdown();
    }
}

impl State {
    fn has_room(&self, limits: &ChannelLimits) -> bool {
        self.out.queued() + self.caller.unsent_bytes() < limits.max_queued
            && self.out.queued_fds() + self.caller.unsent_fds() < MAX_QUEUED_FDS
    }

    /// Tells the driver that bytes wait. Only once, because the driver also writes, and would wake
    /// itself until the socket takes more.
    fn wake_to_write(&mut self, done: &mut Done) {
        if !std::mem::replace(&mut self.is_driver_writing, true) {
            done.wakers.extend(self.driver.clone());
        }
    }

    /// Adds a thread that is about to sleep, and returns its number.
    fn add_sleeper(&mut self, waker: Waker) -> u64 {
        self.last_sleeper += 1;
        self.sleepers.push_back((self.last_sleeper, waker));
        self.last_sleeper
    }

    /// Tells those who wait for the socket that they must wait for something else.
    fn wake_drivers(&mut self, done: &mut Done) {
        done.wakers.extend(self.poller.take());
        done.wakers.extend(self.driver.clone());
    }

    fn end(&mut self, error: Error, done: &mut Done) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(Arc::new(error));
        self.out = WriteQueue::default();
        self.caller.disconnect();
        self.settle(done);
        self.wake_drivers(done);
        done.wakers.append(&mut self.waiting_for_room);
        done.wakers.extend(self.sleepers.drain(..).map(|(_, waker)| waker));
    }

    /// Passes on the calls that failed without a frame of their own.
    fn settle(&mut self, done: &mut Done) {
        while let Some((id, error)) = self.caller.next_failed() {
            self.slots.fail(id, error, done);
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.stream.as_fd()
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("Channel")
            .field("stream", &self.shared.stream)
            .field("open_calls", &state.caller.open_calls())
            .field("end", &state.end)
            .finish_non_exhaustive()
    }
}
