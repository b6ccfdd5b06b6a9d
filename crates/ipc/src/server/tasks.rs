//! [`Tasks`]: the calls of a connection that are futures.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use super::context::LentFd;
use super::shared::Shared;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Futures that have not ended, by the serial of their call. Their number is bounded by
/// [`ServerLimits::max_calls`](super::ServerLimits::max_calls).
#[derive(Default)]
pub(super) struct Tasks {
    waiting: BTreeMap<u64, (Task, Arc<TaskWaker>)>,
    /// Futures that were not polled yet.
    new: Vec<(u64, Task)>,
    /// Descriptor of the newest call, which its method may still take.
    pub(super) lent_fd: Option<LentFd>,
}

struct TaskWaker {
    serial: u64,
    shared: Weak<Shared>,
    is_ready: AtomicBool,
}

impl Tasks {
    pub(super) fn spawn(&mut self, serial: u64, task: impl Future<Output = ()> + Send + 'static) {
        self.new.push((serial, Box::pin(task)));
    }

    /// Polls the new futures.
    pub(super) fn start(&mut self, shared: &Arc<Shared>) {
        while let Some((serial, mut task)) = self.new.pop() {
            // Most calls end here, and never need a waker of their own.
            if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                let is_ready = AtomicBool::new(false);
                let waker = Arc::new(TaskWaker { serial, shared: Arc::downgrade(shared), is_ready });
                self.poll(serial, task, waker);
            }
        }
    }

    /// Polls a future that was woken.
    pub(super) fn resume(&mut self, serial: u64) {
        if let Some((task, waker)) = self.waiting.remove(&serial) {
            waker.is_ready.store(false, Ordering::Release);
            self.poll(serial, task, waker);
        }
    }

    /// Drops the future of a call that has ended.
    pub(super) fn cancel(&mut self, serial: u64) {
        self.waiting.remove(&serial);
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.new.clear();
    }

    fn poll(&mut self, serial: u64, mut task: Task, waker: Arc<TaskWaker>) {
        let poll = task.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&waker))));
        if poll == Poll::Pending {
            self.waiting.insert(serial, (task, waker));
        }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_ready.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(shared) = self.shared.upgrade() else { return };
        let mut state = shared.lock();
        state.ready.push(self.serial);
        let driver = state.driver.clone();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}
