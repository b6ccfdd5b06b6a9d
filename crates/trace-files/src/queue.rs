//! Queue between threads that knows when one of its ends is dropped.
//!
//! The queue of the standard library is faster, but ten times the code.

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// End that adds values. It can be cloned.
pub(crate) struct Sender<T>(Arc<Shared<T>>);

/// End that takes values.
pub(crate) struct Receiver<T>(Arc<Shared<T>>);

/// The receiver was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    queue: VecDeque<T>,
    senders: usize,
    has_receiver: bool,
}

pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { queue: VecDeque::new(), senders: 1, has_receiver: true };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Sender<T> {
    #[inline(never)]
    pub(crate) fn send(&self, value: T) -> Result<(), Closed> {
        let mut state = self.0.lock();
        if !state.has_receiver {
            return Err(Closed);
        }
        state.queue.push_back(value);
        self.0.changed.notify_one();
        Ok(())
    }
}

impl<T> Receiver<T> {
    /// Takes the oldest value, and waits for it. `None` if the queue is empty and all senders were
    /// dropped.
    pub(crate) fn recv(&self) -> Option<T> {
        let mut state = self.0.lock();
        loop {
            if let Some(value) = state.queue.pop_front() {
                return Some(value);
            }
            if state.senders == 0 {
                return None;
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the oldest value, and waits for it until `timeout` is over.
    pub(crate) fn recv_timeout(&self, timeout: Duration) -> Option<T> {
        let deadline = Instant::now() + timeout;
        let mut state = self.0.lock();
        loop {
            if let Some(value) = state.queue.pop_front() {
                return Some(value);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes the oldest value, if there is one.
    #[inline(never)]
    pub(crate) fn try_recv(&self) -> Option<T> {
        self.0.lock().queue.pop_front()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.senders -= 1;
        if state.senders == 0 {
            self.0.changed.notify_one();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_receiver = false;
        // The values may own senders of this queue, so drop them without the lock.
        let rest = core::mem::take(&mut state.queue);
        drop(state);
        drop(rest);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_in_order_and_then_the_end() {
        let (sender, receiver) = channel();
        let other = sender.clone();
        let taken = std::thread::spawn(move || core::iter::from_fn(|| receiver.recv()).collect::<Vec<_>>());
        for i in 0..100 {
            assert_eq!(if i % 2 == 0 { &sender } else { &other }.send(i), Ok(()));
        }
        drop((sender, other));
        assert!(taken.join().expect("does not panic").into_iter().eq(0..100));
    }

    #[test]
    fn a_queue_without_a_receiver_takes_no_values() {
        let (sender, receiver) = channel();
        assert_eq!((receiver.try_recv(), sender.send(1), receiver.try_recv()), (None, Ok(()), Some(1)));
        drop(receiver);
        assert_eq!(sender.send(2), Err(Closed));
    }
}
