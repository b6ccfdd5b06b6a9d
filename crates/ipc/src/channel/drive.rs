//! Driving a channel from an async task.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Channel;
use crate::error::Error;
use crate::readiness::Readiness;

impl Channel {
    /// Reads and writes until the connection ends, and returns the reason. Run it as a task of its
    /// own, or beside the calls.
    pub async fn drive(&self, mut io: impl Readiness) -> Arc<Error> {
        poll_fn(|cx| self.poll_drive(cx, &mut io)).await
    }

    /// As [`drive`](Self::drive), for futures that are written by hand.
    pub fn poll_drive(&self, cx: &mut Context<'_>, io: &mut impl Readiness) -> Poll<Arc<Error>> {
        self.set_waker(cx.waker());
        loop {
            let has_more = match self.pump() {
                Ok(has_more) => has_more,
                Err(error) => return Poll::Ready(error),
            };
            if has_more {
                // Other tasks of the runtime have their turn first.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
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
            if !is_ready {
                return Poll::Pending;
            }
        }
    }
}
