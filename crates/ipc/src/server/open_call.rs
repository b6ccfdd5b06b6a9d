//! [`OpenCall`]: the duty to end a call.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use esatto_protozero::service::{Kind, Method};

use super::shared::Shared;
use crate::address::Family;
use crate::callee::{CallKey, SendError};
use crate::status::{Code, Status};

/// Call that was not answered. Dropping it fails the call.
pub(super) struct OpenCall {
    pub(super) shared: Arc<Shared>,
    pub(super) key: CallKey,
    pub(super) method: &'static Method,
    is_over: bool,
}

impl OpenCall {
    pub(super) fn new(shared: Arc<Shared>, key: CallKey, method: &'static Method) -> Self {
        Self { shared, key, method, is_over: false }
    }

    /// Returns a handle that does nothing when it is dropped.
    pub(super) fn without_duty(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), key: self.key, method: self.method, is_over: true }
    }

    /// Answers the call. If the reply cannot be sent, the client gets the reason as a status.
    pub(super) fn answer(mut self, body: &[u8], mut fd: Option<OwnedFd>) {
        if let Err(error) = self.send(body, &mut fd, false) {
            if error != SendError::Closed {
                self.fail(&error.into());
            }
        }
    }

    /// Sends a reply; the last one unless `has_more`. Keeps the descriptor if there is no room.
    pub(super) fn send(&mut self, body: &[u8], fd: &mut Option<OwnedFd>, has_more: bool) -> Result<(), SendError> {
        if self.shared.stream.family() != Family::Unix {
            // No client of another kind of socket expects one.
            *fd = None;
        }
        let limits = &self.shared.limits;
        let sent = self.shared.change(|state| {
            if has_more && state.is_paused(limits) {
                return Err(SendError::Full);
            }
            state.callee.reply(self.key, body, fd, has_more, &mut state.out)
        });
        self.is_over |= !has_more && sent.is_ok();
        sent
    }

    /// Sends a descriptor with the next reply.
    pub(super) fn attach(&self, fd: OwnedFd) {
        // No client of another kind of socket expects one.
        if self.shared.stream.family() == Family::Unix {
            self.shared.lock().callee.attach(self.key, fd);
        }
    }

    /// Ends a stream.
    pub(super) fn finish(mut self) {
        self.is_over = true;
        let _ = self.shared.change(|state| state.callee.finish(self.key, &mut state.out));
    }

    pub(super) fn fail(mut self, status: &Status) {
        self.is_over = true;
        let _ = self.shared.change(|state| state.callee.fail(self.key, status, &mut state.out));
    }

    pub(super) fn fail_malformed(mut self) {
        self.is_over = true;
        self.shared.change(|state| state.callee.fail_malformed(self.key, &mut state.out));
    }

    /// Returns true if nobody waits for the reply. The driver may not know it yet, because the call
    /// runs on its thread.
    pub(super) fn is_cancelled(&self) -> bool {
        let (is_open, pumping) = self.shared.change(|state| {
            state.expire();
            (state.callee.is_open(self.key), state.pumping)
        });
        let is_driver_busy = pumping.is_some_and(|thread| thread == thread::current().id());
        !is_open || is_driver_busy && self.shared.stream.is_hung_up()
    }

    pub(super) fn poll_cancelled(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.shared.lock();
        if !state.callee.is_open(self.key) {
            return Poll::Ready(());
        }
        state.callee.watch(self.key, cx.waker());
        Poll::Pending
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.shared.change(|state| {
            if self.method.kind == Kind::OneWay {
                state.callee.close(self.key);
            } else {
                let text = format!("{}: the service dropped the call", self.method.full_name);
                let _ = state.callee.fail(self.key, &Status::new(Code::Unknown, text), &mut state.out);
            }
        });
    }
}
