//! [`Mailbox`]: commands for a worker, in their order.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use esatto::producer::TraceWriter;
use esatto_ipc::sys::WakeFd;

use crate::data_source::{Instance, InstanceId, Observations};

/// Observations that wait for a worker of another purpose. That worker may wait for a disk; what is
/// observed meanwhile is left out.
const MAX_WAITING_OBSERVATIONS: usize = 64;

/// Order for a worker.
pub(crate) enum Command {
    /// Prepares an instance of the data source with this number.
    SetUp(usize, Instance),
    Start(InstanceId, Box<TraceWriter>),
    /// Flushes instances, and answers with the number of the request.
    Flush(Vec<InstanceId>, u64),
    Stop(InstanceId),
    ClearIncrementalState(Vec<InstanceId>),
    /// The connection is over: ends all instances.
    StopAll,
    /// Data sources of another worker observed this.
    Observe(Arc<Observations>),
    /// Ends all instances and the thread.
    End,
}

/// Queue with a descriptor that is readable while it has commands.
pub(crate) struct Mailbox {
    queue: Mutex<VecDeque<Command>>,
    wake: WakeFd,
    waiting_observations: AtomicUsize,
    /// Instances of the worker. Without any, it is not told what others observe.
    instances: AtomicUsize,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            queue: Mutex::default(),
            wake: WakeFd::new()?,
            waiting_observations: AtomicUsize::new(0),
            instances: AtomicUsize::new(0),
        })
    }

    pub(crate) fn send(&self, command: Command) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(command);
        self.wake.wake();
    }

    /// Tells the worker what the data sources of another one observed, unless it is far behind.
    pub(crate) fn send_observations(&self, observations: &Arc<Observations>) {
        if self.instances.load(Ordering::Relaxed) == 0 {
            return;
        }
        if self.waiting_observations.fetch_add(1, Ordering::Relaxed) < MAX_WAITING_OBSERVATIONS {
            self.send(Command::Observe(observations.clone()));
        } else {
            self.waiting_observations.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn set_instances(&self, instances: usize) {
        self.instances.store(instances, Ordering::Relaxed);
    }

    /// Takes the next command.
    pub(crate) fn take(&self) -> Option<Command> {
        // Before the look into the queue: a command that comes after it makes it readable again.
        self.wake.reset();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let command = queue.pop_front();
        if !queue.is_empty() {
            self.wake.wake();
        }
        if let Some(Command::Observe(_)) = command {
            self.waiting_observations.fetch_sub(1, Ordering::Relaxed);
        }
        command
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_do_not_pile_up_before_a_worker_that_hangs() {
        let mailbox = Mailbox::new().expect("descriptors");
        let observations = Arc::new(Observations::new());
        mailbox.send_observations(&observations);
        assert!(mailbox.take().is_none(), "a worker without instances is left alone");
        mailbox.set_instances(1);
        for _ in 0..1000 {
            mailbox.send_observations(&observations);
        }
        assert_eq!(std::iter::from_fn(|| mailbox.take()).count(), MAX_WAITING_OBSERVATIONS);
        mailbox.send_observations(&observations);
        assert!(matches!(mailbox.take(), Some(Command::Observe(_))));
    }
}
