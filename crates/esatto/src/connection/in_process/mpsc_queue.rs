//! A queue between threads that knows when one of its ends is gone. The standard library's is faster, and ten times the code.

use core::fmt;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Puts in; as many as there are clones.
pub(super) struct Sender<T>(Arc<Shared<T>>);

/// Takes out.
pub(super) struct Receiver<T>(Arc<Shared<T>>);

/// The other end is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed;

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    queue: VecDeque<T>,
    senders: usize,
    has_receiver: bool,
}

pub(super) fn channel<T>() -> (Sender<T>, Receiver<T>) {
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
    pub(super) fn send(&self, value: T) -> Result<(), Closed> {
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
    /// Waits. `None`: it is empty, and nobody can put in any more.
    pub(super) fn recv(&self) -> Option<T> {
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

    #[inline(never)]
    pub(super) fn try_recv(&self) -> Option<T> {
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
        // What is in it may own things that wait for it; they go without the lock.
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
    fn what_was_put_in_comes_out_in_order_and_then_the_end() {
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
    fn nobody_takes_out_of_a_closed_one() {
        let (sender, receiver) = channel();
        assert_eq!((receiver.try_recv(), sender.send(1), receiver.try_recv()), (None, Ok(()), Some(1)));
        drop(receiver);
        assert_eq!(sender.send(2), Err(Closed));
    }
}
