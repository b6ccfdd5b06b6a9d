//! Driving a channel from an async task.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll};

use super::{Channel, Shared};
use crate::error::Error;
use crate::readiness::Readiness;

/// Driver of a channel that does not keep it open: it ends when the channel and all its clients are
/// dropped.
#[derive(Clone)]
pub struct Driver {
    shared: Weak<Shared>,
}

impl Driver {
    /// Reads and writes until the connection ends, and returns the reason.
    ///
    /// `io` must keep a descriptor of its own, because the channel may be dropped before it.
    pub async fn run(&self, mut io: impl Readiness) -> Arc<Error> {
        poll_fn(|cx| match self.shared.upgrade() {
            Some(shared) => Channel { shared }.poll_drive(cx, &mut io),
            None => Poll::Ready(Arc::new(Error::Disconnected)),
        })
        .await
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Drop for Shared {
    /// Writes the one-way calls that wait, and lets the driver end.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Nobody could be told of a failure.
        let _ = state.out.write_to(&self.stream);
        if let Some(driver) = state.driver.take() {
            driver.wake();
        }
    }
}

impl Channel {
    /// Returns a driver for a task of its own, such as one that is spawned on a runtime.
    #[must_use]
    pub fn driver(&self) -> Driver {
        Driver { shared: Arc::downgrade(&self.shared) }
    }

    /// Reads and writes until the connection ends, and returns the reason. Run it beside the calls;
    /// see [`driver`](Self::driver) for a task of its own.
    pub async fn drive(&self, mut io: impl Readiness) -> Arc<Error> {
        poll_fn(|cx| self.poll_drive(cx, &mut io)).await
    }

    /// As [`drive`](Self::drive), for futures that are written by hand.
    pub fn poll_drive(&self, cx: &mut Context<'_>, io: &mut impl Readiness) -> Poll<Arc<Error>> {
        self.set_waker(cx.waker());
        let mut is_woken = true;
        loop {
            // Asked before the socket is read, not after: then a read that leaves room is the last
            // one, and need not be followed by one that finds nothing.
            let mut is_ready = match io.poll_readable(cx) {
                Poll::Ready(Err(error)) => return Poll::Ready(Arc::new(Error::Io(error))),
                poll => poll.is_ready(),
            };
            if self.interest().write {
                match io.poll_writable(cx) {
                    Poll::Ready(Err(error)) => return Poll::Ready(Arc::new(Error::Io(error))),
                    poll => is_ready |= poll.is_ready(),
                }
            }
            if let Some(deadline) = self.next_deadline() {
                is_ready |= io.poll_sleep_until(cx, deadline).is_ready();
            }
            if !is_ready && !is_woken {
                return Poll::Pending;
            }
            is_woken = false;
            match self.pump() {
                Ok(false) => {}
                Ok(true) => {
                    // Other tasks of the runtime have their turn first.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(error),
            }
        }
    }
}
