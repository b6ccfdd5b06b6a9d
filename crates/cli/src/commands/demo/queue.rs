//! Bounded queue between the threads of one stage.
//!
//! A full queue delays its writers. So a slow stage slows down the whole pipeline instead of
//! filling the memory. The trace shows this as a flat `queue depth` counter and a long `push`
//! slice.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A queue of at most `limit` items for any number of writers and readers.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    limit: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::new(State { items: VecDeque::with_capacity(limit), closed: false }),
            changed: Condvar::new(),
            limit,
        }
    }

    /// Appends `item`, and waits for room. Returns the depth afterwards, or `None` if the queue is
    /// closed.
    pub(crate) fn push(&self, item: T) -> Option<usize> {
        let mut state = self.lock();
        while state.items.len() >= self.limit && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return None;
        }
        state.items.push_back(item);
        let depth = state.items.len();
        drop(state);
        self.changed.notify_all();
        Some(depth)
    }

    /// Takes the oldest item, and waits for one. Returns it with the depth afterwards, or `None` if
    /// the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<(T, usize)> {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                let depth = state.items.len();
                drop(state);
                self.changed.notify_all();
                return Some((item, depth));
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Refuses new items. Readers can still take the remaining ones.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_pushed_before_closing_are_taken() {
        let queue = Queue::new(4);
        assert_eq!(queue.push(1), Some(1));
        assert_eq!(queue.push(2), Some(2));
        queue.close();
        assert_eq!(queue.push(3), None);
        assert_eq!(queue.pop(), Some((1, 1)));
        assert_eq!(queue.pop(), Some((2, 0)));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn a_full_queue_waits_for_its_reader() {
        let queue = Queue::new(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for item in 0..100 {
                    queue.push(item);
                }
                queue.close();
            });
            let taken: Vec<i32> = core::iter::from_fn(|| queue.pop().map(|(item, _)| item)).collect();
            assert_eq!(taken, (0..100).collect::<Vec<_>>());
        });
    }
}
