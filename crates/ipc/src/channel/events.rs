//! Events of calls, and the program's code that waits for them.

use std::task::Waker;

use crate::call_error::CallError;
use crate::foreign_fd::ForeignFd;
use crate::observed::TracedReply;
use crate::scratch::Scratch;

/// Reply that waits for the program.
pub(super) struct Arrived {
    pub(super) body: Scratch,
    pub(super) fd: Option<ForeignFd>,
    /// Size of its frame, for the window.
    pub(super) len: usize,
    /// The frame says that it has a descriptor.
    pub(super) is_marked: bool,
    /// Further replies follow, or an end without a message.
    pub(super) has_more: bool,
    /// Held while the program takes the reply.
    pub(super) traced: TracedReply,
}

/// Next event of a call.
pub(super) enum Next {
    /// Nothing has arrived.
    Pending,
    /// A reply.
    Reply(Arrived),
    /// The call has ended, and is forgotten.
    End(Result<(), CallError>),
}

/// Function that gets the replies of a call: `Ok(None)` or an error at its end. Returns false if it
/// wants no more of them.
pub(super) type Callback = Box<dyn FnMut(Result<Option<Arrived>, CallError>) -> bool + Send>;

/// Wakers and callbacks, collected under a lock.
#[derive(Default)]
pub(super) struct Done {
    pub(super) wakers: Vec<Waker>,
    pub(super) callbacks: Vec<(u64, Callback)>,
}

impl Done {
    pub(super) fn is_empty(&self) -> bool {
        self.wakers.is_empty() && self.callbacks.is_empty()
    }
}
