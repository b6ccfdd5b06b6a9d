//! [`Replies`]: what workers tell the control thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

use esatto_ipc::sys::WakeFd;

use crate::data_source::InstanceId;

/// Message of a worker to the control thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Started(InstanceId),
    Stopped(InstanceId),
    /// The instances of this flush request are flushed.
    Flushed(u64),
    /// The thread has ended.
    Ended,
}

/// Queue with a descriptor that is readable while it has replies. Its length is bounded by the
/// number of commands, of which the service waits for the answers.
pub(crate) struct Replies {
    queue: Mutex<Vec<Reply>>,
    wake: WakeFd,
}

impl Replies {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { queue: Mutex::default(), wake: WakeFd::new()? })
    }

    pub(crate) fn send(&self, reply: Reply) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push(reply);
        self.wake.wake();
    }

    pub(crate) fn take(&self) -> Vec<Reply> {
        self.wake.reset();
        std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends [`Reply::Ended`] when the result is dropped, also by a panic.
    pub(crate) fn report_end(self: &Arc<Self>) -> ReportEnd {
        ReportEnd(self.clone())
    }
}

impl AsFd for Replies {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

pub(crate) struct ReportEnd(Arc<Replies>);

impl Drop for ReportEnd {
    fn drop(&mut self) {
        self.0.send(Reply::Ended);
    }
}
