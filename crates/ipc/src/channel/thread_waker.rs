//! Wakers of threads that block.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};

use crate::sys::WakeFd;

thread_local! {
    static PARKED: Waker = Waker::from(Arc::new(Unpark(thread::current())));
    static POLLING: Option<(Arc<WakeFd>, Waker)> = WakeFd::new().ok().map(|fd| {
        let fd = Arc::new(fd);
        (Arc::clone(&fd), Waker::from(fd))
    });
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Returns the waker that ends [`thread::park`] of this thread.
pub(crate) fn parked() -> Waker {
    PARKED.with(Clone::clone)
}

/// Returns a descriptor for this thread to wait for, and the waker that makes it readable; `None`
/// if the process has no descriptors left.
pub(crate) fn polling() -> Option<(Arc<WakeFd>, Waker)> {
    POLLING.with(Clone::clone)
}
