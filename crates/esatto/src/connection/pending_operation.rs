//! Operations in progress: a program waits for one, awaits it, or passes a function.

use core::fmt;
use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::control_thread;
use crate::error::Error;
use crate::os::fork::Generation;

/// The result of an operation of a [`Session`](crate::Session) that is in progress.
///
/// The operation was requested when this was made, and takes place even if this is dropped. There
/// are three ways to get the result:
///
/// - [`wait`](Self::wait) blocks the thread;
/// - `.await`: it is a [`Future`] and needs no runtime, because the control thread wakes the task;
/// - [`then`](Self::then) lets the control thread call a function.
///
/// Dropping it discards the result. An operation that the service does not answer fails with
/// [`TimedOut`](crate::ErrorKind::TimedOut); none stays pending for ever. In the child of a fork
/// all operations that the parent requested fail with
/// [`Disconnected`](crate::ErrorKind::Disconnected).
#[must_use = "the result is lost: call `.wait()`, `.await` or `.then(…)`, or drop it"]
pub struct Pending<T> {
    slot: Arc<Slot>,
    decode: Decode<T>,
    made_in: Generation,
}

/// Answers are bytes, so that only programs that need an answer contain the code that reads it.
pub(crate) type Answer = Result<Vec<u8>, Error>;
type Decode<T> = fn(Vec<u8>) -> Result<T, Error>;
/// The reason why a child of a fork does not get what its parent requested.
pub(super) const FORKED: &str = "the process has forked: the session is its parent's";

type Callback = Box<dyn FnOnce(Answer) + Send>;

impl<T> Pending<T> {
    /// Makes a pending operation, and the end that completes it.
    pub(crate) fn new(decode: Decode<T>) -> (Self, Completer) {
        let slot = Arc::new(Slot { state: Mutex::new(State::Waiting(Interest::Nobody)), changed: Condvar::new() });
        (Self { slot: Arc::clone(&slot), decode, made_in: Generation::current() }, Completer(Some(slot)))
    }

    /// Blocks until the operation is complete.
    ///
    /// # Errors
    ///
    /// The reason if it failed; or [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock) in a
    /// callback, whose thread does the work.
    pub fn wait(self) -> Result<T, Error> {
        self.wait_until(None)
    }

    /// As [`wait`](Self::wait), but at most `timeout`. The operation continues after that.
    ///
    /// # Errors
    ///
    /// The reason if it failed; [`TimedOut`](crate::ErrorKind::TimedOut); or
    /// [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock) in a callback.
    pub fn wait_timeout(self, timeout: Duration) -> Result<T, Error> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// Fails in the child of a fork, where nothing completes the parent's requests.
    fn check(&self) -> Result<(), Error> {
        if self.made_in.is_past() { Err(Error::disconnected(FORKED)) } else { Ok(()) }
    }

    fn wait_until(self, deadline: Option<Instant>) -> Result<T, Error> {
        self.check()?;
        let mut state = self.slot.lock();
        loop {
            if let Some(answer) = state.take() {
                drop(state);
                return answer.and_then(self.decode);
            }
            if control_thread::is_current() {
                return Err(Error::would_deadlock());
            }
            let changed = &self.slot.changed;
            state = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Err(Error::timed_out("answer")),
                Some(left) => changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Lets the control thread call `function` with the result. The function must not take long,
    /// because nothing is sent or received meanwhile, and it cannot [`wait`](Self::wait).
    pub fn then(self, function: impl FnOnce(Result<T, Error>) + Send + 'static)
    where
        T: 'static,
    {
        let decode = self.decode;
        let callback: Callback = Box::new(move |answer| function(answer.and_then(decode)));
        if let Err(error) = self.check() {
            return control_thread::run(Box::new(move || callback(Err(error))));
        }
        let mut state = self.slot.lock();
        match state.take() {
            Some(answer) => control_thread::run(Box::new(move || callback(answer))),
            None => *state = State::Waiting(Interest::Callback(callback)),
        }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.check() {
            return Poll::Ready(Err(error));
        }
        let mut state = self.slot.lock();
        match state.take() {
            Some(answer) => {
                drop(state);
                Poll::Ready(answer.and_then(self.decode))
            }
            None => {
                *state = State::Waiting(Interest::Waker(context.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_over = !matches!(*self.slot.lock(), State::Waiting(_));
        f.debug_struct("Pending").field("is_over", &is_over).finish()
    }
}

/// The control thread's end of a [`Pending`].
pub(crate) struct Completer(Option<Arc<Slot>>);

impl Completer {
    /// Completes the operation.
    pub(crate) fn complete(mut self, answer: Answer) {
        if let Some(slot) = self.0.take() {
            slot.complete(answer);
        }
    }
}

impl Drop for Completer {
    /// Fails the operation, so that no thread waits for ever.
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            slot.complete(Err(Error::disconnected("the session was closed")));
        }
    }
}

impl fmt::Debug for Completer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completer")
    }
}

struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    Waiting(Interest),
    Done(Answer),
    /// The answer has been taken.
    Taken,
}

/// The way in which the program wants to learn the result.
enum Interest {
    /// None, or a thread that blocks.
    Nobody,
    Waker(Waker),
    Callback(Callback),
}

impl State {
    fn take(&mut self) -> Option<Answer> {
        if !matches!(self, Self::Done(_)) {
            return None;
        }
        match mem::replace(self, Self::Taken) {
            Self::Done(answer) => Some(answer),
            Self::Waiting(_) | Self::Taken => None,
        }
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complete(&self, answer: Answer) {
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Taken) {
            State::Waiting(Interest::Callback(callback)) => {
                drop(state);
                crate::callbacks::shielded(|| callback(answer));
            }
            State::Waiting(interest) => {
                *state = State::Done(answer);
                drop(state);
                self.changed.notify_all();
                if let Interest::Waker(waker) = interest {
                    crate::callbacks::shielded(|| waker.wake());
                }
            }
            // An operation completes once.
            State::Done(_) | State::Taken => {}
        }
    }
}

/// A function to call for an event of a session.
pub(crate) struct Listener(Box<dyn FnOnce(Result<(), Error>) + Send>);

impl Listener {
    pub(crate) fn new(function: impl FnOnce(Result<(), Error>) + Send + 'static) -> Self {
        Self(Box::new(function))
    }

    /// Calls it, on the control thread.
    pub(crate) fn tell(self, result: Result<(), Error>) {
        crate::callbacks::shielded(|| (self.0)(result));
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
